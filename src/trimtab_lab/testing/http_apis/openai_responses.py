"""OpenAI Responses as an HTTP API.

Answers and events are shaped as in the SDK's types and OpenAI's API reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from trimtab_lab.testing.http_apis.base import (
    ApiRoute,
    ModelReply,
    arguments,
    inner,
    no_such_option,
    pieces,
    request_id,
    sse,
)
from trimtab_lab.testing.http_apis.refusals import ErrorResponse

format = "openai-responses"
stream_type = "text/event-stream; charset=utf-8"
call_id = "call_{hex24}"
states = ("previous_response_id", "conversation")
"""Keys that name a history kept by the server."""


def route(path: str, query: str) -> ApiRoute | None:
    """``…/responses`` and ``…/responses/input_tokens``."""
    match = re.search(r"/responses(/input_tokens)?$", path)
    return ApiRoute("count" if match[1] else "generate") if match else None


def request(body: Any, route: ApiRoute) -> Any:
    """The body itself."""
    return body


def streams(body: Any) -> bool:
    """``"stream": true``."""
    return inner(body, "stream") is True


def reply_id(reply: ModelReply) -> str:
    """The id of this answer, which ``previous_response_id`` may name later."""
    return f"resp_{reply.hex('answer', 48)}"


def output(reply: ModelReply) -> list[Any]:
    """The output items: a compaction, reasoning, message, calls."""
    items: list[Any] = [] if reply.compaction is None else [reply.compaction.block]
    if reply.thinking:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append(
            {
                "id": f"rs_{reply.hex('reasoning', 48)}",
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": reply.signature,
            }
        )
    if reply.text:
        items.append(
            {
                "id": f"msg_{reply.hex('message', 48)}",
                "type": "message",
                "status": "completed",
                "role": "assistant",
                "content": [_text(reply.text)],
            }
        )
    for index, call in enumerate(reply.calls):
        items.append(
            {
                "id": f"fc_{reply.hex(f'call {index}', 48)}",
                "type": "function_call",
                "status": "completed",
                "call_id": call.id,
                "name": call.name,
                "arguments": arguments(call),
            }
        )
    return items


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def response_body(reply: ModelReply) -> Any:
    cut = {"reason": "max_output_tokens"} if reply.stop else None
    status = "incomplete" if cut else "completed"
    return _response(reply, status, output(reply), incomplete_details=cut, usage=_usage(reply))


def _response(reply: ModelReply, status: str, items: list[Any], **more: Any) -> dict[str, Any]:
    body = reply.request
    return {
        "id": reply_id(reply),
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": reply.model,
        "output": items,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None},
        "store": body.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": 1.0,
        "truncation": body.get("truncation") or "disabled",
        "usage": None,
        "user": None,
        "metadata": {},
        **more,
    }


def _usage(reply: ModelReply) -> Any:
    bill = reply.bill
    return {
        "input_tokens": bill.input,
        "input_tokens_details": {
            "cached_tokens": bill.cached,
            **({"cache_write_tokens": bill.written} if bill.written else {}),
        },
        "output_tokens": bill.output,
        "output_tokens_details": {"reasoning_tokens": bill.thinking},
        "total_tokens": bill.input + bill.output,
    }


Event = tuple[str, dict[str, Any]]


def _numbered(events: Iterator[Event]) -> Iterator[bytes]:
    numbers = count()
    for name, fields in events:
        yield sse({"type": name, "sequence_number": next(numbers), **fields}, name)


def events(reply: ModelReply) -> Iterator[bytes]:
    """``response.created`` … ``response.completed``, each event with its sequence number."""
    return _numbered(_events(reply))


def _begin(reply: ModelReply) -> Iterator[Event]:
    for name in ("response.created", "response.in_progress"):
        yield name, {"response": _response(reply, "in_progress", [])}


def _events(reply: ModelReply) -> Iterator[Event]:
    yield from _begin(reply)
    for index, item in enumerate(output(reply)):
        where = {"output_index": index}
        yield "response.output_item.added", {**where, "item": _opened(item)}
        yield from _item_events(item, {"item_id": item["id"], **where})
        yield "response.output_item.done", {**where, "item": item}
    done = response_body(reply)
    yield f"response.{done['status']}", {"response": done}


def _opened(item: Any) -> Any:
    """An item in ``response.output_item.added``, with empty content."""
    empty: dict[str, Any] = {"content": [], "summary": [], "arguments": ""}
    started = {key: empty.get(key, value) for key, value in item.items()}
    return {**started, "status": "in_progress"} if "status" in item else started


def _item_events(item: Any, where: dict[str, Any]) -> Iterator[Event]:
    if item["type"] == "compaction":
        return
    if item["type"] == "function_call":
        for piece in pieces(item["arguments"]):
            yield "response.function_call_arguments.delta", {**where, "delta": piece}
        done = {"name": item["name"], "arguments": item["arguments"]}
        yield "response.function_call_arguments.done", {**where, **done}
        return
    reasons = item["type"] == "reasoning"
    part = item["summary" if reasons else "content"][0]
    at = {**where, "summary_index" if reasons else "content_index": 0}
    name = "response.reasoning_summary" if reasons else "response.output"
    frame = "response.reasoning_summary_part" if reasons else "response.content_part"
    more: dict[str, Any] = {} if reasons else {"logprobs": []}
    yield f"{frame}.added", {**at, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield f"{name}_text.delta", {**at, "delta": piece, **more}
    yield f"{name}_text.done", {**at, "text": part["text"], **more}
    yield f"{frame}.done", {**at, "part": part}


def broken(reply: ModelReply, refusal: ErrorResponse) -> Iterator[bytes]:
    """``response.failed`` behind the two opening events (captured in openai/codex PR #4675)."""
    error = {"code": refusal.code or "server_error", "message": refusal.message}

    def events() -> Iterator[Event]:
        yield from _begin(reply)
        yield "response.failed", {"response": _response(reply, "failed", [], error=error)}

    return _numbered(events())


def counted(tokens: int) -> Any:
    """``response.input_tokens``."""
    return {"object": "response.input_tokens", "input_tokens": tokens}


def signed(part: Any) -> tuple[str, str] | None:
    """A reasoning item with encrypted content."""
    if inner(part, "type") != "reasoning" or not isinstance(part.get("encrypted_content"), str):
        return None
    summary = part.get("summary")
    texts = [inner(piece, "text") for piece in summary] if isinstance(summary, list) else []
    return "".join(text for text in texts if isinstance(text, str)), part["encrypted_content"]


def history(body: Any) -> list[Any]:
    """The input items; a text is one message of the user."""
    items = inner(body, "input")
    if isinstance(items, str):
        return [{"type": "message", "role": "user", "content": items}]
    return items if isinstance(items, list) else []


headers, drops_unbound = request_id, no_such_option
