"""Where each line of old steps stands, so that what notes left of them is found again.

Knows messages, their lines, and rows of notes.  Does not know groups, nor which lines will be
kept.  Goes on where it ended: a batch reads the notes, not the steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from trimtab.model import Block, Message, Transcript
from trimtab.planning.lines import Lines, lines_of, pieces
from trimtab.planning.weights import counts

Key = tuple[int, int]
"""(message, index) of a block."""


class Remains:
    """Of the messages that were added, in order.  Of equal lines the newest counts."""

    def __init__(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self._at: dict[str, tuple[int, int, int]] = {}
        """Text of a line → message, index of the block, number of the line."""

    def go_on(self, messages: tuple[Message, ...], read: Callable[[Block], Lines]) -> bool:
        """Add what is new in these messages; False where they begin otherwise."""
        old, at = len(self.messages), self._at
        if messages[:old] != self.messages:
            return False
        for number in range(old, len(messages)):
            for index, block in enumerate(messages[number].blocks):
                if counts(block):
                    at |= {
                        line.text: (number, index, row)
                        for row, line in enumerate(read(block).lines)
                    }
        self.messages = messages
        return True

    def left(self, notes: Iterable[str]) -> dict[Key, list[int]]:
        """Block → the numbers of those of its lines that stand in one of these notes."""
        found: dict[Key, set[int]] = {}
        for text in dict.fromkeys(row for note in notes for row in note.split("\n")):
            for message, index, row in self._stand(text):
                found.setdefault((message, index), set()).add(row)
        return {key: sorted(found[key]) for key in sorted(found)}

    def _stand(self, row: str) -> Iterator[tuple[int, int, int]]:
        """Where a row of a note was taken from; pieces of one line stand joined there."""
        if whole := self._at.get(row):
            yield whole
        else:
            yield from filter(None, map(self._at.get, pieces(row)))


def remains_of(
    transcript: Transcript, end: int, read: Callable[[Block], Lines] = lines_of
) -> Remains:
    """Of the first ``end`` messages."""
    found = Remains()
    found.go_on(transcript.messages[:end], read)
    return found


def only(lines: Lines, numbers: Iterable[int]) -> Lines:
    """Those of a block's lines; a piece whose neighbour is gone begins a row."""
    found, before = [], -1
    for number in numbers:
        line = lines.lines[number]
        joined = line.joined and before == number - 1
        found.append(line if joined == line.joined else replace(line, joined=joined))
        before = number
    return replace(lines, lines=tuple(found))
