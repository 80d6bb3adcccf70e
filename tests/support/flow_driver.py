"""Drives a flow against the strict provider without HTTP, as a proxy or a transport would.

Knows where each format's requests go.  Does not know what a flow decides.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trimtab.retry.flow import Accepted, Done, Flow, Refused, flow
from trimtab.retry.refusals.response_errors import error_in_body, prompt_tokens
from trimtab.retry.refusals.stream_start import StreamStart
from trimtab_lab.testing import StrictProvider

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "bedrock": "/model/{model}/converse",
    "gemini": "/v1beta/models/{model}:generateContent",
    "gemini-interactions": "/v1beta/interactions",
}
STREAMED = {
    "bedrock": "/model/{model}/converse-stream",
    "gemini": "/v1beta/models/{model}:streamGenerateContent",
}


@dataclass
class Driven:
    """What a caller got, and what happened on the way."""

    status: int
    body: bytes
    done: Done
    sent: list[bytes] = field(default_factory=list)


def drive(
    provider: StrictProvider,
    format: str,
    body: dict[str, Any],
    fit: Any,
    *,
    stream: bool = False,
    **options: Any,
) -> Driven:
    """Send until the flow is done."""
    path, query = where(format, body, stream)
    if stream and format in ("openai-chat", "openai-responses", "anthropic"):
        body = {**body, "stream": True}
    data = json.dumps(body).encode()
    run = flow(data, fit, streaming=stream, **options)
    effect, sent = next(run), list[bytes]()
    while True:
        sent.append(effect.request)
        response = provider.respond("POST", path, query, {}, effect.request)
        try:
            effect = run.send(reply(response, format))
        except StopIteration as stop:
            return Driven(response.status, b"".join(response.chunks), stop.value, sent)


def played(run: Flow, answer: Callable[[Any], Refused | Accepted]) -> tuple[Done, list[Any]]:
    """Send until the flow is done: how it ended, and each request; ``answer`` is the provider."""
    sent = [next(run).request]
    while True:
        try:
            sent.append(run.send(answer(sent[-1])).request)
        except StopIteration as stop:
            return stop.value, sent


def where(format: str, body: dict[str, Any], stream: bool) -> tuple[str, str]:
    """(path, query) of this request."""
    path = STREAMED.get(format, PATHS[format]) if stream else PATHS[format]
    return path.format(model=body.get("model") or body.get("modelId")), (
        "alt=sse" if stream and format == "gemini" else ""
    )


def reply(response: Any, format: str) -> Refused | Accepted:
    """What a driver tells the flow of this response."""
    body = b"".join(response.chunks)
    if response.status >= 400:
        return Refused(response.status, body, dict(response.headers))
    if not response.streamed:
        error = error_in_body(body)
        return Accepted(prompt_tokens(body), False) if error is None else Refused(200, error)
    held = StreamStart(frames=format == "bedrock")
    for chunk in response.chunks:
        held.feed(chunk)
    held.end()
    return Accepted() if held.verdict == "content" else Refused(200, held.error)
