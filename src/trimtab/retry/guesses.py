"""Takes back what was tried after a refusal that named nothing, where it did not help."""

from __future__ import annotations

from trimtab.fitted import Fitted
from trimtab.session import Session


def undo_new_edits(session: Session, fitted: Fitted) -> None:
    """Take back the edits of this fit: they were made on a guess that did not help."""
    for edit in fitted.report.edits:
        if edit.new:
            session.undo(edit.handle)
            session.unpin(edit.handle)
