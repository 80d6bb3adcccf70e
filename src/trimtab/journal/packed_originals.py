"""Originals of a session without a store, kept in memory as a store's rows are: compressed.

Each fold keeps again what the fold before it had taken, so that every handle gives back all it
stands for; compressed, these repetitions cost little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trimtab.stores.codec import StorageCodec

_CODEC = StorageCodec()


class PackedOriginals(Mapping[str, str]):
    """Originals by handle.  A value is unpacked each time it is read; it never changes."""

    def __init__(self, originals: Mapping[str, str] | None = None) -> None:
        more = originals or {}
        self._packed = {handle: _packed(handle, text) for handle, text in more.items()}

    def __or__(self, more: Mapping[str, str]) -> PackedOriginals:
        both = PackedOriginals(more)
        both._packed = {**self._packed, **both._packed}
        return both

    def __getitem__(self, handle: str) -> str:
        data = _CODEC.unpack(self._packed[handle], handle)
        return data.decode("utf-8", "surrogatepass")

    def __contains__(self, handle: object) -> bool:
        return handle in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def _packed(handle: str, text: str) -> bytes:
    return _CODEC.pack(text.encode("utf-8", "surrogatepass"), handle)
