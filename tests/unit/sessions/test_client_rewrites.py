"""A client that rewrites its own history loses the cache: a batch that is near comes right then.

Knows conversations in five formats that grow by one result a step, and a client that masks old
results in place, as Gemini CLI does.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any

import pytest
from five_formats import FORMATS, MODELS, items_of, request, turn, user

import trimtab
from trimtab import Session

STEPS = 20
MASKED = "<tool_output_masked>\n… [58 lines omitted] …\n</tool_output_masked>"
"""What Gemini CLI puts in place of a result."""
EVERY = pytest.mark.parametrize("format", FORMATS)


def asked(
    format: str, steps: int, masked: Any = (), first: str = "Find the bug.", name: str = "mod"
) -> dict[str, Any]:
    """A request after so many steps; ``masked``: those whose results the client has masked."""
    items = user(format, first)
    for n in range(steps):
        text = "".join(f"src/{name}_{n}.py:{line}: token {line * 7919}\n" for line in range(60))
        given = {"path": f"src/{name}_{n}.py"}
        items += turn(format, f"call_{name}_{n}", given, MASKED if n in masked else text, "")
    return request(format, items, MODELS[format])


def begun(format: str, share: float = 0.85) -> Session:
    """A session that has sent all steps but the last: with it, ``share`` of the window is full,
    which is below the trigger."""
    tokens = trimtab.fit(asked(format, STEPS), window=10_000_000).report.tokens_before
    session = Session(window=int(tokens / share), reserve=0)
    for steps in range(1, STEPS):
        assert not session.fit(asked(format, steps)).report.edits
    return session


@EVERY
def test_a_batch_that_is_near_is_made_when_the_client_masks_an_old_result(format: str) -> None:
    assert not begun(format).fit(asked(format, STEPS)).report.edits
    report = begun(format).fit(asked(format, STEPS, masked=[1])).report
    assert any(edit.new for edit in report.edits)
    assert "the client rewrote its history" in str(report)


@EVERY
def test_a_batch_that_is_far_is_not(format: str) -> None:
    assert not begun(format, 0.6).fit(asked(format, STEPS, masked=[1])).report.edits


@EVERY
def test_a_late_change_costs_little_and_is_none(format: str) -> None:
    assert not begun(format).fit(asked(format, STEPS, masked=[STEPS - 4])).report.edits


def fork(format: str, body: dict[str, Any]) -> dict[str, Any]:
    return asked(format, STEPS, name="lib")


def mark_moved(format: str, body: dict[str, Any]) -> dict[str, Any]:
    items_of(body)[2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    return body


@pytest.mark.parametrize("changed", [fork, mark_moved])
def test_what_is_no_rewrite_moves_no_batch(changed: Any) -> None:
    body = copy.deepcopy(asked("anthropic", STEPS))
    assert not begun("anthropic").fit(changed("anthropic", body)).report.edits


@EVERY
def test_a_result_that_a_fold_has_replaced_may_be_masked_without_a_new_batch(format: str) -> None:
    tokens = trimtab.fit(asked(format, STEPS), window=10_000_000).report.tokens_before
    session = Session(window=tokens, reserve=0)
    steps = next(n for n in itertools.count(1) if session.fit(asked(format, n)).report.edits)
    whole = session.fit(asked(format, steps + 1)).report
    masked = session.fit(asked(format, steps + 2, masked=[0, 1])).report
    assert not any(edit.new for edit in (*whole.edits, *masked.edits))


@pytest.mark.parametrize(("preset", "earlier"), [("balanced", True), ("manual", False)])
def test_a_preset_with_a_trigger_of_its_own_keeps_it(preset: Any, earlier: bool) -> None:
    whole, masked = (
        begun("openai-chat").fit(asked("openai-chat", STEPS, those), preset=preset).report.limits
        for those in ([], [1])
    )
    assert (masked["trigger_tokens"] < whole["trigger_tokens"]) is earlier  # type: ignore[operator]


@EVERY
def test_one_break_instead_of_two_where_a_client_masks_shortly_before_a_batch(format: str) -> None:
    tokens = trimtab.fit(asked(format, 14), window=10_000_000).report.tokens_before
    session, before, breaks = Session(window=tokens, reserve=0, target=0.3), list[Any](), []
    for steps in range(1, 20):
        masked = range(2) if steps >= 12 else ()
        now = items_of(session.fit(asked(format, steps, masked)).request)
        if now[: len(before)] != before:
            breaks.append(steps)
        before = now
    assert breaks == [12]
