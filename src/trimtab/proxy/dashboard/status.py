"""What ``trimtab status`` asks: one session in figures, as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from trimtab.proxy.records.activity_log import ActivityLog, outcome_of
from trimtab.proxy.records.session_record import SessionRecord

HANDLES = 5
MIN_CHARS = 4
"""Of the beginning of a name that a person types in place of it."""


def session_status(activity: ActivityLog, name: str, *, recall: bool) -> dict[str, Any]:
    """The session that a client calls ``name``, or whose name or id begins so; without a name the
    newest.  Several that begin so are ``candidates``.

    Titles, summaries and subagents share the client's name: of its conversations with more than
    one request the newest counts.  ``recall``: whether the model is offered the tool.
    """
    newest = [session for session in reversed(activity.sessions.values()) if session.turns]
    named = [session for session in newest if session.hint == name] if name else newest
    if not named and len(name) >= MIN_CHARS:
        named = [one for one in newest if one.hint.startswith(name) or one.id.startswith(name)]
        if len(names := {one.hint or one.id for one in named}) > 1:
            return {"session": "", "candidates": sorted(names)[:HANDLES]}
    shown = next((session for session in named if session.count > 1), named[0] if named else None)
    return {"session": ""} if shown is None else _figures(shown, recall=recall)


def _figures(session: SessionRecord, *, recall: bool) -> dict[str, Any]:
    last = session.turns[-1]
    edits, sums = list(session.edits.values()), session.sums
    return {
        "session": session.hint or session.id, "client": session.client, "model": session.model,
        "requests": session.count, "window": last.window, "sent": last.sent,
        "arrived": last.arrived, "saved": session.saved,
        "edits": dict(Counter(edit.kind for edit in edits)),
        "handles": [edit.handle for edit in reversed(edits)][:HANDLES],
        "outcome": outcome_of(sums) if sums["outgrown"] else "",
        "refusals": sums["survived"],
        "recall": recall, "tenant": f"{session.upstream}/{session.tenant}",
        "page": f"/_trimtab/s/{session.id}",
    }  # fmt: skip
