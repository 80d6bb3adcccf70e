"""A store behind a circuit breaker that also reports when it fails and recovers.

A store that hangs costs each caller a timeout.  After one failure further calls are refused at
once, and every few seconds one call tests whether the store answers again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from trimtab.errors import StoreError
from trimtab.forking import Lock
from trimtab.stores.base import ConversationInfo, Store, WriteBatch

AGAIN_SECONDS = 5.0
"""Seconds after which a store that did not answer is tried again."""
T = TypeVar("T")


class Circuit:
    """A circuit breaker: closed while the store answers.

    ``waits``: whether calls are refused while it is open; else it only reports its state.
    ``changed`` is called when it opens and when it closes.
    """

    def __init__(self, waits: bool, changed: Callable[[], object] = bool) -> None:
        self.failing: StoreError | None = None
        self._waits, self._changed = waits, changed
        self._asked_at = 0.0
        self._lock = Lock()

    def call(self, act: Callable[[], T]) -> T:
        """Call ``act``, which uses the store.  Raises StoreError."""
        refused = self._refused()
        if refused is not None:
            raise refused.with_traceback(None)  # the same error for many callers
        try:
            done = act()
        except StoreError as error:
            self._record(error)
            raise
        if self.failing is not None:
            self._record(None)
        return done

    def _refused(self) -> StoreError | None:
        """The error to raise at once; None if this call may try the store."""
        if self.failing is None or not self._waits:
            return None
        with self._lock:
            now = time.monotonic()
            if now - self._asked_at < AGAIN_SECONDS:
                return self.failing
            self._asked_at = now
            return None

    def _record(self, error: StoreError | None) -> None:
        with self._lock:
            changed = (self.failing is None) is not (error is None)
            self.failing, self._asked_at = error, time.monotonic()
        if changed:
            self._changed()


class WatchedStore:
    """A store behind two circuits.  ``on_change`` is called when it fails and when it recovers."""

    def __init__(self, store: Store, on_change: Callable[[WatchedStore], None]) -> None:
        self.url, self.is_local = store.url, store.is_local
        self._store, self._on_change = store, on_change
        self._was_failing = False
        self._reading, self._writing = (Circuit(not store.is_local, self._record) for _ in range(2))

    @property
    def failing(self) -> StoreError | None:
        """The error of the failing direction; None while the store reads and writes."""
        return self._reading.failing or self._writing.failing

    def _record(self) -> None:
        now = self.failing is not None
        if now is not self._was_failing:
            self._was_failing = now
            self._on_change(self)

    def write(self, tenant: str, batch: WriteBatch) -> None:
        """See ``Store``."""
        self._writing.call(lambda: self._store.write(tenant, batch))

    def read(self, tenant: str, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """See ``Store``."""
        return self._reading.call(lambda: self._store.read(tenant, conversation, after))

    def original(self, tenant: str, handle: str) -> bytes | None:
        """See ``Store``."""
        return self._reading.call(lambda: self._store.original(tenant, handle))

    def handles(self, tenant: str, conversation: str) -> list[str]:
        """See ``Store``."""
        return self._reading.call(lambda: self._store.handles(tenant, conversation))

    def fact(self, tenant: str, name: str) -> bytes | None:
        """See ``Store``."""
        return self._reading.call(lambda: self._store.fact(tenant, name))

    def facts(self, tenant: str, prefix: str) -> Mapping[str, bytes]:
        """See ``Store``."""
        return self._reading.call(lambda: self._store.facts(tenant, prefix))

    def conversations(self) -> Sequence[ConversationInfo]:
        """See ``Store``."""
        return self._reading.call(self._store.conversations)

    def delete(self, tenant: str, conversation: str, *, before: float) -> bool:
        """See ``Store``."""
        return self._writing.call(lambda: self._store.delete(tenant, conversation, before=before))

    def faults(self) -> Sequence[str]:
        """See ``Store``."""
        return self._reading.call(self._store.faults)

    def close(self) -> None:
        """See ``Store``."""
        self._store.close()
