"""The marks of notes that stand for steps and messages left out, and how to tell them from other
text.

``planning/dropped_ranges.py`` writes these lines.  A forged one does no harm: it only keeps a
little more than has to stay.
"""

from __future__ import annotations

import re

LINES, ASKED = "these lines are", "these words are"
SUMMARY, BOTH = "a model's summary is", "a model's summary and these lines are"
"""What a note says is left: of what tools returned, the model said, the user said."""
EARLIER_WORDS = "earlier words"
"""What the model said and wrote in steps that were folded."""
WORDS, IN_SUMMARY, IN_BOTH = "in part", "in a model's summary", "in a model's summary and in part"
"""How much of it is left."""

_NOTES = re.compile(r"(?:(?:\n\n|\A)\[[\d,]+ earlier steps? left out to fit: [^\n]*\])+\Z")
_LEFT = "|".join((LINES, ASKED, SUMMARY, BOTH))
_LINES = re.compile(
    rf"(?:\n\n|\A)\[[\d,]+ earlier (?:step|message)s?, of which (?:{_LEFT}) left[^\n]*\]\n"
)


def without_notes(text: str) -> str:
    """What was said before notes were put behind it; "" where the text is nothing else."""
    if match := _LINES.search(text) if ", of which " in text else None:
        text = text[: match.start()]
    return _NOTES.sub("", text) if text.endswith("]") else text
