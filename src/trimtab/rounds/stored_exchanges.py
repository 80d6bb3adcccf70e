"""Exchanges hidden from the client, in the store of a session or of a tenant of the proxy."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trimtab.errors import StoreError
from trimtab.session import Session
from trimtab.sessions.session_turns import store_of
from trimtab.stores import TenantStore
from trimtab.telemetry import fault

if TYPE_CHECKING:
    from trimtab.sessions.conversation_store import ConversationStore

AGAIN_SECONDS = 5.0
"""Seconds after which a store that did not answer is asked again."""


class SessionExchanges:
    """Hidden exchanges as facts in the store of a session, which says itself when that fails."""

    def __init__(self, store: ConversationStore) -> None:
        self._store = store

    @property
    def answers(self) -> bool:
        """Whether the last read was one."""
        return self._store.last_failure is None

    def read(self, conversation: str) -> Mapping[str, Any]:
        """All exchanges of a conversation, by key."""
        prefix = f"hidden/{conversation}/"
        facts = self._store.facts(prefix)
        return {name.removeprefix(prefix): json.loads(value) for name, value in facts.items()}

    def exchange(self, conversation: str, key: str) -> Any:
        """One exchange, or None."""
        return self._store.fact(f"hidden/{conversation}/{key}")

    def keep(self, conversation: str, key: str, value: Any) -> None:
        """Store an exchange; at once if other machines may need it for their next request."""
        self._store.write_fact_now(f"hidden/{conversation}/{key}", value)


def exchanges_of(session: Session) -> SessionExchanges | None:
    """Where a session keeps hidden exchanges; None without a store."""
    store = store_of(session)
    return None if store is None else SessionExchanges(store)


@dataclass
class StoreBackoff:
    """Until when (monotonic seconds) a store that did not answer is not asked again."""

    until: float = 0.0


class StoredExchanges:
    """Hidden exchanges as facts in a tenant's store.

    A store that does not answer is logged and not asked again for ``AGAIN_SECONDS``.
    """

    def __init__(self, store: TenantStore, quiet: StoreBackoff) -> None:
        self._store, self._quiet = store, quiet

    @property
    def answers(self) -> bool:
        """Whether the last read was one."""
        return time.monotonic() >= self._quiet.until

    def read(self, conversation: str) -> Mapping[str, Any]:
        """All exchanges of a conversation, by key."""
        prefix = f"hidden/{conversation}/"
        facts: Mapping[str, Any] = self._asked(lambda: self._store.facts(prefix)) or {}
        return {name.removeprefix(prefix): value for name, value in facts.items()}

    def exchange(self, conversation: str, key: str) -> Any:
        """One exchange, or None."""
        return self._asked(lambda: self._store.fact(f"hidden/{conversation}/{key}"))

    def keep(self, conversation: str, key: str, value: Any) -> None:
        """Store an exchange."""
        fact = {f"hidden/{conversation}/{key}": value}
        self._asked(lambda: self._store.write(self._store.batch("", facts=fact)))

    def _asked(self, ask: Callable[[], Any]) -> Any:
        if time.monotonic() < self._quiet.until:
            return None
        try:
            return ask()
        except StoreError as error:
            self._quiet.until = time.monotonic() + AGAIN_SECONDS
            fault("store", error)
            return None
