"""The recall tool inside LiteLLM's server: what its hooks do with answers and streams.

Knows what LiteLLM hands over; LiteLLM's own server is in world/test_litellm_proxy.py.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from litellm_calls import CALLS, KINDS, arguments
from litellm_errors import BadRequestError

from trimtab.clients.effects import run_async
from trimtab.clients.guard import Guard
from trimtab.clients.litellm_hooks import Requests
from trimtab.clients.litellm_rounds import OWN

HANDLE = re.compile(r'recall\(\\*"(r[a-z2-7]{10})')
REFUSED = "This model's maximum context length is 7500 tokens. However, you requested 9000 tokens."


def called(call: str, name: str, handle: str) -> dict[str, Any]:
    """An answer in which the model calls one tool."""
    written = json.dumps({"handle": handle})
    if call == "anthropic_messages":
        use = {"type": "tool_use", "id": "x1", "name": name, "input": {"handle": handle}}
        usage = {"input_tokens": 5, "output_tokens": 1}
        return {"type": "message", "role": "assistant", "content": [use], "id": "m",
                "stop_reason": "tool_use", "usage": usage}  # fmt: skip
    if call == "aresponses":
        item = {"type": "function_call", "call_id": "x1", "name": name, "arguments": written}
        return {"object": "response", "id": "r", "output": [item], "status": "completed"}
    tool = {"id": "x1", "type": "function", "function": {"name": name, "arguments": written}}
    message = {"role": "assistant", "content": None, "tool_calls": [tool]}
    return {"id": "c", "choices": [
        {"index": 0, "message": message, "finish_reason": "tool_calls"}]}  # fmt: skip


def said(call: str, text: str) -> dict[str, Any]:
    """An answer of words."""
    if call == "anthropic_messages":
        return {"type": "message", "role": "assistant", "id": "m2", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": text}],
                "usage": {"input_tokens": 7, "output_tokens": 2}}  # fmt: skip
    if call == "aresponses":
        part = {"type": "output_text", "text": text, "annotations": []}
        item = {"type": "message", "role": "assistant", "content": [part]}
        return {"object": "response", "id": "r2", "output": [item], "status": "completed"}
    message = {"role": "assistant", "content": text}
    return {"id": "c2", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def tools(call: str) -> list[dict[str, Any]]:
    """What an agent offers."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    if call == "anthropic_messages":
        return [{"name": "read", "input_schema": schema}]
    if call == "aresponses":
        return [{"type": "function", "name": "read", "parameters": schema}]
    return [{"type": "function", "function": {"name": "read", "parameters": schema}}]


def given(call: str, **more: Any) -> dict[str, Any]:
    """The arguments of a request that can have a tool of ours."""
    return {**arguments(call), "store": False, "tools": tools(call), **more}


class LiteLLM:
    """Its functions: they answer with what is given to them, or raise it."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.asked = list(answers), list[dict[str, Any]]()
        self.calls = dict.fromkeys(CALLS, self.answered)

    async def answered(self, **arguments: Any) -> Any:
        self.asked.append(arguments)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def offered(litellm: LiteLLM, call: str, **more: Any) -> tuple[Requests, dict[str, Any], Any]:
    """(the requests, the first round as it was sent, a handle in it)."""
    guard = Guard(window=8_000, recall=True, store="memory:", gateway=True)
    requests = Requests(lambda arguments: guard, litellm.calls)
    sent = requests.fitted(given(call, **more), call)
    found = HANDLE.search(json.dumps(sent))
    return requests, sent, found and found[1]


@KINDS
def test_a_look_up_is_answered_before_the_client_has_the_answer(call):
    litellm = LiteLLM(said(call, "It says 7919."))
    requests, sent, handle = offered(litellm, call)
    assert '"recall"' in json.dumps(sent["tools"])
    rounds = requests.rounds_of("call-1")
    answer = asyncio.run(run_async(rounds.whole(called(call, "recall", handle))))
    assert "It says 7919." in json.dumps(answer)
    assert "recall" not in json.dumps(answer)
    round_two = litellm.asked[0]
    assert "token" in json.dumps(round_two[CALLS[call][1]][-1])
    assert round_two["api_base"] == "http://x"
    assert round_two["litellm_call_id"].startswith(OWN)
    assert requests.fitted(round_two, call) is round_two
    assert requests.rounds_of("call-1") is None


@KINDS
def test_an_answer_without_a_look_up_is_the_very_same_object(call):
    requests, _, handle = offered(LiteLLM(), call)
    for answer in (said(call, "Done."), called(call, "read", handle)):
        offered_again = requests.fitted(given(call), call)
        assert offered_again
        rounds = requests.rounds_of("call-1")
        assert asyncio.run(run_async(rounds.whole(answer))) is answer


@KINDS
def test_the_next_request_has_what_the_client_did_not_see(call):
    litellm = LiteLLM(said(call, "It says 7919."))
    requests, _, handle = offered(litellm, call)
    rounds = requests.rounds_of("call-1")
    answer = asyncio.run(run_async(rounds.whole(called(call, "recall", handle))))
    key = CALLS[call][1]
    later = given(call, litellm_call_id="call-2")
    visible = {
        "acompletion": lambda: [answer["choices"][0]["message"]],
        "anthropic_messages": lambda: [{"role": "assistant", "content": answer["content"]}],
        "aresponses": lambda: answer["output"],
    }[call]()
    later[key] = [*later[key], *visible, {"role": "user", "content": "Go on."}]
    assert "x1" in json.dumps(requests.fitted(later, call)[key])


@KINDS
def test_a_refused_later_round_is_sent_again_smaller(call):
    litellm = LiteLLM(BadRequestError(REFUSED), said(call, "It says 7919."))
    requests, _, handle = offered(litellm, call)
    rounds = requests.rounds_of("call-1")
    answer = asyncio.run(run_async(rounds.whole(called(call, "recall", handle))))
    assert "It says 7919." in json.dumps(answer)
    first, second = (len(json.dumps(one[CALLS[call][1]])) for one in litellm.asked)
    assert second < first


@KINDS
def test_a_later_round_that_stays_refused_is_the_clients_error(call):
    litellm = LiteLLM(*[BadRequestError("Your account is closed.", "closed")] * 9)
    requests, _, handle = offered(litellm, call)
    rounds = requests.rounds_of("call-1")
    with pytest.raises(BadRequestError, match="closed"):
        asyncio.run(run_async(rounds.whole(called(call, "recall", handle))))


@KINDS
def test_a_tool_that_the_provider_refuses_is_left_out_of_the_next_attempt(call):
    requests, sent, _ = offered(LiteLLM(), call)
    requests.refused(
        sent, BadRequestError("tools: this model takes none", "invalid_request_error"), call
    )
    again = requests.fitted(given(call), call)
    assert '"recall"' not in json.dumps(again["tools"])
    assert requests.rounds_of("call-1") is None


@KINDS
def test_no_tool_is_offered_where_nobody_could_answer_it(call):
    stays = [{"tool_choice": "required" if call != "anthropic_messages" else {"type": "any"}},
             {"tools": None}, {"litellm_call_id": ""}]  # fmt: skip
    if call == "aresponses":
        stays.append({"store": True})
    for more in stays:
        requests, sent, _ = offered(LiteLLM(), call, **more)
        assert '"recall"' not in json.dumps(sent.get("tools"))
        assert requests.rounds_of("call-1") is None


async def as_stream(items: list[bytes]) -> AsyncIterator[bytes]:
    for item in items:
        yield item


def events(*blocks: dict[str, Any], end: str) -> list[bytes]:
    """A stream of Anthropic's with these blocks."""
    rows: list[dict[str, Any]] = [{"type": "message_start", "message": {
        "id": "m", "role": "assistant", "content": [], "usage": {"input_tokens": 1}}}]  # fmt: skip
    for index, block in enumerate(blocks):
        text = block.get("text")
        empty = {**block, "text": ""} if text else {**block, "input": {}}
        delta = {"type": "text_delta", "text": text} if text else {
            "type": "input_json_delta", "partial_json": json.dumps(block["input"])}  # fmt: skip
        rows += [
            {"type": "content_block_start", "index": index, "content_block": empty},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    rows += [{"type": "message_delta", "delta": {"stop_reason": end}}, {"type": "message_stop"}]
    return [f"event: {row['type']}\ndata: {json.dumps(row)}\n\n".encode() for row in rows]


def test_a_stream_goes_on_with_the_next_round_and_what_came_is_shown_at_once():
    call = "anthropic_messages"
    text = {"type": "text", "text": "Let me look."}
    litellm = LiteLLM(as_stream(events({"type": "text", "text": "It says 7919."}, end="end_turn")))
    requests, _, handle = offered(litellm, call, stream=True)
    use = {"type": "tool_use", "id": "x1", "name": "recall", "input": {"handle": handle}}
    first = events(text, use, end="tool_use")
    rounds = requests.rounds_of("call-1")

    async def shown() -> list[bytes]:
        return [item async for item in rounds.streamed(as_stream(first))]

    items = asyncio.run(shown())
    assert b"Let me look." in items[2]  # as soon as it came
    whole = b"".join(items)
    assert b"recall" not in whole
    assert whole.count(b"event: message_start") == whole.count(b"event: message_stop") == 1
    assert b"It says 7919." in whole
