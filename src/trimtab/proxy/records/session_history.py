"""Stores the dashboard's sessions, so that they survive a restart.

Each session has one fact with its sums, and append-only entries with its turns and edits.
``trimtab purge`` deletes them like conversations.  A session without an accepted request is not
stored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from trimtab.errors import StoreError
from trimtab.forking import ProcessName
from trimtab.proxy.records.activity_log import SESSIONS
from trimtab.proxy.records.request_record import RequestRecord, as_row, from_row
from trimtab.proxy.records.session_record import EditRecord, SessionRecord
from trimtab.stores.base import stats_of
from trimtab.stores.tenant import TenantStore

_HEAD = "head"
_PREFIX = "stats/"
_MAX_WAITING = 500
"""Rows kept in memory while the store does not answer."""


class SessionHistory:
    """Writes new records and reads earlier ones."""

    def __init__(self) -> None:
        self._process, self._count = ProcessName(), 0
        self._waiting: list[tuple[str, dict[str, Any], dict[str, Any]]] = []

    def collect(self, sessions: Iterable[SessionRecord]) -> None:
        """Collect what is new.  Runs on the event loop, where all records are changed."""
        for session in sessions:
            stored, changed = session.stored, session.changed
            if stored == session.count and not changed:
                continue
            if not session.sums["turns"] or not session.tenant:
                continue  # its first accepted request may come
            turns = [turn for turn in session.turns if turn.number > stored]
            edits = [
                edit for edit in session.edits.values()
                if edit.turn > stored or edit.handle in changed
            ]  # fmt: skip
            rows = {
                "turns": [turn.as_turn() for turn in turns[-SESSIONS:]],
                "edits": [as_row(edit) for edit in edits],
            }
            session.stored, session.changed = session.count, set()
            self._waiting.append((session.id, _head(session), rows))
        del self._waiting[:-_MAX_WAITING]

    def forget(self, id: str) -> None:
        """Leave out what was collected of a session."""
        self._waiting = [row for row in self._waiting if row[0] != id]

    def write(self, store: TenantStore) -> None:
        """Write what was collected; a failed write is tried again later.  Runs in a worker
        thread."""
        while self._waiting:
            id, head, rows = waiting = self._waiting.pop(0)
            self._count += 1
            entry = (f"{self._process}-{self._count}", json.dumps(rows).encode())
            facts = {stats_of(id) + _HEAD: head}
            try:
                store.write(store.batch(id, [entry], updated_facts=facts))
            except StoreError:
                self._waiting.insert(0, waiting)
                return


def read_sessions(store: TenantStore) -> list[SessionRecord]:
    """The most recently used sessions, oldest first, without turns and edits.  Raises
    StoreError."""
    sessions = list(_read(SessionRecord, store.facts(_PREFIX).values()))
    sessions.sort(key=lambda session: session.last)
    for session in sessions:
        session.loaded, session.stored = False, session.count
    return sessions[-SESSIONS:]


def stored_parts(store: TenantStore, id: str) -> list[dict[str, Any]] | None:
    """The stored turns and edits of a session; None if the store does not answer.  Runs in a worker
    thread."""
    try:
        return [json.loads(row) for row in store.read(id)[0]]
    except (StoreError, ValueError):
        return None


def fill(session: SessionRecord, parts: list[dict[str, Any]] | None) -> None:
    """Put a session's stored parts before those of this run."""
    if session.loaded or parts is None:
        return
    turns = {
        turn.number: turn for part in parts for turn in _read(RequestRecord, part.get("turns", ()))
    }
    for turn in turns.values():
        turn.request = 0  # a number of another run
    for row in (row for part in parts for row in part.get("refusals", ())):  # of earlier releases
        if (turn := turns.get(row["turn"])) is not None:
            turn.refusals += ((row["status"], row["kind"]),)
            if row["action"] == "recovered":
                turn.sends = max(turn.sends, len(turn.refusals) + 1)
    own = {turn.number for turn in session.turns}
    session.turns.extendleft(
        turns[number] for number in sorted(turns, reverse=True) if number not in own
    )
    edits = {
        edit.handle: edit for part in parts for edit in _read(EditRecord, part.get("edits", ()))
    }
    for handle, edit in reversed(list(edits.items())):
        session.edits[handle] = session.edits.get(handle, edit)
        session.edits.move_to_end(handle, last=False)
    session.loaded = True


def _head(session: SessionRecord) -> dict[str, Any]:
    row = as_row(session) | {"sums": dict(session.sums)}
    for name in ("loaded", "stored"):
        row.pop(name, None)
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
