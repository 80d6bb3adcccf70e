"""One tenant's part of a store: encodes and decodes entries, originals and facts.

Handles are made with a secret of the tenant, so that they cannot be guessed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from trimtab.errors import StoreError, expect
from trimtab.stores.base import Store, WriteBatch
from trimtab.stores.codec import StorageCodec

KEY, _PURGED = "key", "gone/"
"""Names of facts: the tenant's secret, created with its first write; prefix for purged handles."""

OURS = "trimtab "
"""Prefix of tenants that hold trimtab's own records, not a user's conversations."""
SESSIONS = OURS + "sessions"
"""The tenant with the data of the proxy's dashboard: sums and the beginning of first prompts."""


def stored_under(tenant: str, conversation: str, ids: Iterable[str]) -> set[tuple[str, str]]:
    """(tenant, name) of everything in a store that belongs to a conversation: its journal and
    originals, what clients of a proxy did not see of it, and its ``ids`` in the dashboard."""
    return {(tenant, conversation), *product((tenant, SESSIONS), ids)}


class Original(NamedTuple):
    """The text that an edit removed, and the conversation it belongs to."""

    conversation: str
    text: str


def _encode_original(conversation: str, text: str) -> bytes:
    return f"{conversation}\n{text}".encode("utf-8", "surrogatepass")


class TenantStore:
    """The part of a store that one tenant can see.  Methods raise StoreError.

    ``former``: other names under which it was kept.  What is there is found, too; new data is only
    written under ``tenant``.
    """

    def __init__(
        self,
        store: Store,
        tenant: str = "default",
        codec: StorageCodec | None = None,
        former: Sequence[str] = (),
    ) -> None:
        is_name = isinstance(tenant, str) and tenant.isprintable() and 0 < len(tenant) <= 200
        expect(is_name, "tenant", tenant, "a name of 1 to 200 printable characters")
        self.store, self.tenant = store, tenant
        self._codec = codec or StorageCodec()
        self._key = b""
        self._former = [TenantStore(store, name, codec) for name in former]

    def handle_key(self, conversation: str) -> bytes:
        """The key from which a conversation's handles are made; the same in every process."""
        return hashlib.blake2b(conversation.encode(), key=self.key, digest_size=32).digest()

    @property
    def key(self) -> bytes:
        """This tenant's secret, created on first use."""
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
        """Encode entries, originals and facts as a batch for ``write``."""
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
        """Write all of a batch or nothing."""
        self.store.write(self.tenant, batch)

    def read(self, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """The entries after the position ``after``, and the new position."""
        about = self._about("entries", conversation)
        rows, place = self.store.read(self.tenant, conversation, after)
        return [self._codec.unpack(row, about) for row in rows], place

    def original(self, handle: str) -> Original | None:
        """The original under a handle with its conversation, or None."""
        packed = self.store.original(self.tenant, handle)
        if packed is None:
            return next(filter(None, (one.original(handle) for one in self._former)), None)
        data = self._codec.unpack(packed, self._about("originals", handle))
        conversation, _, text = data.decode("utf-8", "surrogatepass").partition("\n")
        return Original(conversation, text)

    def adopt(self, conversation: str) -> None:
        """Copy what is kept of a conversation under former names only: a conversation that goes on
        is kept as a whole."""
        for one in self._former:
            rows = one._rows(conversation)
            if rows.keys() <= self._rows(conversation).keys():
                continue
            handles = one.store.handles(one.tenant, conversation)
            found = {handle: original.text for handle in handles
                     if (original := one.original(handle)) is not None}  # fmt: skip
            self.write(self.batch(conversation, rows.items(), found))

    def _rows(self, conversation: str) -> dict[str, bytes]:
        """The entries of a conversation by their ids."""
        return {json.loads(row)["id"]: row for row in self.read(conversation)[0]}

    # --- facts ---

    def fact(self, name: str) -> Any:
        """One fact, or None."""
        packed = self.store.fact(self.tenant, name)
        if packed is None:
            values = (one.fact(name) for one in self._former)
            return next((value for value in values if value is not None), None)
        return self._read(name, packed)

    def facts(self, prefix: str) -> dict[str, Any]:
        """All facts whose names begin with ``prefix``."""
        packed = self.store.facts(self.tenant, prefix)
        facts = {name: self._read(name, data) for name, data in packed.items()}
        for one in self._former:
            facts = one.facts(prefix) | facts
        return facts

    def purged(self, handle: str) -> Any:
        """The record of a purged original (see ``mark_purged``), or None."""
        return self.fact(_PURGED + handle)

    def mark_purged(self, handles: Iterable[str], what: Any) -> None:
        """Record ``what`` about each of these purged originals."""
        self.write(self.batch("", updated_facts={_PURGED + handle: what for handle in handles}))

    def _fact(self, name: str, value: Any) -> bytes:
        return self._codec.pack(json.dumps(value).encode(), self._about("facts", name))

    def _read(self, name: str, data: bytes) -> Any:
        return json.loads(self._codec.unpack(data, self._about("facts", name)))

    def _about(self, kind: str, name: str) -> str:
        return f"{self.tenant}/{kind}/{name}"
