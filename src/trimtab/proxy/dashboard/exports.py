"""Exports the pages' data as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from trimtab.proxy.records.recent_requests import RecentRequests
from trimtab.proxy.records.session_record import SessionRecord, as_row


def as_json(value: Any) -> bytes:
    """Indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False).encode("utf-8", "backslashreplace")


def sessions(records: Iterable[SessionRecord]) -> bytes:
    """All sessions with their sums, the newest first."""
    newest = sorted(records, key=lambda one: -one.last)
    return as_json({"sessions": [_session(one) for one in newest]})


def session(one: SessionRecord) -> bytes:
    """One session with its turns, edits and refusals."""
    edits = [as_row(edit) | {"state": one.state(edit)} for edit in one.edits.values()]
    return as_json(_session(one) | {
        "turns": [as_row(turn) for turn in one.turns], "edits": edits,
        "refusals": [as_row(refusal) for refusal in one.refusals],
    })  # fmt: skip


def _session(one: SessionRecord) -> dict[str, Any]:
    row = as_row(one) | {"title": one.title, "sums": dict(one.sums)}
    for name in ("beginning", "loaded", "in_force"):
        row.pop(name, None)
    return row


def requests(kept: RecentRequests) -> bytes:
    """The last requests, the newest first; never their texts."""
    return as_json({"requests": [as_row(row) for row in reversed(kept.rows)]})
