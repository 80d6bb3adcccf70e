"""Decodes the content encoding of a response, piece by piece.

Supports the encodings that HTTP clients accept: those of the standard library, and brotli and zstd
if a package that clients use is installed.  A body in any other encoding is not read.
"""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Callable
from typing import Any

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
    if name in ("gzip", "x-gzip"):
        return _careful(zlib.decompressobj(16 + zlib.MAX_WBITS).decompress)
    if name == "deflate":
        return _careful(zlib.decompressobj().decompress)
    if name == "br":
        brotli = _first(_BROTLI)
        if brotli is None:
            return None
        decompressor = brotli.Decompressor()
        return _careful(getattr(decompressor, "process", None) or decompressor.decompress)
    if name == "zstd":
        zstd = _first(_ZSTD)
        if zstd is None:
            return None
        decompressor = zstd.ZstdDecompressor()
        if hasattr(decompressor, "decompressobj"):
            decompressor = decompressor.decompressobj()
        return _careful(decompressor.decompress)
    return None


def decoded(body: bytes, encoding: str) -> bytes:
    """A whole body decoded; unchanged if it can't be decoded."""
    undo = decoder(encoding)
    if undo is None or not body:
        return body
    try:
        return undo(body) or body
    except Undecodable:
        return body


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
