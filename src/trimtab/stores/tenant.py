"""One tenant's part of a store: encodes and decodes entries, originals and facts.

Handles are keyed with a secret of the tenant, so that they cannot be guessed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trimtab.errors import InvalidSetting, StoreError
from trimtab.stores.base import Store, WriteBatch
from trimtab.stores.codec import StorageCodec

KEY, _PURGED = "key", "gone/"
"""Facts: the secret of a tenant, there since its first write; what was purged."""

OURS = "trimtab "
"""How the names of tenants begin that hold what trimtab itself keeps: nobody's conversations."""
SESSIONS = OURS + "sessions"
"""What the proxy's dashboard shows: sums, and the beginning of each first prompt."""


class Original(NamedTuple):
    """What an edit took away, and the conversation it belongs to."""

    conversation: str
    text: str


def _encode_original(conversation: str, text: str) -> bytes:
    return f"{conversation}\n{text}".encode("utf-8", "surrogatepass")


class TenantStore:
    """What one tenant may see of a store.  Methods raise StoreError."""

    def __init__(
        self, store: Store, tenant: str = "default", codec: StorageCodec | None = None
    ) -> None:
        if not isinstance(tenant, str) or not tenant.isprintable() or not 0 < len(tenant) <= 200:
            raise InvalidSetting(f"tenant={tenant!r}: give a name of 1 to 200 printable characters")
        self.store, self.tenant = store, tenant
        self._codec = codec or StorageCodec()
        self._key = b""

    def handle_key(self, conversation: str) -> bytes:
        """What handles of a conversation are made with; the same in every process."""
        return hashlib.blake2b(conversation.encode(), key=self.key, digest_size=32).digest()

    @property
    def key(self) -> bytes:
        """The secret of this tenant; whoever asks first makes it."""
        if not self._key:
            name = self._about("facts", KEY)
            secret = self.store.fact(self.tenant, KEY)
            if secret is None:
                mine = self._codec.pack(os.urandom(32), name)
                self.store.write(self.tenant, WriteBatch(facts=((KEY, mine),)))
                secret = self.store.fact(self.tenant, KEY)
            if secret is None:
                raise StoreError(f"{self.store.url} keeps nothing: name another store")
            self._key = self._codec.unpack(secret, name)
        return self._key

    # --- conversations ---

    def batch(
        self,
        conversation: str,
        rows: Iterable[tuple[str, bytes]] = (),
        originals: Mapping[str, str] | None = None,
        facts: Mapping[str, Any] | None = None,
        updated_facts: Mapping[str, Any] | None = None,
    ) -> WriteBatch:
        """What ``store.write`` takes."""
        about, pack = self._about, self._codec.pack
        return WriteBatch(
            conversation,
            tuple((id, pack(data, about("entries", conversation))) for id, data in rows),
            tuple(
                (handle, pack(_encode_original(conversation, text), about("originals", handle)))
                for handle, text in (originals or {}).items()
            ),
            tuple((name, self._fact(name, value)) for name, value in (facts or {}).items()),
            tuple((name, self._fact(name, value)) for name, value in (updated_facts or {}).items()),
        )

    def write(self, batch: WriteBatch) -> None:
        """Keep all of a batch or nothing."""
        self.store.write(self.tenant, batch)

    def read(self, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """The entries behind a place, and the place behind them."""
        about = self._about("entries", conversation)
        rows, place = self.store.read(self.tenant, conversation, after)
        return [self._codec.unpack(row, about) for row in rows], place

    def original(self, handle: str) -> Original | None:
        """The original under a handle and whose it is, or None."""
        packed = self.store.original(self.tenant, handle)
        if packed is None:
            return None
        data = self._codec.unpack(packed, self._about("originals", handle))
        conversation, _, text = data.decode("utf-8", "surrogatepass").partition("\n")
        return Original(conversation, text)

    # --- facts ---

    def fact(self, name: str) -> Any:
        """One fact, or None."""
        packed = self.store.fact(self.tenant, name)
        return None if packed is None else self._read(name, packed)

    def facts(self, prefix: str) -> dict[str, Any]:
        """All facts whose names begin so."""
        packed = self.store.facts(self.tenant, prefix)
        return {name: self._read(name, data) for name, data in packed.items()}

    def purged(self, handle: str) -> Any:
        """What is known of an original that was purged, or None."""
        return self.fact(_PURGED + handle)

    def mark_purged(self, handles: Iterable[str], what: Any) -> None:
        """Remember that these were here."""
        self.write(self.batch("", updated_facts={_PURGED + handle: what for handle in handles}))

    def _fact(self, name: str, value: Any) -> bytes:
        return self._codec.pack(json.dumps(value).encode(), self._about("facts", name))

    def _read(self, name: str, data: bytes) -> Any:
        return json.loads(self._codec.unpack(data, self._about("facts", name)))

    def _about(self, kind: str, name: str) -> str:
        return f"{self.tenant}/{kind}/{name}"
