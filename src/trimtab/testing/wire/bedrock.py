"""Bedrock Converse as an HTTP API; any signature of the request is accepted.

Knows the shapes of its answers and events (botocore's service model of bedrock-runtime).  Knows
no rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trimtab.testing.refusals import Refusal
from trimtab.testing.wire.base import Reply, Route, arguments, inner, pieces
from trimtab.testing.wire.eventstream import event, exception

format = "bedrock"
stream_type = "application/vnd.amazon.eventstream"
call_id = "tooluse_{hex22}"

_STOPS = {"length": "max_tokens", "window": "model_context_window_exceeded"}
_PATH = re.compile(r"/model/(?P<model>.+)/(?P<verb>converse|converse-stream|count-tokens)$")
_ERRORS = {429: "ThrottlingException", 500: "InternalServerException"}
_ERRORS |= {503: "ServiceUnavailableException", 403: "AccessDeniedException"}


def route(path: str, query: str) -> Route | None:
    """``/model/{id}/converse``, ``converse-stream`` and ``count-tokens``."""
    found = _PATH.search(path)
    if not found:
        return None
    if found["verb"] == "count-tokens":
        return Route("count", found["model"], False)
    return Route("generate", found["model"], found["verb"] == "converse-stream")


def request(body: Any, route: Route) -> Any:
    """The body itself, or what ``CountTokens`` wraps as ``input.converse``."""
    wrapped = inner(body, "input", "converse") if route.operation == "count" else None
    return wrapped if isinstance(wrapped, dict) else body


def streams(body: Any) -> bool:
    """The path says so."""
    return False


def _content(reply: Reply) -> list[Any]:
    found: list[Any] = []
    if reply.thinking:
        said = {"text": reply.thinking, "signature": reply.signature}
        found.append({"reasoningContent": {"reasoningText": said}})
    if reply.text:
        found.append({"text": reply.text})
    for call in reply.calls:
        use = {"toolUseId": call.id, "name": call.name, "input": dict(call.arguments)}
        found.append({"toolUse": use})
    return found


def _stop(reply: Reply) -> str:
    return _STOPS.get(reply.stop) or ("tool_use" if reply.calls else "end_turn")


def _usage(reply: Reply) -> Any:
    bill = reply.bill
    return {
        "inputTokens": bill.fresh,
        "outputTokens": bill.output,
        "totalTokens": bill.input + bill.output,
        "cacheReadInputTokens": bill.cached,
        "cacheWriteInputTokens": bill.written,
    }


def whole(reply: Reply) -> Any:
    """One ``ConverseResponse``."""
    return {
        "output": {"message": {"role": "assistant", "content": _content(reply)}},
        "stopReason": _stop(reply),
        "usage": _usage(reply),
        "metrics": {"latencyMs": 1},
    }


def events(reply: Reply) -> Iterator[bytes]:
    """``messageStart``, a block at a time, ``messageStop``, ``metadata``."""
    yield event("messageStart", {"role": "assistant"})
    for index, block in enumerate(_content(reply)):
        at = {"contentBlockIndex": index}
        if "toolUse" in block:
            use = {key: block["toolUse"][key] for key in ("toolUseId", "name")}
            yield event("contentBlockStart", {"start": {"toolUse": use}, **at})
        for delta in _deltas(reply, block):
            yield event("contentBlockDelta", {"delta": delta, **at})
        yield event("contentBlockStop", at)
    yield event("messageStop", {"stopReason": _stop(reply)})
    yield event("metadata", {"usage": _usage(reply), "metrics": {"latencyMs": 1}})


def _deltas(reply: Reply, block: Any) -> Iterator[Any]:
    if "text" in block:
        for piece in pieces(block["text"]):
            yield {"text": piece}
    elif "toolUse" in block:
        call = next(call for call in reply.calls if call.id == block["toolUse"]["toolUseId"])
        for piece in pieces(arguments(call)):
            yield {"toolUse": {"input": piece}}
    else:
        said = block["reasoningContent"]["reasoningText"]
        for piece in pieces(said["text"]):
            yield {"reasoningContent": {"text": piece}}
        yield {"reasoningContent": {"signature": said["signature"]}}


def broken(reply: Reply, refusal: Refusal) -> Iterator[bytes]:
    """``messageStart``, then an exception while the stream is read."""
    name = error_type(refusal.status)
    yield event("messageStart", {"role": "assistant"})
    yield exception(name[0].lower() + name[1:], refusal.message)


def error_type(status: int) -> str:
    """The exception that a status stands for."""
    return _ERRORS.get(status, "ValidationException")


def counted(tokens: int) -> Any:
    """``{"inputTokens": …}``."""
    return {"inputTokens": tokens}


def headers(number: int, refusal: Refusal | None) -> tuple[tuple[str, str], ...]:
    """The request's id, and of a refusal its exception."""
    found: tuple[tuple[str, str], ...] = (("x-amzn-requestid", f"{number:032x}"),)
    return (*found, ("x-amzn-errortype", error_type(refusal.status))) if refusal else found


def signed(part: Any) -> tuple[str, str] | None:
    """A ``reasoningContent`` block with text."""
    said = inner(part, "reasoningContent", "reasoningText")
    if not isinstance(said, dict):
        return None
    return str(said.get("text", "")), str(said.get("signature", ""))


def drops_unbound(body: Any) -> bool:
    """The same option as Anthropic's, under ``additionalModelRequestFields``."""
    thinking = inner(body, "additionalModelRequestFields", "thinking")
    behaviour = inner(thinking, "block_binding", "prefix_mismatch_behavior")
    return bool(behaviour == "drop_block")
