"""Decodes the content encodings of HTTP: responses piece by piece, whole bodies within a limit.

Supports the encodings that HTTP clients accept: those of the standard library, and brotli and zstd
if a package that clients use is installed.  A body in any other encoding is not read.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any

RATIO = 100
"""The most that a compressed body may grow, as a factor; real ones grow 5 to 40 times."""
RATIO_FREE_BYTES = 1_000_000
"""Bytes up to which ``RATIO`` is not checked."""
_PIECE = 1_024
"""Bytes of a whole body decoded at once; those of Zstandard become 32 MB at most."""
_BOUNDED = ("gzip", "x-gzip", "deflate", "zstd")
"""Encodings whose pieces grow by a bounded factor."""
_BROTLI = ("brotli", "brotlicffi")
_ZSTD = ("compression.zstd", "backports.zstd", "zstandard")
"""In the order in which clients try them."""


class Undecodable(ValueError):
    """The bytes are not valid in their encoding."""


def decoder(encoding: str) -> Callable[[bytes], bytes] | None:
    """A function that decodes piece after piece, raising Undecodable; None for an encoding that is
    not supported."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return bytes
    stream = _stream(name)
    if stream is None:
        return None
    return _careful(getattr(stream, "process", None) or stream.decompress)


def decoded(body: bytes, encoding: str) -> bytes:
    """A whole body decoded; unchanged if it can't be decoded."""
    undo = decoder(encoding)
    if undo is None or not body:
        return body
    try:
        return undo(body) or body
    except Undecodable:
        return body


def unpacked(body: bytes, encoding: str, max_bytes: int) -> bytes | None:
    """The decoded body; None if we cannot read it, or it would be longer than ``max_bytes`` or grow
    more than ``RATIO`` allows."""
    if encoding in ("", "identity"):
        return body
    stream = _stream(encoding) if encoding in _BOUNDED else None
    if stream is None:
        return None
    max_bytes = min(max_bytes, max(RATIO_FREE_BYTES, RATIO * len(body)))
    undo, data = _careful(stream.decompress), bytearray()
    try:
        for at in range(0, len(body), _PIECE):  # a whole bomb would be made at once
            data += undo(body[at : at + _PIECE])
            if len(data) > max_bytes or stream.unused_data:
                return None
    except Undecodable:
        return None
    return bytes(data) if stream.eof else None


def _stream(name: str) -> Any:
    """What decodes this encoding; None where nothing does."""
    if name in ("gzip", "x-gzip"):
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    if name == "deflate":
        return zlib.decompressobj()
    if name == "br":
        brotli = _first(_BROTLI)
        return brotli and brotli.Decompressor()
    if name == "zstd" and (zstd := _first(_ZSTD)) is not None:
        stream = zstd.ZstdDecompressor()
        return stream.decompressobj() if hasattr(stream, "decompressobj") else stream
    return None


def _first(names: tuple[str, ...]) -> Any:
    """The first of these modules that is installed."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def _careful(undo: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """``undo``, with every package's error turned into Undecodable."""

    def undone(piece: bytes) -> bytes:
        try:
            return undo(piece)
        except Exception as error:  # each package has an error of its own; past the end: EOFError
            raise Undecodable(str(error)) from None

    return undone
