"""A result that nobody asked for is taken out, and nobody gets a word put in their mouth for it.

What was sent should stay: nothing moves while the conversation goes on.
"""

from __future__ import annotations

import json
from typing import Any

import judge_responses
import pytest
from responses_cases import call, output, said, thought, user

import trimtab
from trimtab.formats.repair.content import PLACEHOLDER

SECRET = "the password is hunter2"


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


@pytest.mark.parametrize("reasons", [False, True], ids=["calls", "reasoning and calls"])
def test_what_was_sent_stays_while_the_turn_goes_on(reasons: bool) -> None:
    items = [user(), *step("a", reasons), output("gone")]
    before = sent(items)
    assert before == items[:-1]
    for name in "bcd":
        items += step(name, reasons)
        now = sent(items)
        assert now[: len(before)] == before
        before = now


def test_other_items_stay_as_they_are() -> None:
    lone = output("gone")
    for items in (
        [user(), thought(), lone, call(id="fc_1"), output()],
        [user(), thought(), call("a", id="fc_1"), lone, call("b"), output("a"), output("b")],
        [user(), thought(), said(id="msg_1"), lone, call(id="fc_1"), output()],
        [user(), call("a"), output("gone"), call("b"), output("a"), output("b"), user()],
    ):
        assert sent(items) == [item for item in items if item != lone]


def anthropic(*blocks: Any) -> dict[str, Any]:
    spoken = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": "I looked."},
        {"role": "user", "content": list(blocks)},
        {"role": "assistant", "content": "And?"},
        {"role": "user", "content": "Go on."},
    ]
    return {"model": "claude-opus-5", "max_tokens": 99, "messages": spoken}


def bedrock(*blocks: Any) -> dict[str, Any]:
    spoken = [
        {"role": m["role"], "content": [{"text": m["content"]}] if isinstance(m["content"], str)
         else m["content"]} for m in anthropic(*blocks)["messages"]
    ]  # fmt: skip
    tool = {"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}
    return {"modelId": "amazon.nova-pro-v1:0", "messages": spoken, "toolConfig": {"tools": [tool]}}


def chat(*results: Any) -> dict[str, Any]:
    spoken = anthropic()["messages"]
    return {"model": "gpt-5.1", "messages": [*spoken[:2], *results, *spoken[3:]]}


def gemini(*parts: Any) -> dict[str, Any]:
    def said(role: str, text: str) -> dict[str, Any]:
        return {"role": role, "parts": [{"text": text}]}

    spoken = [
        said("user", "Look."),
        said("model", "I looked."),
        {"role": "user", "parts": [*parts]},
    ]
    return {"contents": [*spoken, said("model", "And?"), said("user", "Go on.")]}


def interactions(*steps: Any) -> dict[str, Any]:
    asked = {"type": "user_input", "content": [{"type": "text", "text": "Look."}]}
    told = {"type": "model_output", "content": [{"type": "text", "text": "I looked."}]}
    return {"model": "gemini-3.8-flash", "input": [asked, told, *steps, asked]}


RESULT = {"type": "tool_result", "tool_use_id": "gone", "content": SECRET}
BEDROCK_RESULT = {"toolResult": {"toolUseId": "gone", "content": [{"text": SECRET}]}}
RESPONSE = {"functionResponse": {"name": "read", "response": {"result": SECRET}}}
WORDS = {"type": "text", "text": "and now?"}
ORPHANS = {
    "anthropic": (anthropic(RESULT), True),
    "anthropic, beside words": (anthropic(RESULT, WORDS), False),
    "bedrock": (bedrock(BEDROCK_RESULT), True),
    "bedrock, beside words": (bedrock(BEDROCK_RESULT, {"text": "and now?"}), False),
    "chat": (chat({"role": "tool", "tool_call_id": "gone", "content": SECRET}), False),
    "gemini": (gemini(RESPONSE), True),
    "interactions": (
        interactions({"type": "function_result", "call_id": "gone", "result": SECRET}), False
    ),
    "responses": (
        {"model": "gpt-5.5", "input": [user(), said(), output("gone", SECRET), user()]}, False
    ),
}  # fmt: skip


@pytest.mark.row("D4", "E6")
@pytest.mark.parametrize(("request_", "empties"), ORPHANS.values(), ids=ORPHANS)
def test_nobody_says_a_word_for_a_result_that_is_gone(request_: Any, empties: bool) -> None:
    repaired = trimtab.repair(request_)
    after = json.dumps(repaired.request)
    assert SECRET not in after
    before = {*_texts(request_), "text"}  # the type of a block
    assert set(_texts(repaired.request)) - before == ({PLACEHOLDER} if empties else set())
    assert trimtab.check(repaired.request) == ()
    (repair,) = (one for one in repaired.report.repairs if one.handle)
    assert SECRET in repaired.recall(repair.handle)
    assert trimtab.repair(repaired.request).request is repaired.request


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, (dict, list)):
        return []
    inner = value.values() if isinstance(value, dict) else value
    return [text for one in inner for text in _texts(one)]
