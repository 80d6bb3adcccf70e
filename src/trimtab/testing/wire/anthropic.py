"""Anthropic Messages as an HTTP API.

Knows the shapes of its answers and events (the SDK's types, Anthropic's API reference).  Knows no
rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trimtab.testing.refusals import Refusal
from trimtab.testing.wire.base import Reply, Route, arguments, inner, pieces, sse

format = "anthropic"
stream_type = "text/event-stream; charset=utf-8"
call_id = "toolu_01{hex22}"

_STOPS = {"length": "max_tokens", "window": "model_context_window_exceeded"}


def route(path: str, query: str) -> Route | None:
    """``…/messages`` and ``…/messages/count_tokens``."""
    found = re.search(r"/messages(/count_tokens)?$", path)
    return Route("count" if found[1] else "generate") if found else None


def request(body: Any, route: Route) -> Any:
    """The body itself."""
    return body


def streams(body: Any) -> bool:
    """``"stream": true``."""
    return inner(body, "stream") is True


def whole(reply: Reply) -> Any:
    """One ``message``."""
    return {
        **_envelope(reply),
        "content": list(_content(reply)),
        "stop_reason": _stop(reply),
        "usage": _usage(reply, reply.bill.output),
    }


def _envelope(reply: Reply) -> dict[str, Any]:
    gone = [
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
        **({"input_transformations": gone} if gone else {}),
    }


def _content(reply: Reply) -> Iterator[Any]:
    if reply.thinking:
        yield {"type": "thinking", "thinking": reply.thinking, "signature": reply.signature}
    if reply.text:
        yield {"type": "text", "text": reply.text}
    for call in reply.calls:
        yield {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": dict(call.arguments),
        }


def _stop(reply: Reply) -> str:
    return _STOPS.get(reply.stop) or ("tool_use" if reply.calls else "end_turn")


def _usage(reply: Reply, output: int) -> Any:
    bill = reply.bill
    return {
        "input_tokens": bill.fresh,
        "cache_creation_input_tokens": bill.written,
        "cache_read_input_tokens": bill.cached,
        "output_tokens": output,
        "service_tier": "standard",
    }


def events(reply: Reply) -> Iterator[bytes]:
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
    """A block as it begins: its kind and ids, nothing said yet."""
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()}


def _deltas(reply: Reply, block: Any) -> Iterator[Any]:
    if block["type"] == "text":
        for piece in pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}
    elif block["type"] == "thinking":
        for piece in pieces(block["thinking"]):
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        call = next(call for call in reply.calls if call.id == block["id"])
        for piece in ("", *pieces(arguments(call))):
            yield {"type": "input_json_delta", "partial_json": piece}


def broken(reply: Reply, refusal: Refusal) -> Iterator[bytes]:
    """``message_start``, then an ``error`` event."""
    yield _event("message_start", message={**_envelope(reply), "usage": _usage(reply, 1)})
    yield sse(refusal.body, "error")


def counted(tokens: int) -> Any:
    """``{"input_tokens": …}``."""
    return {"input_tokens": tokens}


def headers(number: int, refusal: Refusal | None) -> tuple[tuple[str, str], ...]:
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
