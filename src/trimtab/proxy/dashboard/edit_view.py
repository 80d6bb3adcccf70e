"""The page of one edit: the original next to what is sent."""

from __future__ import annotations

from collections.abc import Iterable

from trimtab.amounts import many
from trimtab.journal.folded_steps import CONTENTS_CHARS, folded_steps, steps_of
from trimtab.proxy.dashboard.kept_lines import LineRun, marked, sent_lines
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
    """The page of one edit: the original and what is sent.  For a fold: the table of contents of
    its steps, and the step with the number ``step``."""
    steps = folded_steps(before) if before and len(before) > CONTENTS_CHARS else []
    steps = steps if len(steps) > 1 else []
    chosen = int(step) if steps and step.isdecimal() and len(step) < 7 else 0
    chosen = chosen if chosen <= len(steps) else 0
    shown, edit_state = before, session.state(row)
    if before is not None and chosen:
        shown = steps_of(before, chosen, chosen)
    sent = sent_lines(after)
    all_read = statements(shown, session.format) if shown and shown.startswith("[{") else None
    read = all_read.last if all_read else None
    passages = [
        (one.kind, one.speaker, marked(one.text, sent)) for one in (read.rows if read else ())
    ]
    lines = marked(cut(shown), sent) if shown and not read else []
    runs = [*lines, *(run for _, _, runs in passages for run in runs)]
    return page(
        "edit.html", session.title_of(row),
        trail=(*SESSIONS, (session.title, f"{HOME}s/{session.id}")), handle=row.handle,
        about=f"{_done(session, row)} on turn {row.turn}: {row.why}", any_kept=_kept(runs),
        state=edit_state + (", pinned" if row.pinned else ""),
        notice=notice, actions=actions(session, row, before is not None), token=token,
        session=session.id,
        kept=before is not None, lines=lines, passages=passages,
        earlier=read.earlier if read else 0, after=cut(after),
        in_force=edit_state == "in force", is_undone="undone" in edit_state,
        pending=edit_state == "to be undone",
        steps=steps, chosen=chosen,
        before_tokens=f"{round(row.tokens_before * session.ratio):,}",
        after_tokens=f"{round(row.tokens_after * session.ratio):,}",
    )  # fmt: skip


def _done(session: SessionRecord, row: EditRecord) -> str:
    """What the title does not say already."""
    words = row.as_edit().title
    return "Made" if session.title_of(row).startswith(words) else f"{words[:1].upper()}{words[1:]}"


def _kept(runs: Iterable[LineRun]) -> str:
    """``64 of 151 lines are sent word for word``; "" where none is."""
    counts = {True: 0, False: 0}
    for run in runs:
        counts[run.kept] += run.text.count("\n") + (not run.text.endswith("\n"))
    if not counts[True]:
        return ""
    return f"{counts[True]:,} of {many(sum(counts.values()), 'line')} are sent word for word"
