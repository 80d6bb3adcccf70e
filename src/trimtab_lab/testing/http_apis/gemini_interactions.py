"""Gemini Interactions as an HTTP API.

Answers and events are shaped as in google-genai's types (3.4) and Google's API reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trimtab.formats.gemini_interactions.parts import CONTENT, PARTS
from trimtab_lab.testing.http_apis.answers import Call
from trimtab_lab.testing.http_apis.base import (
    ApiRoute,
    ModelReply,
    arguments,
    inner,
    no_headers,
    no_such_option,
    pieces,
    sse,
    unsigned,
)
from trimtab_lab.testing.http_apis.refusals import ErrorResponse

format = "gemini-interactions"
stream_type = "text/event-stream"
call_id = "call_{hex12}"
previous = "previous_interaction_id"
states = ("previous_interaction_id",)
"""Keys that name a history kept by the server."""


def route(path: str, query: str) -> ApiRoute | None:
    """``…/interactions``."""
    return ApiRoute("generate") if re.search(r"/interactions$", path) else None


def request(body: Any, route: ApiRoute) -> Any:
    """The body itself."""
    return body


def streams(body: Any) -> bool:
    """``"stream": true``."""
    return inner(body, "stream") is True


def reply_id(reply: ModelReply) -> str:
    """The id of this answer, which ``previous_interaction_id`` may name later."""
    return f"interaction-{reply.hex('answer', 40)}"


def output(reply: ModelReply) -> list[Any]:
    """The steps: a thought, words, calls."""
    steps: list[Any] = []
    if reply.thinking:
        summary = [{"type": "text", "text": reply.thinking}]
        steps.append({"type": "thought", "signature": reply.signature, "summary": summary})
    if reply.text:
        content = [{"type": "text", "text": reply.text}]
        steps.append({"type": "model_output", "content": content})
    calls = (PARTS.write_call(call.id, call.name, dict(call.arguments)) for call in reply.calls)
    return [*steps, *calls]


def response_body(reply: ModelReply) -> Any:
    """One interaction."""
    status = "incomplete" if reply.stop else "requires_action" if reply.calls else "completed"
    return {**_begun(reply), "status": status, "steps": output(reply), "usage": _usage(reply)}


def _begun(reply: ModelReply) -> dict[str, Any]:
    before = reply.request.get(previous)
    made = {"id": reply_id(reply), "object": "interaction", "model": reply.model}
    made |= {"created": "2026-01-01T00:00:00Z", "updated": "2026-01-01T00:00:00Z"}
    return {**made, previous: before} if before else made


def _usage(reply: ModelReply) -> Any:
    bill = reply.bill
    return {
        "total_input_tokens": bill.input,
        "total_cached_tokens": bill.cached,
        "total_output_tokens": bill.output - bill.thinking,
        "total_thought_tokens": bill.thinking,
        "total_tokens": bill.input + bill.output,
    }


def events(reply: ModelReply) -> Iterator[bytes]:
    """``interaction.created``, the steps in pieces, ``interaction.completed``."""
    yield from _opening(reply)
    for index, step in enumerate(output(reply)):
        yield _event("step.start", index=index, step=_opened(step))
        for delta in _deltas(step):
            yield _event("step.delta", index=index, delta=delta)
        yield _event("step.stop", index=index)
    done = response_body(reply)
    yield _event("interaction.completed", interaction={**done, "steps": None})
    yield b"event: done\ndata: [DONE]\n\n"


def _opening(reply: ModelReply) -> Iterator[bytes]:
    begun = {**_begun(reply), "status": "in_progress"}
    yield _event("interaction.created", interaction=begun)
    update = {"interaction_id": begun["id"], "status": "in_progress"}
    yield _event("interaction.status_update", **update)


def _event(name: str, **fields: Any) -> bytes:
    return sse({"event_type": name, **fields}, name)


def _opened(step: Any) -> Any:
    """A step in ``step.start``, with empty content."""
    if step["type"] == "function_call":
        return {**step, "arguments": {}}
    return {"type": step["type"]}


def _deltas(step: Any) -> Iterator[Any]:
    if step["type"] == "function_call":
        text = arguments(Call(step["name"], step["arguments"]))
        yield from ({"type": "arguments_delta", "arguments": piece} for piece in pieces(text))
    elif step["type"] == "thought":
        yield {"type": "thought_summary", "content": step["summary"][0]}
        yield {"type": "thought_signature", "signature": step["signature"]}
    else:
        for piece in pieces(step["content"][0]["text"]):
            yield {"type": "text", "text": piece}


def broken(reply: ModelReply, refusal: ErrorResponse) -> Iterator[bytes]:
    """An ``error`` event behind the opening ones (google-genai: ErrorEvent)."""
    yield from _opening(reply)
    error = {"code": refusal.code or "invalid_request", "message": refusal.message}
    yield _event("error", error=error)


def counted(tokens: int) -> Any:
    """Unused: nothing is counted at this path."""
    return {"totalTokens": tokens}


def history(body: Any) -> list[Any]:
    """The steps of the input; a text or contents are one step of the user."""
    given = inner(body, "input")
    if isinstance(given, str):
        given = [{"type": "text", "text": given}]
    if isinstance(given, dict):
        given = [given]
    if not isinstance(given, list) or not given:
        return []
    if inner(given[0], "type") in CONTENT:
        return [{"type": "user_input", "content": given}]
    return given


headers, signed, drops_unbound = no_headers, unsigned, no_such_option
