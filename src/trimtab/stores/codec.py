"""Encodes stored data: compressed, with a checksum, or encrypted if a key is given."""

from __future__ import annotations

import hashlib
import os
import zlib
from typing import Any

from trimtab.errors import MissingExtra, StoreError

PLAIN, PACKED = 0x00, 0x01
SEALED = 0x10
"""Flag: encrypted (after compression, if any)."""
WORTH_PACKING = 256
"""Least bytes of data that is compressed."""
_SUM, _NONCE = 16, 12


class StorageCodec:
    """``pack`` and ``unpack`` data; what is packed with a key can be read only with that key."""

    def __init__(self, key: bytes | None = None) -> None:
        self._aes: Any = None
        if key is None:
            return
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ImportError:
            raise MissingExtra(
                "an encrypted store needs AES: pip install 'trimtab[encryption]'"
            ) from None
        self._aes = AESGCM(hashlib.sha256(b"trimtab store\x00" + key).digest())

    def pack(self, data: bytes, about: str) -> bytes:
        """Encode ``data``; ``about`` names it, is not stored, and ``unpack`` needs it too."""
        kind, body = PLAIN, data
        if len(data) >= WORTH_PACKING and len(packed := zlib.compress(data, 1)) < len(data):
            kind, body = PACKED, packed
        if self._aes is None:
            return bytes([kind]) + _sum(data, about) + body
        nonce = os.urandom(_NONCE)
        head = bytes([kind | SEALED])
        sealed: bytes = self._aes.encrypt(nonce, body, head + about.encode())
        return head + nonce + sealed

    def unpack(self, frame: bytes, about: str) -> bytes:
        """Decode what ``pack`` returned.  Raises StoreError if it is damaged or the key differs."""
        kind, payload = frame[0] if frame else -1, frame[1:]
        if kind not in (PLAIN, PACKED, PLAIN | SEALED, PACKED | SEALED):
            raise StoreError(
                f"{about} is of a kind ({kind}) that this release does not know: update trimtab if "
                "a newer release wrote it; else it is damaged: restore the store from a copy"
            )
        body = self._opened(kind, payload, about) if kind & SEALED else payload[_SUM:]
        try:
            data = zlib.decompress(body) if kind & PACKED else body
        except zlib.error:
            raise self._damaged(about) from None
        if not kind & SEALED and payload[:_SUM] != _sum(data, about):
            raise self._damaged(about)
        return data

    def _opened(self, kind: int, payload: bytes, about: str) -> bytes:
        if self._aes is None:
            raise StoreError(
                f"{about} is encrypted: set TRIMTAB_STORE_KEY to the key it was written with"
            )
        from cryptography.exceptions import InvalidTag

        try:
            head = bytes([kind]) + about.encode()
            decrypted: bytes = self._aes.decrypt(payload[:_NONCE], payload[_NONCE:], head)
            return decrypted
        except (InvalidTag, ValueError):
            raise StoreError(
                f"{about} cannot be read with this TRIMTAB_STORE_KEY: give the key it was "
                "written with, or it was changed; restore the store from a copy"
            ) from None

    def _damaged(self, about: str) -> StoreError:
        return StoreError(f"{about} is damaged: restore the store from a copy")


def _sum(data: bytes, about: str) -> bytes:
    return hashlib.blake2b(data, digest_size=_SUM, person=b"trimtab", key=_key(about)).digest()


def _key(about: str) -> bytes:
    return hashlib.blake2b(about.encode(), digest_size=16).digest()
