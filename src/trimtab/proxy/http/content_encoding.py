"""Decompresses request and refusal bodies: gzip, deflate, Zstandard."""

from __future__ import annotations

import zlib

from trimtab.proxy.http.budgets import RATIO, RATIO_FREE_BYTES

_WINDOWS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
_PIECE = 1_024
"""Bytes of Zstandard decompressed at once; they become 32 MB at most."""


def unpacked(body: bytes, encoding: str, max_bytes: int) -> bytes | None:
    """The decompressed body; None if we cannot read it, or it would be longer than ``max_bytes``.

    A compressed body that is not changed is forwarded compressed.
    """
    if encoding in ("", "identity"):
        return body
    max_bytes = min(max_bytes, max(RATIO_FREE_BYTES, RATIO * len(body)))
    bits = _WINDOWS.get(encoding)
    if bits is None:
        return _zstd(body, max_bytes) if encoding == "zstd" else None
    try:
        stream = zlib.decompressobj(bits)
        data = stream.decompress(body, max_bytes)
        rest = stream.unconsumed_tail or stream.unused_data
        return data if stream.eof and not rest else None
    except zlib.error:
        return None


def _zstd(body: bytes, max_bytes: int) -> bytes | None:
    """Zstandard, where the package ``zstandard`` is there."""
    try:
        from zstandard import ZstdDecompressor, ZstdError
    except ImportError:
        return None
    stream, data = ZstdDecompressor().decompressobj(), bytearray()
    try:
        for at in range(0, len(body), _PIECE):  # a whole bomb would be made at once
            data += stream.decompress(body[at : at + _PIECE])
            if len(data) > max_bytes or stream.unused_data:
                return None
    except ZstdError:
        return None
    return bytes(data) if stream.eof else None
