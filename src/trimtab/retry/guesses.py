"""What is tried after a refusal that named nothing; taking it back where it did not help."""

from __future__ import annotations

from trimtab.errors import InvalidSetting
from trimtab.fitted import Fitted
from trimtab.session import Session

RESULT_CHARS = 512
"""To what a refusal that names nothing cuts each tool result."""


def result_chars(value: int) -> int:
    """``retry_result_chars`` as it came.  Raises InvalidSetting where it is no number of chars."""
    if type(value) is not int or value < 0:
        raise InvalidSetting(
            f"retry_result_chars={value!r}: give a whole number, 0 for no such retry"
        )
    return value


def undo_new_edits(session: Session, fitted: Fitted) -> None:
    """Take back the edits of this fit: they were made on a guess that did not help."""
    for edit in fitted.report.edits:
        if edit.new and edit.op != "compact":
            session.undo(edit.handle)
            session.unpin(edit.handle)
