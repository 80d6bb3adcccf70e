"""OpenAI Chat Completions as an HTTP API.

Answers and chunks are shaped as in the SDK's types and OpenAI's API reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab_lab.testing.http_apis.base import (
    ApiRoute,
    ModelReply,
    arguments,
    dump,
    inner,
    no_such_option,
    pieces,
    request_id,
    sse,
    unsigned,
)
from trimtab_lab.testing.http_apis.refusals import ErrorResponse

format = "openai-chat"
stream_type = "text/event-stream; charset=utf-8"
call_id = "call_{hex24}"

_STOPS = {"length": "length", "window": "model_context_window_exceeded"}


def route(path: str, query: str) -> ApiRoute | None:
    """``…/chat/completions``, under any base (Azure's deployments too)."""
    return ApiRoute("generate") if path.endswith("/chat/completions") else None


def request(body: Any, route: ApiRoute) -> Any:
    """The body itself."""
    return body


def streams(body: Any) -> bool:
    """``"stream": true``."""
    return inner(body, "stream") is True


def response_body(reply: ModelReply) -> Any:
    """One ``chat.completion``."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.thinking:
        message["reasoning_content"] = reply.thinking
    if reply.calls:
        message["tool_calls"] = _calls(reply)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _stop(reply)}
    return {**_envelope(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def _calls(reply: ModelReply) -> list[Any]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": arguments(call)},
        }
        for call in reply.calls
    ]


def _stop(reply: ModelReply) -> str:
    return _STOPS.get(reply.stop) or ("tool_calls" if reply.calls else "stop")


def _envelope(reply: ModelReply, object: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{reply.hex('answer')}",
        "object": object,
        "created": reply.created,
        "model": reply.model,
        "system_fingerprint": None,
    }


def _usage(reply: ModelReply) -> Any:
    bill = reply.bill
    return {
        "prompt_tokens": bill.input,
        "completion_tokens": bill.output,
        "total_tokens": bill.input + bill.output,
        "prompt_tokens_details": {"cached_tokens": bill.cached},
        "completion_tokens_details": {"reasoning_tokens": bill.thinking},
    }


def events(reply: ModelReply) -> Iterator[bytes]:
    """Chunks, the last with the usage where ``stream_options`` asks for it, then ``[DONE]``."""
    yield _chunk(reply, {"role": "assistant", "content": ""})
    for piece in pieces(reply.thinking):
        yield _chunk(reply, {"reasoning_content": piece})
    for piece in pieces(reply.text):
        yield _chunk(reply, {"content": piece})
    for index, call in enumerate(_calls(reply)):
        arguments = call["function"]["arguments"]
        call["function"]["arguments"] = ""
        yield _chunk(reply, {"tool_calls": [{"index": index, **call}]})
        for piece in pieces(arguments):
            yield _chunk(
                reply, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            )
    yield _chunk(reply, {}, _stop(reply))
    if inner(reply.request, "stream_options", "include_usage") is True:
        envelope = _envelope(reply, "chat.completion.chunk")
        yield sse({**envelope, "choices": [], "usage": _usage(reply)})
    yield b"data: [DONE]\n\n"


def _chunk(reply: ModelReply, delta: Any, stop: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": stop}
    return sse({**_envelope(reply, "chat.completion.chunk"), "choices": [choice]})


def broken(reply: ModelReply, refusal: ErrorResponse) -> Iterator[bytes]:
    """An error in an ordinary data line with finish_reason "error", as OpenRouter sends it."""
    if reply.style == "openrouter":
        yield b": OPENROUTER PROCESSING\n\n"
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": "error"}
    envelope = _envelope(reply, "chat.completion.chunk")
    body = refusal.body if isinstance(refusal.body, dict) else {"error": {"message": refusal.body}}
    yield b"data: " + dump({**envelope, "choices": [choice], **body}) + b"\n\n"


def counted(tokens: int) -> Any:
    """This API has no such endpoint."""
    raise LookupError("openai-chat has no endpoint that counts tokens")


headers, signed, drops_unbound = request_id, unsigned, no_such_option
