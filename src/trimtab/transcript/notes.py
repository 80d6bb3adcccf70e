"""The wording of notes that replace folded steps and messages, and how to recognise it.

``planning/dropped_ranges.py`` writes these lines.  If a text imitates one, the only effect is that
more than necessary is kept, as long as it fits.
"""

from __future__ import annotations

import re

LINES, USER_WORDS = "this record is", "these words are"
OLD_LINES = "these lines are"
"""What notes said until records replaced them."""
SUMMARY, BOTH = "a model's summary is", "a model's summary and the record of other steps are"
"""What a note says it keeps: the record of tools, words of the user, a model's summary."""
OLD_BOTH = "a model's summary and these lines are"
"""What notes said of a summary of some steps until they named the rest."""
EARLIER_WORDS = "earlier words"
"""The model's text in folded steps."""
WORDS, IN_SUMMARY, IN_BOTH = "in part", "in a model's summary", "in a model's summary and in part"
"""In which form those earlier words are kept."""

_NOTES = re.compile(r"(?:(?:\n\n|\A)\[[\d,]+ earlier steps? left out to fit: [^\n]*\])+\Z")
_LEFT = "|".join((LINES, OLD_LINES, USER_WORDS, SUMMARY, BOTH, OLD_BOTH))
_LINES = re.compile(
    rf"(?:\n\n|\A)\[[\d,]+ earlier (?:step|message)s?, of which (?:{_LEFT}) left[^\n]*\]\n"
)
_ANY_NOTE = re.compile(r"^\[(?:[^\[\]\n]* )?left out to fit\b[^\n]*\]$", re.MULTILINE)


def without_notes(text: str) -> str:
    """Return the text without the notes appended to it; "" if it consists of notes alone."""
    if match := _LINES.search(text) if ", of which " in text else None:
        text = text[: match.start()]
    return _NOTES.sub("", text) if text.endswith("]") else text


def is_drop_note(text: str) -> bool:
    """Whether a text consists of notes about dropped steps alone.

    >>> is_drop_note("[2 earlier steps left out to fit: Read ×2]"), is_drop_note("Go on.")
    (True, False)
    """
    return _NOTES.fullmatch(text) is not None


def has_note(text: str) -> bool:
    """Whether a text has a line that is our note about steps, messages or media left out.

    >>> has_note("See:\\n[image left out to fit]"), has_note("It was left out to fit.")
    (True, False)
    """
    if "left out to fit" in text and _ANY_NOTE.search(text):
        return True
    return ", of which " in text and _LINES.search(text) is not None
