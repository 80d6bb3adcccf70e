"""Where the note about a result that nobody asked for stands, in histories of items.

What was sent should stay: the note may not move while the conversation goes on.
"""

from __future__ import annotations

from typing import Any

import judge_responses
import pytest
from responses_cases import call, output, said, thought, user

import trimtab


def step(name: str, reasons: bool) -> list[Any]:
    """The model thinks, where it does, and calls; the tool answers."""
    before = [thought(f"rs_{name}")] if reasons else []
    return [*before, call(name, id=f"fc_{name}"), output(name)]


def sent(items: list[Any]) -> list[Any]:
    body = {"model": "gpt-5.5", "input": items}
    repaired: Any = trimtab.repair(body).request
    assert judge_responses.problems(repaired) == []
    assert judge_responses.thought_problems(body, repaired) == []
    return list(repaired["input"])


def is_note(item: Any) -> bool:
    return item.get("role") == "user" and "taken out" in str(item)


@pytest.mark.parametrize("reasons", [False, True], ids=["calls", "reasoning and calls"])
def test_the_note_stands_still_while_the_turn_goes_on(reasons: bool) -> None:
    items = [user(), *step("a", reasons), output("gone")]
    before = sent(items)
    assert is_note(before[-1])
    for name in "bcd":
        items += step(name, reasons)
        now = sent(items)
        assert now[: len(before)] == before
        before = now


def test_the_note_stands_still_in_interactions() -> None:
    def found(name: str) -> list[Any]:
        asked = {"type": "function_call", "id": name, "name": "read", "arguments": {}}
        return [
            {"type": "thought", "signature": "c2VhbA=="},
            asked,
            {"type": "function_result", "call_id": name, "name": "read", "result": "found"},
        ]

    asked = {"type": "user_input", "content": [{"type": "text", "text": "Look."}]}
    items = [asked, *found("a"), {**found("gone")[2], "result": "precious"}]
    before: Any = trimtab.repair({"model": "gemini-3.8-flash", "input": items}).request["input"]
    assert "taken out" in str(before[-1])
    items += [*found("b"), *found("c")]
    now: Any = trimtab.repair({"model": "gemini-3.8-flash", "input": items}).request["input"]
    assert now[: len(before)] == before


def test_nothing_comes_between_reasoning_or_a_call_and_what_belongs_to_it() -> None:
    lone = output("gone")
    for items in (
        [user(), thought(), lone, call(id="fc_1"), output()],
        [user(), thought(), lone, thought("rs_2"), call(id="fc_1"), output()],
        [user(), thought(), call("a", id="fc_1"), lone, call("b"), output("a"), output("b")],
        [user(), thought(), said(id="msg_1"), lone, call(id="fc_1"), output()],
        [user(), thought(), call("a", id="fc_1"), output("a"), lone, call("b"), output("b")],
    ):
        assert [is_note(item) for item in sent(items)] == [False] * (len(items) - 1) + [True]


def test_nothing_comes_between_calls_and_their_results() -> None:
    items = [user(), call("a"), output("gone"), call("b"), output("a"), output("b"), user()]
    assert [is_note(item) for item in sent(items)] == [False] * 5 + [True, False]
