"""Notes of ours told from what was said: the lines that stand for dropped steps.

Knows how such a note reads (board.py writes it).  Decides nothing that a forged note could harm:
one keeps a little more than has to stay.
"""

from __future__ import annotations

import re

LINES, SUMMARY = "these lines are", "a model's summary is"
BOTH = "a model's summary and these lines are"
"""What a note says is left of the steps it stands for."""

_NOTES = re.compile(r"(?:(?:\n\n|\A)\[[\d,]+ earlier steps? left out to fit: [^\n]*\])+\Z")
_LINES = re.compile(
    rf"(?:\n\n|\A)\[[\d,]+ earlier steps?, of which (?:{LINES}|{SUMMARY}|{BOTH}) left[^\n]*\]\n"
)


def without_notes(text: str) -> str:
    """What was said before notes were put behind it; "" where the text is nothing else."""
    if found := _LINES.search(text) if ", of which " in text else None:
        text = text[: found.start()]
    return _NOTES.sub("", text) if text.endswith("]") else text
