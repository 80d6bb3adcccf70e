"""A store for a tenant whose credential is not confirmed yet: writes are held in memory.

``accept`` writes them to the real store; later writes go there directly.  Held originals and facts
can be read; held entries cannot, because their writer has them already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trimtab.errors import StoreError
from trimtab.forking import Lock
from trimtab.stores.base import ConversationInfo, Store, WriteBatch
from trimtab.stores.memory import MemoryStore

MAX_BYTES = 8_000_000
"""Most bytes held before the tenant is accepted."""


class DeferredStore:
    """One tenant's access to a store.  A tenant needs no acceptance if the store has its fact
    ``known_by``.  ``former``: other names under which earlier releases kept the same tenant."""

    def __init__(
        self, store: Store, tenant: str, known_by: str, former: tuple[str, ...] = ()
    ) -> None:
        self.url, self.is_local = store.url, store.is_local
        self.store = store
        self._tenant, self._known_by, self.former = tenant, known_by, former
        self._lock = Lock()
        self._held: MemoryStore | None = MemoryStore()
        self._batches: list[WriteBatch] = []
        self._held_bytes = 0

    @property
    def waits(self) -> bool:
        """Whether writes are still held in memory."""
        return self._held is not None

    def accept(self) -> None:
        """Write what was held, now that the tenant's credential is confirmed.  Raises StoreError,
        and can then be called again."""
        if self._held is None:
            return
        with self._lock:
            while self._batches:
                self.store.write(self._tenant, self._batches[0])
                del self._batches[0]
            self._held = None

    def write(self, tenant: str, batch: WriteBatch) -> None:
        """See ``Store``."""
        if self._held is not None:
            with self._lock:
                if self._held is not None and not self._is_known():
                    self._hold(tenant, batch)
                    return
        self.store.write(tenant, batch)

    def _is_known(self) -> bool:
        """Whether the tenant was accepted before, by this process or another."""
        if self._batches or self.store.fact(self._tenant, self._known_by) is None:
            return False
        self._held = None
        return True

    def _hold(self, tenant: str, batch: WriteBatch) -> None:
        assert self._held is not None
        rows = (*batch.entries, *batch.originals, *batch.facts, *batch.updated_facts)
        self._held_bytes += sum(len(data) for _, data in rows)
        if self._held_bytes > MAX_BYTES:
            raise StoreError(
                f"{self.url} is not written to before the provider has accepted a request"
            )
        self._held.write(tenant, batch)
        self._batches.append(batch)

    def read(self, tenant: str, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """See ``Store``."""
        return self.store.read(tenant, conversation, after)

    def original(self, tenant: str, handle: str) -> bytes | None:
        """See ``Store``."""
        held = self._held.original(tenant, handle) if self._held is not None else None
        return self.store.original(tenant, handle) if held is None else held

    def handles(self, tenant: str, conversation: str) -> list[str]:
        """See ``Store``."""
        held = self._held.handles(tenant, conversation) if self._held is not None else []
        return [*self.store.handles(tenant, conversation), *held]

    def fact(self, tenant: str, name: str) -> bytes | None:
        """See ``Store``."""
        held = self._held.fact(tenant, name) if self._held is not None else None
        return self.store.fact(tenant, name) if held is None else held

    def facts(self, tenant: str, prefix: str) -> Mapping[str, bytes]:
        """See ``Store``."""
        held = self._held.facts(tenant, prefix) if self._held is not None else {}
        return {**self.store.facts(tenant, prefix), **held}

    def conversations(self) -> Sequence[ConversationInfo]:
        """See ``Store``: those in the real store."""
        return self.store.conversations()

    def delete(self, tenant: str, conversation: str, *, before: float) -> bool:
        """See ``Store``."""
        return self.store.delete(tenant, conversation, before=before)

    def faults(self) -> Sequence[str]:
        """See ``Store``."""
        return self.store.faults()

    def close(self) -> None:
        """See ``Store``: does nothing, since the real store is closed where it was opened."""
