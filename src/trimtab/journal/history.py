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
    """Every edit that has a handle, oldest first; ``times``: when they were written."""
    rows = dict[str, ReportEdit]()
    for edit in entries:
        if edit.op == "restore" and edit.handle in rows:
            rows[edit.handle] = replace(rows[edit.handle], undone=True)
        elif edit.handle and edit.op not in ("restore", "insert"):
            rows.pop(edit.handle, None)  # made once more after it was undone
            rows[edit.handle] = replace(row_of(edit), at=times.get(edit))
    return list(rows.values())
