"""Money: break-even by published rates, cold caches, batches that are not worth it."""

from __future__ import annotations

import json
from math import inf
from typing import Any

import pytest
from settings_words import as_keywords

import trimtab
from trimtab import formats
from trimtab.errors import InvalidSetting
from trimtab.planning.eligibility import Bounds
from trimtab.pricing.economics import (
    CutCost,
    CutEffect,
    bounds_for_lost_cache,
    break_even,
    cut_cost,
    extra_cost,
    is_worthwhile,
    lifetime,
    pays,
    prices_of,
)
from trimtab.pricing.prices import TABLES, Prices
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import counter_for
from trimtab.transcript.transcript import Transcript

CLAUDE, HOUR, GEMINI = TABLES["claude-5m"], TABLES["claude-1h"], TABLES["gemini"]


# --- the bill ------------------------------------------------------------------------------------


def bill(sizes: list[tuple[int, int]], read: float, write: float) -> float:
    """What requests cost of which so many tokens are (read, written); nothing of ours is asked."""
    return sum(read * cached + write * fresh for cached, fresh in sizes)


@pytest.mark.parametrize("name", ["claude-5m", "claude-1h", "openai", "openai-5", "gemini"])
@pytest.mark.parametrize("later", [0, 1, 10, 100])
def test_the_gain_is_the_difference_of_two_bills(name: str, later: int) -> None:
    """40,000 tokens are cached; a batch keeps 10,000, rewrites 20,000 and saves 10,000."""
    prices = TABLES[name]
    without = bill([(40_000, 0)] * (later + 1), prices.read, prices.write)
    with_it = bill([(10_000, 20_000), *[(30_000, 0)] * later], prices.read, prices.write)
    found = cut_cost(prices, CutEffect(20_000, 10_000), later, None)
    assert found.gain == pytest.approx(without - with_it, abs=1)
    assert found.dollars is None


def test_break_even_is_that_of_the_published_rates() -> None:
    """One-off S·(w − r), D·r a request: 11.5·S/D requests with Claude's rates, less the first."""
    assert break_even(CLAUDE, CutEffect(10_000, 10_000)) == pytest.approx(11.5 - 1)
    assert break_even(HOUR, CutEffect(10_000, 10_000)) == pytest.approx(19 - 1)
    assert break_even(GEMINI, CutEffect(10_000, 10_000)) == pytest.approx(9 - 1)
    assert break_even(CLAUDE, CutEffect(10_000, 0)) == inf
    assert break_even(TABLES["none"], CutEffect(10_000, 1)) == 0


def test_where_the_cache_is_cold_a_batch_pays_at_once() -> None:
    batch = CutEffect(20_000, 10_000, cold=True)
    assert extra_cost(CLAUDE, batch) == -12_500
    assert break_even(CLAUDE, batch) == 0
    assert cut_cost(CLAUDE, batch, 5, None).gain == 12_500 + 5 * 1_000


def test_dollars_are_the_gain_at_the_models_price() -> None:
    found = cut_cost(CLAUDE, CutEffect(10_000, 10_000), 100, 3.0)
    assert found.dollars == pytest.approx(found.gain * 3 / 1e6)
    assert str(found).endswith("over 100 more requests: $0.27 less")
    early = cut_cost(CLAUDE, CutEffect(10_000, 10_000), 5, 3.0)
    assert str(early).endswith("over 5 more requests: $0.0165 more")
    assert str(cut_cost(CLAUDE, CutEffect(10_000, 10_000), 100, None)).endswith("tokens less")
    assert "it pays after 11 requests" in str(found)
    never = CutCost("claude-5m", 5, 0, False, 6, 0, None, 3, -6)
    assert "it never pays" in str(never)


@pytest.mark.parametrize(
    ("table", "mark", "seconds"),
    [
        ("claude-5m", None, 300), ("claude-1h", None, 3_600), ("gemini", None, inf),
        (None, None, 3_600), (None, {}, 300), (None, {"ttl": "5m"}, 300),
        (None, {"ttl": "1h"}, 3_600), ("claude-5m", {"ttl": "1h"}, 300),
    ],
)  # fmt: skip
def test_a_cache_lives_as_its_table_says_or_as_the_requests_own_breakpoints_say(
    table: str | None, mark: dict[str, str] | None, seconds: float
) -> None:
    assert lifetime(table, marked(mark)) == seconds


@pytest.mark.parametrize(
    ("mark", "model", "write"),
    [({"ttl": "1h"}, "claude-sonnet-4-5", 2.0), ({}, "claude-sonnet-4-5", 1.25),
     (None, "gpt-5.1", 1.0), (None, "nobody-knows-it", 1.25)],
)  # fmt: skip
def test_prices_are_those_of_the_breakpoints_or_else_of_the_model(
    mark: dict[str, str] | None, model: str, write: float
) -> None:
    assert prices_of(None, marked(mark, model)).write == write
    assert prices_of("gemini", marked(mark, model)).name == "gemini"


@pytest.mark.parametrize("nested", [False, True])
def test_bedrocks_cache_points_say_how_long_its_cache_lives_too(nested: bool) -> None:
    for ttl, seconds in (({"ttl": "1h"}, 3_600), ({}, 300)):
        point = {"cachePoint": {"type": "default", **ttl}}
        text = {"role": "user", "content": [{"text": "Hi"}, *([point] if nested else [])]}
        body = {"modelId": "anthropic.claude-sonnet-4-5", "messages": [text],
                "system": [{"text": "Be kind."}, *([] if nested else [point])]}  # fmt: skip
        assert lifetime(None, formats.read(body, formats.FORMATS["bedrock"])) == seconds


def marked(mark: dict[str, str] | None, model: str = "claude-sonnet-4-5") -> Transcript:
    """A request whose system text has this breakpoint."""
    control = {} if mark is None else {"cache_control": {"type": "ephemeral", **mark}}
    system = [{"type": "text", "text": "Be kind.", **control}]
    messages = [{"role": "user", "content": "Hi"}]
    body = {"model": model, "max_tokens": 9, "system": system, "messages": messages}
    return formats.read(body, formats.FORMATS["anthropic"])


@pytest.mark.parametrize(
    ("saved", "rewritten", "calls", "prices", "yes"),
    [
        (40_000, 20_000, 4, CLAUDE, False), (40_000, 20_000, 5, CLAUDE, True),
        (40_000, 20_000, 8, HOUR, False), (40_000, 20_000, 9, HOUR, True),
        (40_000, 0, 1, CLAUDE, True), (9_000, 20_000, 10**6, CLAUDE, False),
    ],
)  # fmt: skip
def test_a_cut_pays_when_the_calls_so_far_would_have_paid_for_it(
    saved: int, rewritten: int, calls: int, prices: Prices, yes: bool
) -> None:
    """(1.25 − 0.1) · 20,000 = 0.1 · 40,000 · 5.75, and the request itself is one of the calls."""
    tokens = saved + rewritten + 10_000
    assert pays(prices, CutEffect(rewritten, saved), tokens, calls) is yes
    assert pays(prices, CutEffect(rewritten, saved, cold=True), tokens, 1) is (saved > 10_000)


def test_where_the_cache_is_lost_bounds_act_half_way_between_target_and_trigger() -> None:
    bounds = bounds_for_lost_cache(Bounds(capacity=100_000, trigger=90_000, target=0.7))
    assert (bounds.trigger, bounds.target, bounds.capacity) == (76_500, 0.7, 100_000)


# --- in a request --------------------------------------------------------------------------------


def talk(steps: int, result: str = "", lines: int = 60) -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": "Look for the fault."}]
    for n in range(steps):
        function = {"name": "run", "arguments": json.dumps({"n": n})}
        call = {"id": f"c{n}", "type": "function", "function": function}
        text = result or "".join(f"src/mod_{n}.py:{i}: value {i * n}\n" for i in range(lines))
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
    return {"model": "gpt-5.1", "messages": messages}


def fit(request: Any, window: int, **keywords: Any) -> trimtab.report.Report:
    return trimtab.fit(request, **as_keywords(window=window, counter="o200k", **keywords)).report


def test_the_report_tells_money_only_with_a_named_table() -> None:
    request = talk(40)
    assert fit(request, 20_000).money == {}
    told = fit(request, 20_000, settings=trimtab.Settings(prices="claude-5m"))
    assert told.money["prices"] == "claude-5m"
    assert told.money["saved"] == told.tokens_before - told.tokens_after
    assert 0 < told.money["rewritten"] < told.tokens_after
    assert told.money["requests"] == 40
    assert told.money["dollars"] == pytest.approx(told.money["gain"] * 1.25 / 1e6, abs=1e-5)
    assert told.money["told"] in str(told)
    assert told.as_dict()["money"] == told.money


def test_a_request_without_new_edits_has_no_money_to_tell() -> None:
    assert fit(talk(3), 20_000, settings=trimtab.Settings(prices="openai")).money == {}


@pytest.mark.parametrize(
    "keywords", [{"prices": "gold"}, {"idle_seconds": -1}, {"idle_seconds": "long"}]
)
def test_odd_settings_are_refused(keywords: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=r"price|idle"):
        fit(talk(1), 20_000, **as_keywords(**keywords))


def test_a_cold_cache_brings_the_batch_forward_and_the_reason_says_so() -> None:
    request = talk(17)  # between where a cold and where a warm batch begins
    size = fit(request, 10**6).tokens_before
    window = int(size / 0.85)
    assert (
        fit(request, window, settings=trimtab.Settings(idle_seconds=200, prices="claude-5m")).edits
        == ()
    )
    told = fit(request, window, settings=trimtab.Settings(idle_seconds=400, prices="claude-5m"))
    assert told.edits
    assert "idle for 400 s: the cache is cold" in told.reason
    assert told.money["break_even"] == 0
    assert (
        fit(request, window, settings=trimtab.Settings(idle_seconds=400)).edits == ()
    )  # no table: an hour


def test_where_the_calls_that_are_left_fit_a_cold_cache_cuts_nothing() -> None:
    request = talk(17)
    window = int(fit(request, 10**6).tokens_before / 0.85)
    for calls_left, cut in ((None, True), (1, False)):
        settings = trimtab.Settings(idle_seconds=100_000, calls_left=calls_left)
        assert bool(fit(request, window, settings=settings).edits) is cut


def test_a_session_measures_how_long_a_conversation_lay_idle_with_the_clock_it_is_given() -> None:
    now = [600_000.0]
    request = talk(17)
    window = int(fit(request, 10**6).tokens_before / 0.85)
    for pause, cut in ((100.0, False), (5_000.0, True)):
        session = trimtab.Session(
            window=window, clock=lambda: now[0], settings=trimtab.Settings(counter="o200k")
        )
        session.fit(talk(16))
        now[0] += pause
        assert bool(session.fit(request).report.edits) is cut


def test_below_where_a_cold_batch_begins_a_cold_request_is_the_very_object() -> None:
    request = talk(17)
    window = 2 * fit(request, 10**6).tokens_before
    done = trimtab.fit(
        request, window=window, settings=trimtab.Settings(idle_seconds=10**6, counter="o200k")
    )
    assert done.request is request


def test_a_batch_that_the_next_turn_would_use_up_is_not_made_until_it_must_be() -> None:
    """Nearly all is the user's own words: a batch could only save a little, again and again."""
    request = talk(1)
    request["messages"][0]["content"] = "word " * 30_000
    size = fit(request, 10**6).tokens_before
    free = trimtab.fit(request, window=int(size / 0.95), settings=trimtab.Settings(counter="o200k"))
    assert free.request is request
    forced = fit(request, size - 1)
    assert forced.edits
    assert forced.tokens_after <= size - 1


def test_worth_is_what_the_next_turn_brings_or_three_hundredths_of_what_may_be_sent() -> None:
    class Nothing:
        groups = ()

    usage = TokenSizes(counter_for("o200k", model=None, format="anthropic"))
    for capacity in (100, 10_000):  # a few tokens are less than the notes that would be made
        assert is_worthwhile(Nothing(), usage, capacity, 65)  # type: ignore[arg-type]
        assert not is_worthwhile(Nothing(), usage, capacity, 64)  # type: ignore[arg-type]


# --- below the trigger ---------------------------------------------------------------------------


def test_nothing_happens_below_the_trigger() -> None:
    request = talk(3)
    rows = [{"id": n, "name": f"entry {n}", "state": "open"} for n in range(200)]
    request["messages"][4]["content"] = json.dumps(rows, indent=4)  # could be spelled shorter
    assert trimtab.fit(request, window=200_000).request is request
