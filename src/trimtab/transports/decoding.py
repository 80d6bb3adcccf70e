"""Bytes of a response as they are meant, piece by piece, for looking at.

Knows the encodings that the standard library can undo.  Any other is not looked into.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable


def decoder(encoding: str) -> Callable[[bytes], bytes] | None:
    """A function from each next piece to what it means; None for an encoding we cannot undo."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return bytes
    if name in ("gzip", "x-gzip"):
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress
    if name == "deflate":
        return zlib.decompressobj().decompress
    return None


def decoded(body: bytes, encoding: str) -> bytes:
    """A whole body; as it is where that cannot be done."""
    undo = decoder(encoding)
    if undo is None:
        return body
    try:
        return undo(body)
    except zlib.error:
        return body
