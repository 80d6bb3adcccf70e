"""AWS event-stream frames: length, headers, payload, and a checksum over each half.

Knows the binary framing (the AWS event stream encoding: big-endian lengths, CRC-32).  Does not
know what the events mean.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

from trimtab.testing.wire.base import dump

_STRING = 7
"""The type of a header whose value is a text."""


def frame(headers: dict[str, str], payload: bytes) -> bytes:
    """One message.

    total length, length of headers, CRC of these eight bytes; headers; payload; CRC of all.
    """
    head = b"".join(_header(name, value) for name, value in headers.items())
    prelude = struct.pack("!II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack("!I", crc32(prelude)) + head + payload
    return message + struct.pack("!I", crc32(message))


def _header(name: str, value: str) -> bytes:
    key, data = name.encode("ascii"), value.encode("utf-8")
    return struct.pack("!B", len(key)) + key + struct.pack("!BH", _STRING, len(data)) + data


def event(name: str, body: Any) -> bytes:
    """An event of this type."""
    headers = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, dump(body))


def exception(name: str, message: str) -> bytes:
    """An exception that the client raises while it reads."""
    headers = {
        ":exception-type": name,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return frame(headers, dump({"message": message}))
