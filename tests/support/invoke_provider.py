"""The strict provider as Bedrock's InvokeModel: Claude's own bodies, AWS's errors and frames.

Knows how Bedrock carries Anthropic's API.  Judges nothing: the strict provider does.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import replace

from trimtab.testing import StrictProvider
from trimtab.testing.provider import Response
from trimtab.wire.aws_event_stream import event_frame, exception_frame

_PATH = re.compile(r"/model/(?P<model>[^/]+)/invoke(?P<stream>-with-response-stream)?$")


class InvokeProvider(StrictProvider):
    """Answers ``/model/{id}/invoke`` and ``…/invoke-with-response-stream``."""

    def respond(
        self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
    ) -> Response:
        found = _PATH.search(path)
        if found is None:
            return super().respond(method, path, query, headers, body)
        given = json.loads(body)
        given.pop("anthropic_version")
        asked = {**given, "model": found["model"], "stream": bool(found["stream"])}
        done = super().respond(method, "/v1/messages", "", headers, json.dumps(asked).encode())
        if done.status >= 400:
            said = json.loads(done.chunks[0])["error"]["message"]
            kind = ("x-amzn-errortype", "ValidationException")
            chunk = json.dumps({"message": said}).encode()
            return replace(done, headers=(*done.headers, kind), chunks=(chunk,))
        if not found["stream"]:
            return done
        kind = ("content-type", "application/vnd.amazon.eventstream")
        return replace(done, headers=(kind,), chunks=tuple(map(framed, done.chunks)))


def framed(chunk: bytes) -> bytes:
    """A server-sent event as a frame."""
    data = json.loads(chunk.partition(b"data: ")[2])
    if data["type"] == "error":
        said = {"message": data["error"]["message"]}
        return exception_frame("validationException", json.dumps(said).encode())
    chunk = {"bytes": base64.b64encode(json.dumps(data).encode()).decode()}
    return event_frame("chunk", json.dumps(chunk).encode())
