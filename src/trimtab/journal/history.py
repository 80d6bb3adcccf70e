"""The edits of a journal as people and programs read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from trimtab.report import ReportEdit
from trimtab.transcript.model import Edit, EditFigures


def row_of(edit: Edit) -> ReportEdit:
    """One edit, as far as it is known without a request."""
    figures = edit.figures or EditFigures()
    return ReportEdit(
        handle=edit.handle, kind=edit.kind, op=edit.op, why=edit.why, steps=figures.steps,
        tokens_before=figures.tokens_before, tokens_after=figures.tokens_after, loss=edit.loss,
        tool=figures.tool or None, role=figures.role, refs=edit.targets, new=False,
    )  # fmt: skip


def history_of(entries: Iterable[Edit], times: Mapping[Edit, int]) -> list[ReportEdit]:
    """Every edit that has a handle, oldest first; ``times``: when they were written.

    One newer entry about one of its blocks is enough for an edit not to apply, as in
    ``Journal.active``.
    """
    rows, edits = dict[str, ReportEdit](), list[Edit]()
    for edit in entries:
        if edit.op == "insert" or not edit.handle:
            continue
        edits.append(edit)
        if edit.op != "restore":
            rows.pop(edit.handle, None)  # made once more after it was undone
            rows[edit.handle] = replace(row_of(edit), at=times.get(edit))
    newer, seen = dict[str, Edit](), set[str]()
    for edit in reversed(edits):
        if edit.handle in rows and edit.handle not in seen and edit.op != "restore":
            seen.add(edit.handle)
            later = [newer[ref] for ref in edit.targets if ref in newer]
            made = next((one.handle for one in later if one.op != "restore"), "")
            row = rows[edit.handle]
            rows[edit.handle] = replace(row, undone=bool(later) and not made, replaced_by=made)
        for ref in edit.targets:
            newer.setdefault(ref, edit)
    return list(rows.values())
