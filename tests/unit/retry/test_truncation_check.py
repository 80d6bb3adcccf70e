"""A count far below what was sent: a server that left out the beginning, or a gateway that counts
only what was not in its cache.

Knows how both count, turn by turn.  Sends nothing.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from shapes import session

import trimtab
from trimtab.pricing.calibration import Calibration, UsageSample
from trimtab.pricing.reported_usage import read_usage
from trimtab.retry.flow import Accepted, flow
from trimtab.retry.learned_limits import LearnedLimits, key_for

NEAR, FAR = key_for("127.0.0.1", "qwen"), key_for("gateway.example.com", "qwen")
TURNS = range(8, 30)


def whole(ours: int, turn: int) -> int:
    return ours


def truncating(ours: int, turn: int) -> int:
    """Ollama: whole messages are left out until the rest fits, so that counts differ a little."""
    return min(ours, 4_000 - 97 * (turn % 4))


class Uncached:
    """What was not sent before is all that is counted; ``warm``: so much stood in the cache."""

    def __init__(self, warm: int = 0, *, fixed: bool = False) -> None:
        self.cached, self.fixed = warm, fixed

    def __call__(self, ours: int, turn: int) -> int:
        counted = max(ours - self.cached, 0)
        if not self.fixed:
            self.cached = ours
        return counted


def told(key: str, count: Any, *, final: bool = False, observed: bool = True) -> list[int]:
    """Drive one conversation; the turns after whose answers its context was cut."""
    learned, one = LearnedLimits(clock=lambda: 0.0), trimtab.Session(window=10_000_000)
    cut = []
    for turn in TURNS:
        body = json.dumps(
            {**session("openai-chat", steps=turn, lines=60), "model": "qwen"}
        ).encode()
        run = flow(body, one.fit, key=key, learned=learned)
        effect = next(run)
        for _ in range(3):
            ours = effect.fitted.tokens_after
            theirs = count(ours, turn)
            if ours < effect.fitted.report.tokens_before and turn not in cut:
                cut.append(turn)
            if observed:
                one.observe({"usage": {"prompt_tokens": theirs}}, effect.fitted)
            try:
                effect = run.send(Accepted(theirs, final=final))
            except StopIteration:
                break
    return cut


@pytest.mark.parametrize("observed", [True, False])
@pytest.mark.parametrize("key", [NEAR, FAR], ids=["on this machine", "elsewhere"])
@pytest.mark.parametrize("final", [True, False], ids=["stream", "whole"])
def test_a_server_that_counts_the_same_although_more_was_sent_is_cut_to_it_from_then_on(
    final, key, observed
):
    cut = told(key, truncating, final=final, observed=observed)
    assert TURNS[0] < cut[0] <= TURNS[0] + 4


def test_an_answer_is_never_thrown_away_for_its_count():
    learned, one = LearnedLimits(), trimtab.Session(window=10_000_000)
    for turn in TURNS:
        run = flow(session("openai-chat", steps=turn, lines=60), one.fit, key=NEAR, learned=learned)
        ours = next(run).fitted.tokens_after
        with pytest.raises(StopIteration) as stop:
            run.send(Accepted(truncating(ours, turn)))
        assert (stop.value.value.accepted, stop.value.value.attempts) == (True, 1)


@pytest.mark.parametrize("share", [1.6, 2.0, 4.0])
def test_a_server_that_counts_fewer_tokens_than_we_do_is_never_cut(share):
    assert told(NEAR, lambda ours, turn: int(ours / share)) == []


GATEWAYS = {
    "counts all": lambda: whole,
    "warm from the start": lambda: Uncached(5_000),
    "a head in the cache": lambda: Uncached(5_000, fixed=True),
}


@pytest.mark.parametrize("observed", [True, False])
@pytest.mark.parametrize("final", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("gateway", GATEWAYS.values(), ids=GATEWAYS.keys())
def test_a_gateway_that_counts_only_what_is_new_is_never_cut(gateway, final, observed):
    assert told(FAR, gateway(), final=final, observed=observed) == []


def test_a_server_that_has_counted_more_before_is_not_cut_for_its_cache():
    assert told(NEAR, Uncached()) == []


@pytest.mark.parametrize("apart", ["prompt_tokens_details", "prompt_cache_hit_tokens"])
def test_more_than_all_cannot_have_been_in_the_cache(apart):
    cached = {"cached_tokens": 9_000} if apart.endswith("details") else 9_000
    assert read_usage({"usage": {"prompt_tokens": 700, apart: cached}}).input_tokens == 9_700
    part = {"cached_tokens": 600} if apart.endswith("details") else 600
    assert read_usage({"usage": {"prompt_tokens": 700, apart: part}}).input_tokens == 700


def test_a_count_too_low_to_be_true_moves_no_limit():
    taught = Calibration().add(UsageSample(10_000, 0, 9_000))
    assert taught.add(UsageSample(20_000, 0, 2_000)) is taught
    assert len(taught.add(UsageSample(20_000, 0, 10_000)).samples) == 2
