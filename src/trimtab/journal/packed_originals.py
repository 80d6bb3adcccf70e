"""Originals of a session without a store, compressed in memory.

Each fold keeps again what the fold before it had taken, so that every handle gives back all it
stands for; compressed, these repetitions cost little.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

FAST = 1
"""zlib's level: what repeats is found at any level."""


class PackedOriginals(Mapping[str, str]):
    """Originals by handle.  A value is unpacked each time it is read; it never changes."""

    def __init__(self, originals: Mapping[str, str] | None = None) -> None:
        more = originals or {}
        self._packed = {handle: _packed(text) for handle, text in more.items()}

    def __or__(self, more: Mapping[str, str]) -> PackedOriginals:
        both = PackedOriginals(more)
        both._packed = {**self._packed, **both._packed}
        return both

    def __getitem__(self, handle: str) -> str:
        return zlib.decompress(self._packed[handle]).decode("utf-8", "surrogatepass")

    def __contains__(self, handle: object) -> bool:
        return handle in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def _packed(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), FAST)
