"""A request's body as JSON bytes, whatever it was packed in.

Knows content encodings of the standard library.  Does not parse.
"""

from __future__ import annotations

import zlib

_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def unpacked(body: bytes, encoding: str, most_bytes: int) -> bytes | None:
    """The body without its encoding; None where we cannot read it, or it would become too long.

    A body that came packed and is not changed is passed on as it came.
    """
    if encoding in ("", "identity"):
        return body
    bits = _WINDOWS.get(encoding)
    if bits is None:
        return _zstd(body, most_bytes) if encoding == "zstd" else None
    try:
        stream = zlib.decompressobj(bits)
        found = stream.decompress(body, most_bytes)
        return found if stream.eof and not stream.unconsumed_tail else None
    except zlib.error:
        return None


def _zstd(body: bytes, most_bytes: int) -> bytes | None:
    """Zstandard, where Python (3.14) or the package ``zstandard`` has it."""
    try:
        from zstandard import ZstdDecompressor, ZstdError
    except ImportError:
        return None
    try:
        stream = ZstdDecompressor().decompressobj()
        found: bytes = stream.decompress(body)
        return found if stream.eof and len(found) <= most_bytes else None
    except ZstdError:
        return None
