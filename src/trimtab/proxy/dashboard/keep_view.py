"""The page of one session about what stays: what is pinned, and what the next cut would take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trimtab.proxy.dashboard.page import HOME, SEARCH, SESSIONS, page
from trimtab.proxy.records.session_record import SessionRecord
from trimtab.request.fitted import Fitted
from trimtab.transcript.protected import FILE_PIN, TEXT_PIN

SHOWN_EDITS = 40


def keep(
    session: SessionRecord, pins: Sequence[str], next_cut: Fitted | None,
    notes: Mapping[str, str], *, token: str, notice: str = "",
) -> bytes:  # fmt: skip
    """``pins``: named as for ``Session.pin``; ``next_cut``: None where the request's text is not
    kept; ``notes``: what the model noted down, by name."""
    named = [
        ("text", pin.removeprefix(TEXT_PIN)) if pin.startswith(TEXT_PIN)
        else ("file", pin.removeprefix(FILE_PIN))
        for pin in pins
        if pin.startswith((TEXT_PIN, FILE_PIN))
    ]  # fmt: skip
    edits = [edit for edit in next_cut.report.edits if edit.new] if next_cut else []
    return page(
        "keep.html", "What stays", trail=(*SESSIONS, (session.title, f"{HOME}s/{session.id}")),
        notes=list(notes.items()), any=bool(session.edits), search=SEARCH,
        session=session.id, token=token, notice=notice, known=bool(session.conversation),
        named=named, others=len(pins) - len(named),
        preview=next_cut is not None, reason=next_cut.report.reason if next_cut else "",
        edits=[
            (edit.kind, edit.tool or edit.role, edit.why,
             (f"{edit.tokens_before:,}", f"{edit.tokens_after:,}"))
            for edit in edits[:SHOWN_EDITS]
        ],
    )  # fmt: skip
