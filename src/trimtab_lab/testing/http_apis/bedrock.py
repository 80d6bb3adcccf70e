"""Bedrock Converse as an HTTP API; any signature of the request is accepted.

Answers and events are shaped as in botocore's service model of bedrock-runtime.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trimtab.formats.bedrock.parts import PARTS
from trimtab.formats.engine.aws_event_stream import event_frame, exception_frame
from trimtab_lab.testing.http_apis.base import ApiRoute, ModelReply, arguments, dump, inner, pieces
from trimtab_lab.testing.http_apis.refusals import ErrorResponse

format = "bedrock"
stream_type = "application/vnd.amazon.eventstream"
call_id = "tooluse_{hex22}"

_STOPS = {"length": "max_tokens", "window": "model_context_window_exceeded"}
_PATH = re.compile(r"/model/(?P<model>.+)/(?P<verb>converse|converse-stream|count-tokens)$")
_ERRORS = {429: "ThrottlingException", 500: "InternalServerException"}
_ERRORS |= {503: "ServiceUnavailableException", 403: "AccessDeniedException"}


def route(path: str, query: str) -> ApiRoute | None:
    """``/model/{id}/converse``, ``converse-stream`` and ``count-tokens``."""
    match = _PATH.search(path)
    if not match:
        return None
    if match["verb"] == "count-tokens":
        return ApiRoute("count", match["model"], False)
    return ApiRoute("generate", match["model"], match["verb"] == "converse-stream")


def request(body: Any, route: ApiRoute) -> Any:
    """The body itself, or what ``CountTokens`` wraps as ``input.converse``."""
    wrapped = inner(body, "input", "converse") if route.operation == "count" else None
    return wrapped if isinstance(wrapped, dict) else body


def streams(body: Any) -> bool:
    """Never: the path decides."""
    return False


def _content(reply: ModelReply) -> list[Any]:
    blocks: list[Any] = []
    if reply.thinking:
        reasoning = {"text": reply.thinking, "signature": reply.signature}
        blocks.append({"reasoningContent": {"reasoningText": reasoning}})
    if reply.text:
        blocks.append({"text": reply.text})
    calls = (PARTS.write_call(call.id, call.name, dict(call.arguments)) for call in reply.calls)
    return [*blocks, *calls]


def _stop(reply: ModelReply) -> str:
    return _STOPS.get(reply.stop) or ("tool_use" if reply.calls else "end_turn")


def _usage(reply: ModelReply) -> Any:
    bill = reply.bill
    return {
        "inputTokens": bill.fresh,
        "outputTokens": bill.output,
        "totalTokens": bill.input + bill.output,
        "cacheReadInputTokens": bill.cached,
        "cacheWriteInputTokens": bill.written,
    }


def response_body(reply: ModelReply) -> Any:
    """One ``ConverseResponse``."""
    return {
        "output": {"message": {"role": "assistant", "content": _content(reply)}},
        "stopReason": _stop(reply),
        "usage": _usage(reply),
        "metrics": {"latencyMs": 1},
    }


def events(reply: ModelReply) -> Iterator[bytes]:
    """``messageStart``, a block at a time, ``messageStop``, ``metadata``."""
    yield _event("messageStart", {"role": "assistant"})
    for index, block in enumerate(_content(reply)):
        at = {"contentBlockIndex": index}
        if "toolUse" in block:
            use = {key: block["toolUse"][key] for key in ("toolUseId", "name")}
            yield _event("contentBlockStart", {"start": {"toolUse": use}, **at})
        for delta in _deltas(reply, block):
            yield _event("contentBlockDelta", {"delta": delta, **at})
        yield _event("contentBlockStop", at)
    yield _event("messageStop", {"stopReason": _stop(reply)})
    yield _event("metadata", {"usage": _usage(reply), "metrics": {"latencyMs": 1}})


def _deltas(reply: ModelReply, block: Any) -> Iterator[Any]:
    if "text" in block:
        for piece in pieces(block["text"]):
            yield {"text": piece}
    elif "toolUse" in block:
        call = next(call for call in reply.calls if call.id == block["toolUse"]["toolUseId"])
        for piece in pieces(arguments(call)):
            yield {"toolUse": {"input": piece}}
    else:
        reasoning = block["reasoningContent"]["reasoningText"]
        for piece in pieces(reasoning["text"]):
            yield {"reasoningContent": {"text": piece}}
        yield {"reasoningContent": {"signature": reasoning["signature"]}}


def broken(reply: ModelReply, refusal: ErrorResponse) -> Iterator[bytes]:
    """``messageStart``, then an exception while the stream is read."""
    name = error_type(refusal.status)
    yield _event("messageStart", {"role": "assistant"})
    yield exception_frame(name[0].lower() + name[1:], dump({"message": refusal.message}))


def error_type(status: int) -> str:
    """The exception of a status."""
    return _ERRORS.get(status, "ValidationException")


def counted(tokens: int) -> Any:
    """``{"inputTokens": …}``."""
    return {"inputTokens": tokens}


def headers(number: int, refusal: ErrorResponse | None) -> tuple[tuple[str, str], ...]:
    """The request's id, and of a refusal its exception."""
    headers: tuple[tuple[str, str], ...] = (("x-amzn-requestid", f"{number:032x}"),)
    return (*headers, ("x-amzn-errortype", error_type(refusal.status))) if refusal else headers


def signed(part: Any) -> tuple[str, str] | None:
    """A ``reasoningContent`` block with text."""
    reasoning = inner(part, "reasoningContent", "reasoningText")
    if not isinstance(reasoning, dict):
        return None
    return str(reasoning.get("text", "")), str(reasoning.get("signature", ""))


def drops_unbound(body: Any) -> bool:
    """The same option as Anthropic's, under ``additionalModelRequestFields``."""
    thinking = inner(body, "additionalModelRequestFields", "thinking")
    behaviour = inner(thinking, "block_binding", "prefix_mismatch_behavior")
    return bool(behaviour == "drop_block")


def _event(name: str, body: Any) -> bytes:
    return event_frame(name, dump(body))
