"""Learned limits in a session's store, so that replicas share them and they survive a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from trimtab.session import Session, keep_fact, stored_fact, stored_facts

PREFIX = "limits/"
"""Of the names of learned limits among a store's facts."""


class StoredLimits(MutableMapping[str, Mapping[str, Any]]):
    """The ``facts`` of ``LearnedLimits``: each is read when it is asked for, and written at once.

    So what one replica has learned holds for the next request, whichever serves it.  Where the
    store does not answer, what this process learned itself holds.
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
    """When it was learned; long ago where a row of another release does not say."""
    at = row.get("at")
    return float(at) if isinstance(at, int | float) else 0.0
