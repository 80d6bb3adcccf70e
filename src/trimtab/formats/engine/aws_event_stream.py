"""Read and write frames of the AWS event stream, in which Bedrock streams its answers.

A frame is: total length, length of the headers, CRC-32 of these eight bytes; headers; payload;
CRC-32 of all before it.  Numbers are big-endian.  The CRCs are not checked here: the client does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from zlib import crc32

MAX_BYTES = 32_000_000
"""A frame that claims to be longer is taken as malformed."""
_OVERHEAD = 16
"""Bytes of a frame beside its headers and payload."""
_STRING = 7
_VALUE_BYTES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type; types 6 and 7 carry their own length."""


@dataclass(frozen=True, slots=True)
class AwsFrame:
    """``raw``: the frame's bytes; ``headers``: the headers whose value is a string."""

    raw: bytes
    headers: Mapping[str, str]
    payload: bytes
    malformed: bool = False
    """Whether this is no valid frame: ``raw`` is all that was buffered."""

    @property
    def failed(self) -> bool:
        """Whether the ``:message-type`` header marks an error or an exception."""
        return self.headers.get(":message-type", "event") != "event"


class AwsFrameReader:
    """Cuts the bytes of a stream into frames."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._most, self._held = max_bytes, b""

    def feed(self, part: bytes) -> Iterator[AwsFrame]:
        """Add ``part`` to the buffer and yield the frames that are complete."""
        self._held += part
        while len(self._held) >= 12:
            total, head = struct.unpack("!II", self._held[:8])
            if not _OVERHEAD + head <= total <= self._most:
                yield AwsFrame(self.rest(), {}, b"", malformed=True)
                return
            if len(self._held) < total:
                return
            raw, self._held = self._held[:total], self._held[total:]
            yield AwsFrame(raw, _read_headers(raw[12 : 12 + head]), raw[12 + head : -4])

    def rest(self) -> bytes:
        """Return and clear the buffered bytes, which are no complete frame."""
        held, self._held = self._held, b""
        return held


def _read_headers(data: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        name, kind = data[at + 1 : end].decode("latin-1"), data[end] if end < len(data) else -1
        at = end + 1
        size = _VALUE_BYTES.get(kind)
        if size is None:
            size = int.from_bytes(data[at : at + 2], "big")
            at += 2
        if kind == _STRING:
            headers[name] = data[at : at + size].decode("utf-8", "replace")
        at += size
    return headers


def write_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    head = b"".join(_written_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", _OVERHEAD + len(head) + len(payload), len(head))
    message = prelude + struct.pack("!I", crc32(prelude)) + head + payload
    return message + struct.pack("!I", crc32(message))


def _written_header(name: str, value: str) -> bytes:
    key, data = name.encode("ascii"), value.encode()
    return struct.pack("!B", len(key)) + key + struct.pack("!BH", _STRING, len(data)) + data


def event_frame(name: str, payload: bytes) -> bytes:
    """An event of type ``name`` with a JSON payload."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return write_frame(headers, payload)


def exception_frame(name: str, payload: bytes) -> bytes:
    """An exception, which the client raises while it reads the stream."""
    headers = {
        ":exception-type": name, ":content-type": "application/json",
        ":message-type": "exception",
    }  # fmt: skip
    return write_frame(headers, payload)
