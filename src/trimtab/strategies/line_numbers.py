"""Line numbers in front of each line, shown only where they are needed to count on.

Knows the ways in which tools number lines, and that a reader can count.  Does not know files: the
text behind the numbers stays byte for byte, so what an edit call quotes of it is still there.

A number stays on the first and the last line of a run, on each tenth, and where the line's own
text begins like a number.  To read it back: between two numbers of one kind with just as many
lines between them as are missing, each line has the next number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer, smaller

EVERY = 10
_NUMBER = re.compile(r"( *)([0-9]{1,9})(→|\t| ?\| ?|: )")
_CELLS = re.compile(r" *[0-9]+\t[^\t\n]+\t")
_SIGNS = ("→", "\t", "|", ": ")
Mark = tuple[int, int, str, int]
"""(number, width with its indent, what stands behind it, where the line's own text begins)."""


def line_numbers(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a tool result with numbered lines, loss 0; nothing if it cannot be exact."""
    if block.kind != "result":
        return
    text = thinned(block.text)
    if text is not block.text and smaller(text, block.text, config.count):
        yield Offer("replace", text, 0.0, "line-numbers", "a number on each tenth line")


def thinned(text: str) -> str:
    """The text with fewer line numbers; the text itself where that is none or not exact."""
    if "\n" not in text or not any(sign in text for sign in _SIGNS):
        return text
    lines = text.split("\n")
    marks = [_mark(line) for line in lines]
    if _is_table(lines, marks):
        return text
    shown: list[int] = []
    counted = False  # whether this line's number is the one before it plus one
    for at, mark in enumerate(marks):
        if mark is None:
            counted = False
            continue
        goes_on = at + 1 < len(marks) and _follows(mark, marks[at + 1])
        tenth = mark[0] % EVERY == 0
        if tenth or not (counted and goes_on) or _NUMBER.match(lines[at], mark[3]):
            shown.append(at)
        else:
            lines[at] = lines[at][mark[3] :]
        counted = goes_on
    for start, end in pairwise(shown):
        # Lines without a number that look as if we had taken it: no one could tell them apart.
        if marks[start + 1] is None and _follows(marks[start], marks[end], end - start):
            return text
    numbers = sum(mark is not None for mark in marks)
    return text if len(shown) == numbers else "\n".join(lines)


def _is_table(lines: list[str], marks: list[Mark | None]) -> bool:
    """Whether the numbers are a column: most lines have more cells, tab-separated, behind them."""
    tabbed = [at for at, mark in enumerate(marks) if mark is not None and mark[2] == "\t"]
    cells = sum(_CELLS.match(lines[at]) is not None for at in tabbed)
    return 2 * cells > len(tabbed)


def is_numbered(text: str) -> bool:
    """Whether two lines of the text carry numbers that fit what stands between them."""
    marks = [_mark(line) for line in text.split("\n")]
    shown = [at for at, mark in enumerate(marks) if mark is not None]
    return any(_follows(marks[at], marks[end], end - at) for at, end in pairwise(shown))


def _mark(line: str) -> Mark | None:
    found = _NUMBER.match(line)
    if found is None or (len(found[2]) > 1 and found[2][0] == "0"):
        return None
    return int(found[2]), found.end(2), found[3], found.end()


def _follows(first: Mark | None, second: Mark | None, step: int = 1) -> bool:
    if first is None or second is None or second[0] != first[0] + step or first[2] != second[2]:
        return False
    return second[1] == max(first[1], len(str(second[0])))
