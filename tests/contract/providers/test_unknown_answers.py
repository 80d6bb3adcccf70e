"""A call that only an unknown part names: untouched at the entrance, answered after the refusal.

Knows the providers' own words (each quoted in ``provider_errors``), and writes requests by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from flow_driver import played

import trimtab
from trimtab.retry.flow import Accepted, Refused, flow
from trimtab.retry.learned_limits import key_for
from trimtab.sessions.edit_history import take_back

HERE = key_for("api.example.com", "m")
INTERRUPTED = "interrupted"


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def chat(call_id: str, model: str) -> dict[str, Any]:
    call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
    return {"model": model, "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "user", "content": [{"type": "tool_approval", "tool_call_id": call_id},
                                     said("Go on.")]},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "and?"},
    ]}  # fmt: skip


def anthropic(call_id: str, model: str) -> dict[str, Any]:
    return {"model": model, "max_tokens": 99, "messages": [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": call_id, "name": "read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_approval", "tool_use_id": call_id},
                                     said("Go on.")]},
        {"role": "assistant", "content": [said("a")]},
        {"role": "user", "content": "and?"},
    ]}  # fmt: skip


def responses(call_id: str, model: str) -> dict[str, Any]:
    return {"model": model, "input": [
        {"role": "user", "content": "q"},
        {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"},
        {"type": "tool_approval", "approved_id": call_id},
        {"role": "user", "content": "Go on."},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "and?"},
    ]}  # fmt: skip


def bedrock(call_id: str, model: str) -> dict[str, Any]:
    spec = {"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}
    return {"modelId": model, "toolConfig": {"tools": [spec]}, "messages": [
        {"role": "user", "content": [{"text": "q"}]},
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": call_id, "name": "read", "input": {}}}]},
        {"role": "user", "content": [{"toolApproval": {"toolUseId": call_id}}, {"text": "Go on."}]},
        {"role": "assistant", "content": [{"text": "a"}]},
        {"role": "user", "content": [{"text": "and?"}]},
    ]}  # fmt: skip


def gemini(call_id: str, model: str) -> dict[str, Any]:
    return {"model": model, "contents": [
        {"role": "user", "parts": [{"text": "q"}]},
        {"role": "model", "parts": [{"functionCall": {"id": call_id, "name": "read", "args": {}}}]},
        {"role": "user", "parts": [{"toolApproval": {"id": call_id}}, {"text": "Go on."}]},
        {"role": "model", "parts": [{"text": "a"}]},
        {"role": "user", "parts": [{"text": "and?"}]},
    ]}  # fmt: skip


def interactions(call_id: str, model: str) -> dict[str, Any]:
    return {"model": model, "input": [
        {"type": "user_input", "content": [said("q")]},
        {"type": "function_call", "id": call_id, "name": "read", "arguments": {}},
        {"type": "tool_approval", "call_id": call_id},
        {"type": "user_input", "content": [said("Go on.")]},
        {"type": "model_output", "content": [said("a")]},
        {"type": "user_input", "content": [said("and?")]},
    ]}  # fmt: skip


ANTHROPIC = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: {}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
BEGIN_WITH = (
    "messages.2: Did not find 1 `tool_result` block(s) at the beginning of this message. Messages "
    "following `tool_use` blocks must begin with a matching number of `tool_result` blocks."
)
MINIMAX = "invalid params, tool call result does not follow tool call (2013)"
CHAT = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {}"
)
INSUFFICIENT = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. (insufficient tool messages following tool_calls message)"
)
DASHSCOPE = "<400> InternalError.Algo.InvalidParameter: " + CHAT
MISTRAL = "Not the same number of function calls and responses"
COUNTS = (
    "Please ensure that the number of function response parts is equal to the number of function "
    "call parts of the function call turn."
)
CASES: list[tuple[str, Any, str, str]] = [
    ("openai-chat", chat, "gpt-5.1", CHAT),
    ("openai-chat", chat, "deepseek-chat", INSUFFICIENT),
    ("openai-chat", chat, "qwen3-coder-plus", DASHSCOPE),
    ("openai-chat", chat, "some-model", MISTRAL),
    ("openai-responses", responses, "gpt-5.1", "No tool output found for function call {}."),
    ("anthropic", anthropic, "claude-opus-5", ANTHROPIC),
    ("anthropic", anthropic, "claude-sonnet-4-5", BEGIN_WITH),
    ("anthropic", anthropic, "MiniMax-M2", MINIMAX),
    ("bedrock", bedrock, "amazon.nova-pro-v1:0",
     "Expected toolResult blocks at messages.2.content for the following Ids: {}"),
    ("bedrock", bedrock, "anthropic.claude-sonnet-4-5-v1:0", BEGIN_WITH),
    ("gemini", gemini, "gemini-3-pro", COUNTS),
    ("gemini-interactions", interactions, "gemini-3-pro", COUNTS),
]  # fmt: skip
EVERY = pytest.mark.parametrize(
    ("format", "request_of", "model", "words"), CASES, ids=[f"{c[0]}-{c[2]}" for c in CASES]
)


def refusal(words: str) -> dict[str, Any]:
    return {"error": {"message": words.format("t1"), "type": "invalid_request_error"}}


def answer(words: str) -> Any:
    """A provider that takes the call only with a result."""

    def replied(request: Any) -> Refused | Accepted:
        if INTERRUPTED in json.dumps(request):
            return Accepted()
        return Refused(400, refusal(words))

    return replied


def leaves(value: Any) -> Iterator[tuple[str, Any]]:
    """(key, value) of everything that is neither an object nor a list, in order."""
    for key, item in value.items() if isinstance(value, dict) else (("", one) for one in value):
        if isinstance(item, (dict, list)):
            yield from leaves(item)
        else:
            yield key, item


@EVERY
def test_a_call_that_an_unknown_part_names_is_answered_after_the_refusal_that_names_it(
    format: str, request_of: Any, model: str, words: str
) -> None:
    request = request_of("t1", model)
    session = trimtab.Session(window=10**6)

    def ask() -> list[Any]:
        run = flow(request, session.fit, key=HERE, undo=partial(take_back, session))
        done, sent = played(run, answer(words))
        assert done.accepted
        return sent

    sent = ask()
    assert len(sent) == 2
    assert sent[0] is request  # it may be the answer: nothing is made up before a refusal
    second = leaves(sent[1])
    assert all(leaf in second for leaf in leaves(request))  # no id renamed, nothing taken or moved
    assert trimtab.check(sent[1], format=format) == ()
    assert ask() == sent[1:]  # remembered for this conversation


@EVERY
def test_who_sends_by_hand_gets_the_same_repair(
    format: str, request_of: Any, model: str, words: str
) -> None:
    session = trimtab.Session(window=10**6)
    fitted = session.fit(request_of("t1", model))
    again = session.refused((400, refusal(words)), fitted)
    assert again is not None
    assert INTERRUPTED in json.dumps(again.request)


def test_an_item_behind_the_model_s_next_message_is_no_answer_of_a_call_before_it() -> None:
    request = responses("t1", "gpt-5.1")
    request["input"].append(request["input"].pop(2))
    fitted = trimtab.fit(request, window=10**6)
    assert INTERRUPTED in json.dumps(fitted.request)
