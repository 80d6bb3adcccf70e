"""Exchanges hidden from the client, in the store of a session."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trimtab.session import Session
from trimtab.sessions.session_turns import store_of
from trimtab.stores.base import exchanges_of as names_of

if TYPE_CHECKING:
    from trimtab.sessions.conversation_store import ConversationStore


class StoredExchanges:
    """Hidden exchanges as facts in the store of a session, which logs itself where it fails."""

    def __init__(self, store: ConversationStore) -> None:
        self._store = store

    @property
    def answers(self) -> bool:
        """Whether the last read was answered; if not, nothing is known of what was not found."""
        return self._store.last_failure is None

    def read(self, conversation: str) -> Mapping[str, Any]:
        """All exchanges of a conversation, by key."""
        prefix = names_of(conversation)
        facts = self._store.facts(prefix)
        return {name.removeprefix(prefix): json.loads(value) for name, value in facts.items()}

    def exchange(self, conversation: str, key: str) -> Any:
        """One exchange, or None."""
        return self._store.fact(f"{names_of(conversation)}{key}")

    def keep(self, conversation: str, key: str, value: Any) -> None:
        """Store an exchange before the client can send its next request."""
        self._store.write_fact_now(f"{names_of(conversation)}{key}", value)


def exchanges_of(session: Session) -> StoredExchanges | None:
    """Where a session keeps hidden exchanges; None without a store."""
    store = store_of(session)
    return None if store is None else StoredExchanges(store)
