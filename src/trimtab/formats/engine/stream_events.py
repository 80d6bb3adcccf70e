"""Cuts the bytes of a streamed answer into events: server-sent events or AWS event-stream frames.

Each event carries the bytes it came in.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from trimtab.formats.engine.aws_event_stream import AwsFrameReader

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
MAX_BYTES = 32_000_000
"""Bytes.  Anything longer is not treated as one event."""


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """``raw``: its bytes as received; ``name``: its type or ""; ``data``: its body."""

    raw: bytes
    name: str = ""
    data: bytes = b""
    failed: bool = False
    """Whether the framing itself says that this is an error."""


class EventReader(Protocol):
    """Cuts a stream into events."""

    def feed(self, part: bytes) -> Iterator[StreamEvent]:
        """The events that are whole now."""
        ...

    def rest(self) -> bytes:
        """Return and drop the bytes that form no complete event."""
        ...


class ServerSentEventReader:
    """Server-sent events; comments are events without data."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, part: bytes) -> Iterator[StreamEvent]:
        """The events that are whole now."""
        data = self._held + part if self._held else part
        # The held bytes have no blank line; at most one begins in their last three bytes.
        start, seen = 0, max(len(self._held) - 3, 0)
        for blank in _BLANK.finditer(data, seen):
            yield _event(data[start : blank.end()])
            start = blank.end()
        self._held = data[start:]
        if len(self._held) > MAX_BYTES:
            yield StreamEvent(self.rest())

    def rest(self) -> bytes:
        """What is left."""
        held, self._held = self._held, b""
        return held


def _event(raw: bytes) -> StreamEvent:
    name, data = "", []
    for line in raw.splitlines():
        key, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if key == b"data":
            data.append(value)
        elif key == b"event":
            name = value.decode("utf-8", "replace")
    return StreamEvent(raw, name, b"\n".join(data))


def server_sent(data: bytes, name: str = "", end: bytes = b"\n") -> bytes:
    """One event as bytes."""
    head = b"event: " + name.encode() + end if name else b""
    return head + b"data: " + data + end + end


class AwsEventReader:
    """Frames of the AWS event stream."""

    def __init__(self) -> None:
        self._frames = AwsFrameReader()

    def feed(self, part: bytes) -> Iterator[StreamEvent]:
        """The frames that are whole now."""
        for frame in self._frames.feed(part):
            name = frame.headers.get(":event-type") or frame.headers.get(":exception-type", "")
            data = _of_chunk(frame.payload) if name == "chunk" else frame.payload
            yield StreamEvent(frame.raw, name, data, frame.failed)

    def rest(self) -> bytes:
        """What is left."""
        return self._frames.rest()


def _of_chunk(payload: bytes) -> bytes:
    """The event that InvokeModel carries in a frame; b"" where there is none."""
    try:
        return b64decode(json.loads(payload)["bytes"])
    except (ValueError, RecursionError, KeyError, TypeError):
        return b""


def parsed(event: StreamEvent) -> Any:
    """The JSON in an event; None where there is none."""
    try:
        return json.loads(event.data)
    except (ValueError, RecursionError):
        return None
