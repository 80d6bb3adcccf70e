"""The control arm: which conversations are in it, and that they pass untouched while they fit."""

from __future__ import annotations

from typing import Any

import pytest
from long_sessions import KEYWORDS, request
from settings_words import as_keywords
from tool_calls import Step, conversation

import trimtab
from trimtab.errors import InvalidSetting
from trimtab.formats.body import RequestBody
from trimtab.request.fitted import facts_of
from trimtab.sessions.control import is_control
from trimtab.sessions.conversation import conversation_id


def drawn(share: float, wanted: bool) -> tuple[int, dict[str, Any]]:
    """A seed whose conversation is in the arm that is wanted, and a request of it."""
    for seed in range(200):
        body = request(20, seed)
        if is_control(conversation_id(RequestBody.of(body), None), share) is wanted:
            return seed, body
    raise AssertionError("no such conversation")


def test_the_share_of_conversations_in_the_control_arm_is_the_one_asked_for() -> None:
    drawn_in = sum(is_control(f"conversation {n}", 0.05) for n in range(20_000))
    assert 900 < drawn_in < 1_100
    assert not any(is_control(str(n), 0.0) for n in range(1_000))
    assert all(is_control(str(n), 1.0) for n in range(1_000))


def test_a_larger_share_keeps_those_that_were_in_the_arm() -> None:
    names = [str(n) for n in range(2_000)]
    assert {n for n in names if is_control(n, 0.05)} < {n for n in names if is_control(n, 0.3)}


def test_a_control_conversation_passes_untouched_above_the_trigger_while_it_fits() -> None:
    _, body = drawn(0.5, True)
    at = trimtab.Settings(counter="o200k")
    tokens = trimtab.Session(window="10m", settings=at).fit(body).tokens_after
    window = int(tokens / 0.97)  # above every trigger, below the window
    at = at | trimtab.Settings(window=window, reserve=0)
    assert trimtab.Session(settings=at).fit(body).changed
    session = trimtab.Session(settings=at | trimtab.Settings(control=0.5))
    fitted = session.fit(body)
    assert fitted.request is body
    assert fitted.arm == "control"


EARLIER = {
    "economy": trimtab.Settings(preset="economy", prices="claude-5m"),
    "dead weight": trimtab.Settings(early=1, prices="none"),
    "a cold cache": trimtab.Settings(idle_seconds=10**6),
}
"""What makes a cut come before the trigger."""


@pytest.mark.parametrize("name", EARLIER)
def test_what_would_be_cut_before_the_trigger_passes_untouched_in_the_control_arm(
    name: str,
) -> None:
    read = [Step("read", {"path": "a.py"}, "one two three " * 400)] * 2
    steps = [Step("ask", {"n": n}, f"answer {n}: " + f"w{n} " * 600) for n in range(80)]
    body = conversation("anthropic", *steps[:-9], *read, *steps[-9:])
    settings = EARLIER[name] | trimtab.Settings(counter="o200k", window=120_000, reserve=0)
    assert trimtab.Session(settings=settings).fit(body).changed
    control = trimtab.Session(settings=settings | trimtab.Settings(control=1.0))
    assert control.fit(body).request is body


def test_a_control_conversation_that_no_longer_fits_is_fitted_and_counted_as_such() -> None:
    _, body = drawn(0.5, True)
    session = trimtab.Session(**as_keywords(**KEYWORDS, control=0.5))
    fitted = session.fit(body)
    assert fitted.changed
    assert fitted.tokens_after <= facts_of(fitted).capacity
    assert fitted.arm == "control, outgrown"


def test_the_others_are_reduced_as_ever() -> None:
    _, body = drawn(0.5, False)
    with_arm = trimtab.Session(**as_keywords(**KEYWORDS, control=0.5)).fit(body)
    without = trimtab.Session(**as_keywords(**KEYWORDS)).fit(body)
    assert (with_arm.request, with_arm.arm) == (without.request, "treated")
    assert without.arm == ""


def test_a_restart_and_a_store_decide_alike(tmp_path) -> None:
    arms = []
    for store in (None, f"sqlite:///{tmp_path / 'a.db'}", f"sqlite:///{tmp_path / 'a.db'}"):
        found = []
        for seed in range(12):
            session = trimtab.Session(store=store, window="1m", settings=_half())
            found.append(session.fit(request(5, seed)).arm)
            session.close()
        arms.append(found)
    assert arms[0] == arms[1] == arms[2]
    assert set(arms[0]) == {"control", "treated"}


def _half() -> trimtab.Settings:
    return trimtab.Settings(control=0.5)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "half"])
def test_a_share_that_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidSetting, match="control"):
        trimtab.Settings(control=wrong)
