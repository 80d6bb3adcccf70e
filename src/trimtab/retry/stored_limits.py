"""Learned limits in a session's store, so that replicas share them and they survive a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from trimtab.session import Session, keep_fact, stored_fact, stored_facts

PREFIX = "limits/"
"""The prefix of the names of learned limits among a store's facts."""


class StoredLimits(MutableMapping[str, Mapping[str, Any]]):
    """The ``facts`` of ``LearnedLimits``, read from the store at each access and written at once.

    So a limit that one replica has learned applies to the next request on any replica.  If the
    store does not answer, the limits that this process learned itself apply.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._own: dict[str, Mapping[str, Any]] = {}

    def __getitem__(self, key: str) -> Mapping[str, Any]:
        kept, own = stored_fact(self._session, f"{PREFIX}{key}"), self._own.get(key)
        if not isinstance(kept, dict):
            return self._own[key]
        return own if own is not None and _at(own) > _at(kept) else kept

    def __setitem__(self, key: str, value: Mapping[str, Any]) -> None:
        self._own[key] = value
        keep_fact(self._session, f"{PREFIX}{key}", value)

    def __delitem__(self, key: str) -> None:
        raise TypeError("limits are not taken back: they are forgotten when their time is over")

    def __iter__(self) -> Iterator[str]:
        kept = stored_facts(self._session, PREFIX)
        return iter({name.removeprefix(PREFIX) for name in kept} | set(self._own))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _at(row: Mapping[str, Any]) -> float:
    """When ``row`` was learned, in seconds; 0 if a row of another release does not say."""
    at = row.get("at")
    return float(at) if isinstance(at, int | float) else 0.0
