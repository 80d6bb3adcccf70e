"""A client that empties an old result loses the cache: a batch that is near comes right then.

Knows conversations in five formats that grow by one result a step, and a client that masks old
results in place, as Gemini CLI does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from shapes import FORMATS, MODELS, items_of, request, turn, user

import trimtab
from trimtab import Session

EVERY = pytest.mark.parametrize("format", FORMATS)
MASKED = "<tool_output_masked>\n… [58 lines omitted] …\n</tool_output_masked>"
"""What Gemini CLI puts in place of a result."""
WINDOW_STEPS = 14
"""Steps that fill the window; the target is three tenths of it."""
BATCH, OLD, NEAR = 13, 12, 20
"""The step of the first batch, one that it left whole, and one from which on the next is near: the
trigger is at 22."""


def asked(
    format: str, steps: int, masked: Sequence[int] = (), text: str = MASKED
) -> dict[str, Any]:
    """A request after so many steps; ``masked``: those whose results the client replaced."""
    items = user(format, "Find the bug.")
    for n in range(steps):
        lines = "".join(f"src/mod_{n}.py:{line}: token {line * 7919}\n" for line in range(60))
        given = {"path": f"src/mod_{n}.py"}
        items += turn(format, f"call_{n}", given, text if n in masked else lines, "")
    return request(format, items, MODELS[format])


def opened(format: str, journal: Any = None) -> Session:
    tokens = trimtab.fit(asked(format, WINDOW_STEPS), window=10_000_000).report.tokens_before
    settings = trimtab.Settings(trigger=0.9)
    return Session(window=tokens, reserve=0, target=0.3, settings=settings, journal=journal)


def begun(format: str, steps: int = NEAR - 1) -> Session:
    """A session that has sent so many steps, with one batch among them."""
    session = opened(format)
    batches = [n for n in range(1, steps + 1) if changes(session, asked(format, n))]
    assert batches == [BATCH]
    return session


def changes(session: Session, body: dict[str, Any], **keywords: Any) -> bool:
    """Whether a request gets new edits."""
    return any(edit.new for edit in session.fit(body, **keywords).report.edits)


@EVERY
def test_a_batch_that_is_near_is_made_when_the_client_masks_an_old_result(format: str) -> None:
    assert not changes(begun(format), asked(format, NEAR))
    report = begun(format).fit(asked(format, NEAR, [OLD])).report
    assert any(edit.new for edit in report.edits)
    assert "the client emptied an old result" in str(report)


@EVERY
def test_one_that_is_far_is_not_and_a_result_seen_empty_before_moves_nothing(format: str) -> None:
    session = begun(format, 15)
    for steps in range(16, NEAR + 1):
        assert not changes(session, asked(format, steps, [OLD]))


UNMOVED: dict[str, dict[str, Any]] = {
    "a late one": {"masked": [NEAR - 3]},
    "one that a fold has replaced": {"masked": [0, 1]},
    "another text": {"masked": [OLD], "text": "edited by the client"},
}


@pytest.mark.parametrize("name", UNMOVED)
@EVERY
def test_other_changes_move_no_batch(format: str, name: str) -> None:
    assert not changes(begun(format), asked(format, NEAR, **UNMOVED[name]))


def test_before_the_first_batch_a_request_with_a_masked_result_stays_the_object_it_is() -> None:
    session = opened("anthropic")
    body = asked("anthropic", BATCH - 1, [1])
    assert session.fit(body).request is body


@EVERY
def test_a_restarted_session_does_the_same(format: str) -> None:
    went_on = begun(format)
    before = json.loads(json.dumps(went_on.journal))
    for steps in (NEAR, NEAR + 1):
        body = asked(format, steps, [OLD])
        assert opened(format, before).fit(body).request == went_on.fit(body).request
        before = json.loads(json.dumps(went_on.journal))


@pytest.mark.parametrize(("trigger", "earlier"), [(None, True), (1.0, False)])
def test_with_trigger_1_no_cut_comes_earlier(trigger: float | None, earlier: bool) -> None:
    settings = trimtab.Settings(trigger=trigger)
    whole, masked = (
        begun("gemini").fit(asked("gemini", NEAR, those), settings=settings).report.limits
        for those in ([], [OLD])
    )
    assert (masked["trigger_tokens"] != whole["trigger_tokens"]) is earlier


@EVERY
def test_the_cache_breaks_once_where_it_broke_twice(format: str) -> None:
    session, before, breaks = begun(format), list[Any](), []
    for steps in range(NEAR - 1, NEAR + 5):
        now = items_of(session.fit(asked(format, steps, [OLD] if steps >= NEAR else [])).request)
        if now[: len(before)] != before:
            breaks.append(steps)
        before = now
    assert breaks == [NEAR]


@EVERY
def test_where_the_calls_that_are_left_fit_nothing_is_cut_for_it(format: str) -> None:
    few = trimtab.Settings(trigger=0.9, calls_left=1)
    assert not changes(begun(format), asked(format, NEAR, [OLD]), settings=few)
