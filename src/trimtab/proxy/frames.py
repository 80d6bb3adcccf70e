"""A stream in pieces as its events, one by one, each with the bytes it came in.

Knows server-sent events and AWS event-stream frames.  Does not know what they say.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol
from zlib import crc32

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
MOST_BYTES = 32_000_000
"""A single event longer than this is no event."""


@dataclass(frozen=True, slots=True)
class Event:
    """``raw`` is what came; ``name`` the event's type, "" where it has none; ``data`` its body."""

    raw: bytes
    name: str = ""
    data: bytes = b""
    failed: bool = False
    """Whether the framing itself says that this is an error."""


class Frames(Protocol):
    """Cuts a stream into events."""

    def feed(self, part: bytes) -> Iterator[Event]:
        """The events that are whole now."""
        ...

    def rest(self) -> bytes:
        """What came and is no whole event; it is forgotten."""
        ...


class ServerSent:
    """Server-sent events; comments are events without data."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, part: bytes) -> Iterator[Event]:
        """The events that are whole now."""
        data = self._held + part if self._held else part
        # What was held has no blank line: one can at most have begun in its last three bytes.
        start, seen = 0, max(len(self._held) - 3, 0)
        for found in _BLANK.finditer(data, seen):
            yield _event(data[start : found.end()])
            start = found.end()
        self._held = data[start:]
        if len(self._held) > MOST_BYTES:
            yield Event(self.rest())

    def rest(self) -> bytes:
        """What is left."""
        held, self._held = self._held, b""
        return held


def _event(raw: bytes) -> Event:
    name, data = "", []
    for line in raw.splitlines():
        key, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if key == b"data":
            data.append(value)
        elif key == b"event":
            name = value.decode("utf-8", "replace")
    return Event(raw, name, b"\n".join(data))


def server_sent(data: bytes, name: str = "", end: bytes = b"\n") -> bytes:
    """One event as bytes."""
    head = b"event: " + name.encode() + end if name else b""
    return head + b"data: " + data + end + end


class AwsFrames:
    """Frames of the AWS event stream; checksums are left to the client."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, part: bytes) -> Iterator[Event]:
        """The frames that are whole now."""
        self._held += part
        while len(self._held) >= 12:
            total, head = struct.unpack("!II", self._held[:8])
            if not 16 <= total <= MOST_BYTES or head > total - 16:
                yield Event(self.rest())
                return
            if len(self._held) < total:
                return
            raw, self._held = self._held[:total], self._held[total:]
            headers = _headers(raw[12 : 12 + head])
            name = headers.get(":event-type") or headers.get(":exception-type", "")
            failed = headers.get(":message-type", "event") != "event"
            yield Event(raw, name, raw[12 + head : -4], failed)

    def rest(self) -> bytes:
        """What is left."""
        held, self._held = self._held, b""
        return held


def _headers(data: bytes) -> dict[str, str]:
    """Headers whose value is a text; others end the reading."""
    found, at = dict[str, str](), 0
    while at < len(data):
        end = at + 1 + data[at]
        if end + 3 > len(data) or data[end] != 7:
            break
        size = int.from_bytes(data[end + 1 : end + 3], "big")
        value = data[end + 3 : end + 3 + size]
        found[data[at + 1 : end].decode("utf-8", "replace")] = value.decode("utf-8", "replace")
        at = end + 3 + size
    return found


def aws_frame(name: str, payload: bytes) -> bytes:
    """One frame: lengths, their checksum, headers, payload, a checksum of all."""
    fields = ((":event-type", name), (":content-type", "application/json"),
              (":message-type", "event"))  # fmt: skip
    head = b"".join(
        struct.pack("!B", len(key))
        + key.encode()
        + struct.pack("!BH", 7, len(value))
        + value.encode()
        for key, value in fields
    )
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack("!I", crc32(prelude)) + head + payload
    return message + struct.pack("!I", crc32(message))
