"""The page of one edit: the original beside what is sent."""

from __future__ import annotations

from trimtab.journal.folded_steps import CONTENTS_CHARS, folded_steps, steps_of
from trimtab.proxy.dashboard.page import HOME, SESSIONS, page
from trimtab.proxy.dashboard.readable import cut, statements
from trimtab.proxy.records.session_record import EditRecord, SessionRecord


def actions(
    session: SessionRecord, edit: EditRecord, kept: bool
) -> list[tuple[str, str, str, str]]:
    """The actions on an edit: (name, label, effect, why it is not possible or "").

    ``kept``: whether its original is kept.
    """
    state = session.state(edit)
    no_undo = {
        "to be undone": "undone already: the next turn sends the original",
        "undone": "undone already",
        "replaced": "another edit took its place, or its text is no longer sent: nothing to undo",
    }.get(state, "")
    undo = no_undo or ("" if kept else "the original is no longer kept")
    rows = [("undo", "Undo", "send the original from the next turn on; costs a cache break", undo)]
    if edit.pinned:
        rows.append(("unpin", "Unpin", "it may be reduced again", ""))
    else:
        no_pin = "" if state == "in force" else f"this edit is {state}"
        rows.append(("pin", "Pin", "reduce it no further", no_pin))
    return rows


def edit(
    session: SessionRecord, row: EditRecord, before: str | None, after: str, *, token: str,
    notice: str = "", step: str = "",
) -> bytes:  # fmt: skip
    """The page of one edit: the original beside what is sent.  For a fold: the table of contents of
    its steps, and the step with the number ``step``."""
    steps = folded_steps(before) if before and len(before) > CONTENTS_CHARS else []
    steps = steps if len(steps) > 1 else []
    chosen = int(step) if steps and step.isdecimal() and len(step) < 7 else 0
    chosen = chosen if chosen <= len(steps) else 0
    shown, edit_state = before, session.state(row)
    if before is not None and chosen:
        shown = steps_of(before, chosen, chosen)
    return page(
        "edit.html", row.handle, trail=(*SESSIONS, (session.title, f"{HOME}s/{session.id}")),
        about=f"{row.as_edit().title}, turn {row.turn}: {row.why}",
        state=edit_state + (", pinned" if row.pinned else ""),
        notice=notice, actions=actions(session, row, before is not None), token=token,
        session=session.id,
        before=None if shown is None else cut(shown), after=cut(after),
        stands=edit_state == "in force", is_undone="undone" in edit_state,
        pending=edit_state == "to be undone",
        read=statements(shown, session.format) if shown and shown.startswith("[{") else None,
        steps=steps, chosen=chosen,
        before_tokens=f"{round(row.tokens_before * session.ratio):,}",
        after_tokens=f"{round(row.tokens_after * session.ratio):,}",
    )  # fmt: skip
