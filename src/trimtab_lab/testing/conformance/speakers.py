"""Checks that no text is attributed to a speaker who never said it.

Each piece of 40 chars belongs to the speakers who said it in the conversation.  In a tool result a
line may name a call, and the record of folded steps tells what calls were given: it says what was
done, not what a tool said.
"""

from __future__ import annotations

from trimtab_lab.testing.conformance import stories
from trimtab_lab.testing.conformance.reading import SaidPiece
from trimtab_lab.testing.conformance.stories import DEFERRED, TOOLS, Story

PIECE = 40
HEADER_CHARS = 120


_BITS = {"user": 1, "model": 2, "tool": 4, "system": 8}
_GIVEN = 16
"""The bit of what a call was given."""
_TOOLS = (*TOOLS, *DEFERRED)
_RECORD = "of which this record is left"


class Speakers:
    """Who said each piece of a story."""

    def __init__(self, story: Story) -> None:
        self._who: dict[str, int] = {}
        self._fine: set[tuple[str, str]] = set()
        for speaker, text in stories.texts(story):
            self._fine.add((speaker, text))
            self._add(text, _BITS[speaker])
        for call in (call for turn in story.turns for call in turn.calls):
            for text in filter(lambda value: isinstance(value, str), call.arguments.values()):
                self._add(text, _GIVEN)

    def _add(self, text: str, bit: int) -> None:
        for start in range(len(text) - PIECE + 1):
            piece = text[start : start + PIECE]
            self._who[piece] = self._who.get(piece, 0) | bit

    def foreign(self, words: SaidPiece) -> str | None:
        """A piece of the text that only other speakers said; None if there is none."""
        speaker, text = words.speaker, words.text
        bit = _BITS.get(speaker)
        if bit is None or words.kind in ("sealed", "other") or (speaker, text) in self._fine:
            return None
        if speaker == "tool" and _RECORD in text:
            bit |= _GIVEN
        for line in text.split("\n"):
            if _is_header(speaker, line):
                continue
            for start in range(len(line) - PIECE + 1):
                piece = line[start : start + PIECE]
                if not self._who.get(piece, bit) & bit:
                    return piece
        self._fine.add((speaker, text))
        return None


def _is_header(speaker: str, line: str) -> bool:
    """Whether a line of a tool result names a call."""
    return speaker == "tool" and len(line) <= HEADER_CHARS and any(name in line for name in _TOOLS)
