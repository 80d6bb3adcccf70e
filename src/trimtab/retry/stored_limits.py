"""Learned limits in a session's store, so that replicas share them and they survive a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from trimtab.sessions.conversation_store import ConversationStore

PREFIX = "limits/"
"""The prefix of the names of learned limits among a store's facts."""


class StoredLimits(MutableMapping[str, Mapping[str, Any]]):
    """The ``facts`` of ``LearnedLimits``, read from the store at each access and written at once.

    So a limit that one replica has learned applies to the next request on any replica.  If the
    store does not answer, the limits that this process learned itself apply.
    """

    def __init__(self, conversations: ConversationStore) -> None:
        self._conversations = conversations
        self._own: dict[str, Mapping[str, Any]] = {}

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        kept, own = self._conversations.fact(f"{PREFIX}{key}"), self._own.get(key)
        if not isinstance(kept, dict):
            return self._own[key]
        return own if own is not None and _at(own) > _at(kept) else kept

    def __setitem__(self, key: str, value: Mapping[str, Any]) -> None:
        self._own[key] = value
        self._conversations.write_fact_now(f"{PREFIX}{key}", value)

    def __delitem__(self, key: str) -> None:
        self[key] = {}  # an empty row: replicas see that it is gone

    def __iter__(self) -> Iterator[str]:
        kept = self._conversations.facts(PREFIX)
        return iter({name.removeprefix(PREFIX) for name in kept} | set(self._own))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _at(row: Mapping[str, Any]) -> float:
    """When ``row`` was learned, in seconds; 0 if a row of another release does not say."""
    at = row.get("at")
    return float(at) if isinstance(at, int | float) else 0.0
