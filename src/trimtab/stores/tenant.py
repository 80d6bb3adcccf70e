"""One tenant's part of a store: entries, originals and facts as they are kept there.

Knows that everything is packed, and that handles are keyed with a secret of the tenant, so that
they cannot be guessed.  Does not know what an entry says, nor when something is written.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trimtab.errors import InvalidSetting, StoreError
from trimtab.stores.base import Batch, Store
from trimtab.stores.frames import Frames

_KEY, _GONE = "key", "gone/"


class Original(NamedTuple):
    """What an edit took away, and the conversation it belongs to."""

    conversation: str
    text: str


def _told(conversation: str, text: str) -> bytes:
    return f"{conversation}\n{text}".encode("utf-8", "surrogatepass")


class TenantStore:
    """What one tenant may see of a store.  Methods raise StoreError."""

    def __init__(self, store: Store, tenant: str = "default", frames: Frames | None = None) -> None:
        if not isinstance(tenant, str) or not tenant.isprintable() or not 0 < len(tenant) <= 200:
            raise InvalidSetting(f"tenant={tenant!r}: give a name of 1 to 200 printable characters")
        self.store, self.tenant = store, tenant
        self._frames = frames or Frames()
        self._key = b""

    def handle_key(self, conversation: str) -> bytes:
        """What handles of a conversation are made with; the same in every process."""
        return hashlib.blake2b(conversation.encode(), key=self.key, digest_size=32).digest()

    @property
    def key(self) -> bytes:
        """The secret of this tenant; whoever asks first makes it."""
        if not self._key:
            name = self._about("facts", _KEY)
            found = self.store.fact(self.tenant, _KEY)
            if found is None:
                mine = self._frames.pack(os.urandom(32), name)
                self.store.write(self.tenant, Batch(facts=((_KEY, mine),)))
                found = self.store.fact(self.tenant, _KEY)
            if found is None:
                raise StoreError(f"{self.store.url} keeps nothing: name another store")
            self._key = self._frames.unpack(found, name)
        return self._key

    # --- conversations ---

    def batch(
        self,
        conversation: str,
        rows: Iterable[tuple[str, bytes]] = (),
        originals: Mapping[str, str] | None = None,
        facts: Mapping[str, Any] | None = None,
        stated: Mapping[str, Any] | None = None,
    ) -> Batch:
        """What ``store.write`` takes."""
        about, pack = self._about, self._frames.pack
        return Batch(
            conversation,
            tuple((id, pack(data, about("entries", conversation))) for id, data in rows),
            tuple(
                (handle, pack(_told(conversation, text), about("originals", handle)))
                for handle, text in (originals or {}).items()
            ),
            tuple((name, self._fact(name, value)) for name, value in (facts or {}).items()),
            tuple((name, self._fact(name, value)) for name, value in (stated or {}).items()),
        )

    def write(self, batch: Batch) -> None:
        """Keep all of a batch or nothing."""
        self.store.write(self.tenant, batch)

    def read(self, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """The entries behind a place, and the place behind them."""
        about = self._about("entries", conversation)
        rows, place = self.store.read(self.tenant, conversation, after)
        return [self._frames.unpack(row, about) for row in rows], place

    def original(self, handle: str) -> Original | None:
        """The original under a handle and whose it is, or None."""
        found = self.store.original(self.tenant, handle)
        if found is None:
            return None
        data = self._frames.unpack(found, self._about("originals", handle))
        conversation, _, text = data.decode("utf-8", "surrogatepass").partition("\n")
        return Original(conversation, text)

    # --- facts ---

    def fact(self, name: str) -> Any:
        """One fact, or None."""
        found = self.store.fact(self.tenant, name)
        return None if found is None else self._read(name, found)

    def facts(self, prefix: str) -> dict[str, Any]:
        """All facts whose names begin so."""
        found = self.store.facts(self.tenant, prefix)
        return {name: self._read(name, data) for name, data in found.items()}

    def gone(self, handle: str) -> Any:
        """What is known of an original that was purged, or None."""
        return self.fact(_GONE + handle)

    def mark_gone(self, handles: Iterable[str], what: Any) -> None:
        """Remember that these were here."""
        self.write(self.batch("", stated={_GONE + handle: what for handle in handles}))

    def _fact(self, name: str, value: Any) -> bytes:
        return self._frames.pack(json.dumps(value).encode(), self._about("facts", name))

    def _read(self, name: str, data: bytes) -> Any:
        return json.loads(self._frames.unpack(data, self._about("facts", name)))

    def _about(self, kind: str, name: str) -> str:
        return f"{self.tenant}/{kind}/{name}"
