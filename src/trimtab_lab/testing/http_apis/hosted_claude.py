"""Anthropic's API as Bedrock's InvokeModel and Vertex AI carry it.

The path names model and streaming, and the body the API version; Bedrock uses AWS errors and
frames.  The request inside is Anthropic's own format and judged as such.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimtab.formats.engine.aws_event_stream import event_frame, exception_frame
from trimtab_lab.testing.http_apis.base import dump
from trimtab_lab.testing.http_apis.bedrock import error_type
from trimtab_lab.testing.http_apis.server import Response

_BEDROCK = re.compile(
    r"/model/(?P<model>[^/]*(?:anthropic|claude)[^/]*)/invoke(?P<stream>-with-response-stream)?$"
)
_VERTEX = re.compile(
    r"/publishers/anthropic/models/(?P<model>[^/:]+):(?P<verb>rawPredict|streamRawPredict)$"
)
_COUNT = "count-tokens"
"""The model name in Vertex AI's path for counting tokens."""


@dataclass(frozen=True)
class HostedRequest:
    """A request converted to Anthropic's own API: its path and body."""

    path: str
    body: bytes
    framed: bool
    """Whether errors and streams are in AWS form."""
    problem: str = ""
    """Why the host itself refuses the request; "" if it does not."""

    def refused(self) -> Response:
        """The host's own refusal."""
        error = {"type": "invalid_request_error", "message": self.problem}
        kind = (("content-type", "application/json"),)
        return self.response(Response(400, kind, (dump({"type": "error", "error": error}),)))

    def response(self, done: Response) -> Response:
        """Anthropic's answer in this host's form."""
        if not self.framed:
            return done
        if done.status >= 400:
            error = json.loads(done.chunks[0]).get("error", {}).get("message", "")
            headers = (*done.headers, ("x-amzn-errortype", error_type(done.status)))
            return replace(done, headers=headers, chunks=(dump({"message": error}),))
        if not done.streamed:
            return done
        headers = (("content-type", "application/vnd.amazon.eventstream"),)
        return replace(done, headers=headers, chunks=tuple(map(_frame, done.chunks)))


def hosted(path: str, body: bytes) -> HostedRequest | None:
    """The request to Anthropic; None for a path of neither host, or a body that is not an
    object."""
    match = _BEDROCK.search(path) or _VERTEX.search(path)
    tree = _object(body) if match else None
    if match is None or tree is None:
        return None
    parts, framed = match.groupdict(), match.re is _BEDROCK
    counts = not framed and parts["model"] == _COUNT
    if not tree.pop("anthropic_version", None) and not counts:
        return HostedRequest(path, body, framed, "anthropic_version: Field required")
    if not counts:
        tree["model"] = parts["model"]
        tree["stream"] = bool(parts.get("stream")) or parts.get("verb") == "streamRawPredict"
    return HostedRequest(f"/v1/messages{'/count_tokens' * counts}", dump(tree), framed)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        tree = json.loads(body)
    except ValueError:
        return None
    return tree if isinstance(tree, dict) else None


def _frame(chunk: bytes) -> bytes:
    """A server-sent event as a frame of AWS."""
    data: Mapping[str, Any] = json.loads(chunk.partition(b"data: ")[2])
    if data.get("type") == "error":
        return exception_frame("validationException", dump({"message": data["error"]["message"]}))
    return event_frame("chunk", dump({"bytes": base64.b64encode(dump(data)).decode()}))
