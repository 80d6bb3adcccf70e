"""Exports the pages' data as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from trimtab.proxy.records.recent_requests import RecentRequests
from trimtab.proxy.records.request_record import RequestRecord, as_row
from trimtab.proxy.records.session_record import SessionRecord


def as_json(value: Any) -> bytes:
    """Indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")


def sessions(records: Iterable[SessionRecord]) -> bytes:
    """All sessions with their sums, the newest first."""
    newest = sorted(records, key=lambda session: -session.last)
    return as_json({"sessions": [_session(session) for session in newest]})


def session(session: SessionRecord) -> bytes:
    """One session with its turns, edits and refusals."""
    edits = [
        edit.as_edit().as_dict()
        | {"turn": edit.turn, "pinned": edit.pinned, "state": session.state(edit)}
        for edit in session.edits.values()
    ]
    return as_json(_session(session) | {
        "turns": [turn.as_turn() for turn in session.turns], "edits": edits,
        "refusals": session.refusals,
    })  # fmt: skip


def _session(session: SessionRecord) -> dict[str, Any]:
    row = as_row(session) | {"title": session.title, "sums": dict(session.sums)}
    for name in ("beginning", "loaded", "stored", "in_force"):
        row.pop(name, None)
    return row


def requests(recent: RecentRequests) -> bytes:
    """The last requests, the newest first; never their texts."""
    return as_json({"requests": [_request(row) for row in reversed(recent.rows)]})


def _request(record: RequestRecord) -> dict[str, Any]:
    row = as_row(record)
    turn, row["number"] = row["number"], row.pop("request")
    return row | ({"turn": turn} if turn else {})
