"""What ``trimtab status`` asks: one session in figures, as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from trimtab.proxy.records.activity_log import ActivityLog
from trimtab.proxy.records.session_record import SessionRecord

HANDLES = 5


def session_status(activity: ActivityLog, name: str, *, recall: bool) -> dict[str, Any]:
    """The session that a client calls ``name``; without a name the newest.

    Titles, summaries and subagents share the client's name: of its conversations with more than
    one request the newest counts.  ``recall``: whether the model is offered the tool.
    """
    newest = [one for one in reversed(activity.sessions.values()) if one.turns]
    named = [one for one in newest if one.hint == name] if name else newest
    shown = next((one for one in named if one.count > 1), named[0] if named else None)
    return {"session": ""} if shown is None else _figures(shown, recall=recall)


def _figures(one: SessionRecord, *, recall: bool) -> dict[str, Any]:
    last = one.turns[-1]
    edits = list(one.edits.values())
    return {
        "session": one.hint or one.id, "client": one.client, "model": one.model,
        "requests": one.count, "window": last.window, "sent": last.sent, "arrived": last.arrived,
        "saved": one.saved, "edits": dict(Counter(edit.kind for edit in edits)),
        "handles": [edit.handle for edit in reversed(edits)][:HANDLES],
        "refusals": sum(refusal.action == "recovered" for refusal in one.refusals),
        "recall": recall, "tenant": f"{one.upstream}/{one.tenant}", "page": f"/_trimtab/s/{one.id}",
    }  # fmt: skip
