"""Stores the dashboard's sessions, so that they survive a restart.

Each session has one fact with its sums, and append-only entries with its turns, edits and refusals.
``trimtab purge`` deletes them like conversations.  A session without an accepted request is not
stored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from trimtab.errors import StoreError
from trimtab.forking import ProcessName
from trimtab.proxy.records.activity_log import SESSIONS, ActivityLog
from trimtab.proxy.records.session_record import (
    EditRecord,
    RefusalRecord,
    SessionRecord,
    TurnRecord,
    as_row,
    from_row,
)
from trimtab.stores.base import stats_of
from trimtab.stores.tenant import SESSIONS as TENANT
from trimtab.stores.tenant import TenantStore

_HEAD = "head"
_PREFIX = "stats/"
_MOST_WAITING = 500
"""Rows kept in memory while the store does not answer."""


class SessionHistory:
    """Writes new records and reads earlier ones.  Without a ``store`` nothing is kept."""

    def __init__(self) -> None:
        self.store: TenantStore | None = None
        self._process, self._count = ProcessName(), 0
        self._waiting: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    def collect(self, activity: ActivityLog) -> None:
        """Collect what is new.  Runs on the event loop, where all records are changed."""
        news, activity.news = activity.news, {}
        if self.store is None:
            return
        for id, unstored in news.items():
            session = unstored.session
            if not session.sums["turns"] or not session.tenant:
                if activity.sessions.get(id) is session:
                    activity.news.setdefault(id, unstored)  # its first accepted request may come
                    del unstored.turns[:-SESSIONS], unstored.refusals[:-SESSIONS]
                continue
            edits = [session.edits[name] for name in unstored.edits if name in session.edits]
            rows = {
                "turns": [as_row(turn) for turn in unstored.turns[-SESSIONS:]],
                "edits": [as_row(edit) for edit in edits],
                "refusals": [as_row(refusal) for refusal in unstored.refusals],
            }
            self._waiting.append((id, _head(session), rows))
        del self._waiting[:-_MOST_WAITING]

    def write(self) -> None:
        """Write what was collected; a failed write is tried again later.  Runs in a worker
        thread."""
        if self.store is None:
            return
        while self._waiting:
            id, head, rows = self._waiting[0]
            self._count += 1
            entry = (f"{self._process}-{self._count}", json.dumps(rows).encode())
            facts = {stats_of(id) + _HEAD: head}
            try:
                self.store.write(self.store.batch(id, [entry], updated_facts=facts))
            except StoreError:
                return
            del self._waiting[:1]

    def read(self) -> list[SessionRecord]:
        """The most recently used sessions, oldest first, without turns and edits.  Raises
        StoreError."""
        if self.store is None:
            return []
        sessions = list(_read(SessionRecord, self.store.facts(_PREFIX).values()))
        sessions.sort(key=lambda session: session.last)
        for session in sessions:
            session.loaded = False
        return sessions[-SESSIONS:]

    def parts(self, id: str) -> list[dict[str, Any]] | None:
        """The stored turns, edits and refusals of a session; None if the store does not answer.
        Runs in a worker thread."""
        try:
            rows = [] if self.store is None else self.store.read(id)[0]
            return [json.loads(row) for row in rows]
        except (StoreError, ValueError):
            return None

    def fill(self, session: SessionRecord, parts: list[dict[str, Any]] | None) -> None:
        """Put a session's stored parts before those of this run."""
        if session.loaded or parts is None:
            return
        turns, edits, refusals = (
            {
                turn.number: turn
                for part in parts
                for turn in _read(TurnRecord, part.get("turns", ()))
            },
            {
                edit.handle: edit
                for part in parts
                for edit in _read(EditRecord, part.get("edits", ()))
            },
            [
                refusal
                for part in parts
                for refusal in _read(RefusalRecord, part.get("refusals", ()))
            ],
        )
        for turn in turns.values():
            turn.request = 0  # a number of another run
        own = {turn.number: turn for turn in session.turns}
        session.turns.extendleft(
            turns[number] for number in sorted(turns, reverse=True) if number not in own
        )
        for handle, edit in reversed(list(edits.items())):
            session.edits[handle] = session.edits.get(handle, edit)
            session.edits.move_to_end(handle, last=False)
        known = {(refusal.when, refusal.turn) for refusal in session.refusals}
        older = [each for each in refusals if (each.when, each.turn) not in known]
        session.refusals.extendleft(reversed(older))
        session.loaded = True


def _head(session: SessionRecord) -> dict[str, Any]:
    row = as_row(session) | {"sums": dict(session.sums)}
    row.pop("loaded", None)
    return row


def _read(kind: type[Any], rows: Any) -> Iterator[Any]:
    """The records in these rows; rows that this release cannot read are skipped."""
    for row in rows:
        try:
            record = from_row(kind, row)
        except (TypeError, AttributeError):
            continue
        if isinstance(record, SessionRecord):
            record.sums = Counter(record.sums)
        yield record


__all__ = ["TENANT", "SessionHistory"]
