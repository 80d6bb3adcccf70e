"""Anthropic Messages as an HTTP API.

Answers and events are shaped as in the SDK's types and Anthropic's API reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trimtab.formats.anthropic.parts import PARTS
from trimtab_lab.testing.http_apis.base import ApiRoute, ModelReply, arguments, inner, pieces, sse
from trimtab_lab.testing.http_apis.compaction import MadeCompaction
from trimtab_lab.testing.http_apis.refusals import ErrorResponse

format = "anthropic"
stream_type = "text/event-stream; charset=utf-8"
call_id = "toolu_01{hex22}"

_STOPS = {"length": "max_tokens", "window": "model_context_window_exceeded"}


def route(path: str, query: str) -> ApiRoute | None:
    """``…/messages`` and ``…/messages/count_tokens``."""
    match = re.search(r"/messages(/count_tokens)?$", path)
    return ApiRoute("count" if match[1] else "generate") if match else None


def request(body: Any, route: ApiRoute) -> Any:
    """The body itself."""
    return body


def streams(body: Any) -> bool:
    """``"stream": true``."""
    return inner(body, "stream") is True


def response_body(reply: ModelReply) -> Any:
    """One ``message``."""
    return {
        **_envelope(reply),
        "content": list(_content(reply)),
        "stop_reason": _stop(reply),
        "usage": _usage(reply, reply.bill.output),
    }


def _envelope(reply: ModelReply) -> dict[str, Any]:
    dropped = [
        {"type": "thinking_dropped", "path": path, "reason": "prefix_binding_mismatch"}
        for path in reply.dropped
    ]
    return {
        "id": f"msg_01{reply.hex('answer', 22)}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        **({"input_transformations": dropped} if dropped else {}),
    }


def _content(reply: ModelReply) -> Iterator[Any]:
    if reply.compaction is not None:
        yield reply.compaction.block
        if reply.compaction.alone:
            return
    if reply.thinking:
        yield {"type": "thinking", "thinking": reply.thinking, "signature": reply.signature}
    if reply.text:
        yield {"type": "text", "text": reply.text}
    for call in reply.calls:
        yield PARTS.write_call(call.id, call.name, dict(call.arguments))


def _stop(reply: ModelReply) -> str:
    if reply.compaction is not None and reply.compaction.alone:
        return "compaction"
    return _STOPS.get(reply.stop) or ("tool_use" if reply.calls else "end_turn")


def _usage(reply: ModelReply, output: int) -> Any:
    bill, made = reply.bill, reply.compaction
    usage = {
        "input_tokens": bill.fresh,
        "cache_creation_input_tokens": bill.written,
        "cache_read_input_tokens": bill.cached,
        "output_tokens": output,
        "service_tier": "standard",
    }
    if made is None or made.alone:
        return usage
    steps = [{"type": "compaction", **usage}, {"type": "message", **_after(made, usage)}]
    return {**_after(made, usage), "iterations": steps}


def _after(made: MadeCompaction, usage: dict[str, Any]) -> dict[str, Any]:
    """The usage of the step after a compaction, whose prompt is the summary alone."""
    none = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    return {**usage, **none, "input_tokens": len(made.block["content"]) // 4}


def events(reply: ModelReply) -> Iterator[bytes]:
    """``message_start``, a block at a time, ``message_delta``, ``message_stop``."""
    yield _event("message_start", message={**_envelope(reply), "usage": _usage(reply, 1)})
    yield _event("ping")
    for index, block in enumerate(_content(reply)):
        yield _event("content_block_start", index=index, content_block=_opened(block))
        for delta in _deltas(reply, block):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    delta = {"stop_reason": _stop(reply), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage=_usage(reply, reply.bill.output))
    yield _event("message_stop")


def _event(name: str, **fields: Any) -> bytes:
    return sse({"type": name, **fields}, name)


def _opened(block: Any) -> Any:
    """A block in ``content_block_start``: its kind and ids, with empty content."""
    if block["type"] == "compaction":
        return {"type": "compaction", "content": None}
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()}


def _deltas(reply: ModelReply, block: Any) -> Iterator[Any]:
    if block["type"] == "text":
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    elif block["type"] == "thinking":
        for piece in pieces(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif block["type"] == "compaction":
        yield {**block, "type": "compaction_delta"}
    else:
        call = next(call for call in reply.calls if call.id == block["id"])
        for piece in ("", *pieces(arguments(call))):
            yield {"type": "input_json_delta", "partial_json": piece}


def broken(reply: ModelReply, refusal: ErrorResponse) -> Iterator[bytes]:
    """``message_start``, then an ``error`` event."""
    yield _event("message_start", message={**_envelope(reply), "usage": _usage(reply, 1)})
    yield sse(refusal.body, "error")


def counted(tokens: int) -> Any:
    """``{"input_tokens": …}``."""
    return {"input_tokens": tokens}


def headers(number: int, refusal: ErrorResponse | None) -> tuple[tuple[str, str], ...]:
    """``request-id``."""
    return (("request-id", f"req_{number:08x}"),)


def signed(part: Any) -> tuple[str, str] | None:
    """A ``thinking`` block."""
    if inner(part, "type") != "thinking":
        return None
    return str(part.get("thinking", "")), str(part.get("signature", ""))


def drops_unbound(body: Any) -> bool:
    """``thinking.block_binding.prefix_mismatch_behavior``."""
    behaviour = inner(body, "thinking", "block_binding", "prefix_mismatch_behavior")
    return bool(behaviour == "drop_block")
