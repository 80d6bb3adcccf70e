"""Gemini generateContent as an HTTP API.

Answers and chunks are shaped as in the SDK's types and Google's API reference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trimtab.formats.gemini.parts import PARTS
from trimtab_lab.testing.http_apis.base import (
    ApiRoute,
    ModelReply,
    dump,
    inner,
    no_headers,
    no_such_option,
    pieces,
    sse,
    unsigned,
)
from trimtab_lab.testing.http_apis.refusals import ErrorResponse

format = "gemini"
stream_type = "text/event-stream"
call_id = ""

_PATH = re.compile(
    r"/models/(?P<model>[^/:]+):(?P<verb>generateContent|streamGenerateContent|countTokens)$"
)


def route(path: str, query: str) -> ApiRoute | None:
    """``…/models/{model}:verb`` under any version; a stream is a JSON array without alt=sse."""
    match = _PATH.search(path)
    if not match:
        return None
    if match["verb"] == "countTokens":
        return ApiRoute("count", match["model"], False)
    streams = match["verb"] == "streamGenerateContent"
    return ApiRoute("generate", match["model"], streams, streams and "alt=sse" not in query)


def request(body: Any, route: ApiRoute) -> Any:
    """The body itself, or what ``countTokens`` wraps as ``generateContentRequest``."""
    wrapped = inner(body, "generateContentRequest") if route.operation == "count" else None
    return wrapped if isinstance(wrapped, dict) else body


def streams(body: Any) -> bool:
    """Never: the path decides."""
    return False


def _parts(reply: ModelReply) -> list[Any]:
    """Thought, text, calls; the first call carries the signature, parallel ones carry none."""
    parts: list[Any] = []
    if reply.thinking:
        parts.append({"text": reply.thinking, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    for index, call in enumerate(reply.calls):
        part = PARTS.write_call(call.id, call.name, dict(call.arguments))
        if index == 0:
            part["thoughtSignature"] = reply.signature
        parts.append(part)
    return parts


def response_body(reply: ModelReply) -> Any:
    """One ``GenerateContentResponse``."""
    return _response(reply, _parts(reply), last=True)


def _response(reply: ModelReply, parts: list[Any], *, last: bool) -> Any:
    stop = "MAX_TOKENS" if reply.stop else "STOP"
    candidate = {"content": {"parts": parts, "role": "model"}, "index": 0}
    return {
        "candidates": [{**candidate, "finishReason": stop} if last else candidate],
        "usageMetadata": _usage(reply, reply.bill.output if last else 0),
        "modelVersion": reply.model,
        "responseId": reply.hex("answer"),
    }


def _usage(reply: ModelReply, output: int) -> Any:
    bill = reply.bill
    cached = {"cachedContentTokenCount": bill.cached} if bill.cached else {}
    thought = {"thoughtsTokenCount": bill.thinking} if bill.thinking else {}
    return {
        "promptTokenCount": bill.input,
        **cached,
        "candidatesTokenCount": max(output - bill.thinking, 0),
        **thought,
        "totalTokenCount": bill.input + output,
    }


def _chunks(reply: ModelReply) -> Iterator[Any]:
    parts = _parts(reply)
    for part in parts:
        if "text" not in part:
            yield _response(reply, [part], last=False)
            continue
        for piece in pieces(part["text"]):
            yield _response(reply, [{**part, "text": piece}], last=False)
    yield _response(reply, [{"text": ""}], last=True)


def events(reply: ModelReply) -> Iterator[bytes]:
    """Responses as events, or as one JSON array if the path does not ask for events."""
    if not reply.listed:
        yield from (sse(chunk, end="\r\n") for chunk in _chunks(reply))
        return
    for index, chunk in enumerate(_chunks(reply)):
        yield (b",\r\n" if index else b"[") + dump(chunk)
    yield b"]\n"


def broken(reply: ModelReply, refusal: ErrorResponse) -> Iterator[bytes]:
    """The error in place of a response (inferred: no real one is quoted anywhere)."""
    yield sse(refusal.body, end="\r\n") if not reply.listed else dump([refusal.body])


def counted(tokens: int) -> Any:
    """``{"totalTokens": …}``."""
    return {"totalTokens": tokens}


headers, signed, drops_unbound = no_headers, unsigned, no_such_option
