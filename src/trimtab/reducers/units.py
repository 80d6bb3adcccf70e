"""Units: the lines that belong to one line, so that they tell what it is.

A function from its signature to its end, a row with its header, an item with its parents, a hunk
with its file, a failing test with its report.  Read from indentation, brackets and rules of lines,
never parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trimtab.reducers.content.base import unnumbered

MAX_UNIT = 60
"""Most lines of a unit after its first, and most lines that are looked back over for a small one.
"""
SMALL_UNIT = 24
"""A block of at most so many lines is shown whole around the line in it."""
_CLOSES = re.compile(r"\s*(?:[)}\]]|end\b|</|\{\s*$)")
_RULE = re.compile(r"\s*[|+ ]*:?-{2,}[-+| :]*$")
_FILE = re.compile(r"diff --|Index: |\+\+\+ |--- ")
_TITLE = re.compile(r"(?:_{3,}|={3,}|-{4}) .+ (?:_{3,}|={3,}|-{4})$|#{1,6} \S")
_BREAK = re.compile(r"\s*(?:-{3,})?\s*$")
_ROW_BEGINS, _ROW_ENDS = re.compile(r"(?i)\s*<tr\b"), re.compile(r"(?i).*</tr>")
_HEAD_CELL = re.compile(r"(?i)<th\b")


def depth(line: str) -> int:
    """Columns of indentation; −1 for a blank line."""
    bare = unnumbered(line).expandtabs(4)
    stripped = bare.lstrip()
    return len(bare) - len(stripped) if stripped else -1


def unit(lines: Sequence[str], number: int, kind: str) -> Iterator[int]:
    """The other lines of the unit of this line, the most telling first."""
    if kind == "diff":
        yield from _hunk(lines, number)
        return
    if _TITLE.match(lines[number]):
        yield from _titled(lines, number)
        return
    row = list(_row(lines, number))
    if row:
        yield from row
        return
    yield from _header(lines, number)
    yield from _nested(lines, number)
    yield from _section(lines, number)


def _hunk(lines: Sequence[str], number: int) -> Iterator[int]:
    back = range(number - 1, max(-1, number - 400), -1)
    header = next((n for n in back if lines[n].startswith("@@")), None)
    if lines[number].startswith(("diff --", "--- ", "+++ ", "@@")):
        end = next((n for n in range(number + 1, len(lines)) if lines[n].startswith("diff --")),
                   len(lines))  # fmt: skip
        after = range(number + 1, min(end, number + MAX_UNIT))
        yield from (n for n in after if lines[n][:1] in ("+", "-", "@"))
    else:
        if header is not None:
            yield header
        for near in range(1, 7):
            for n in (number + near, number - near):
                if 0 <= n < len(lines) and lines[n][:1] in ("+", "-"):
                    yield n
    seen = 0
    for n in back:
        if _FILE.match(lines[n]):
            yield n
            seen += 1
        elif seen:
            break


def _titled(lines: Sequence[str], number: int) -> Iterator[int]:
    for n in range(number + 1, min(len(lines), number + MAX_UNIT)):
        if _TITLE.match(lines[n]):
            return
        yield n


def _row(lines: Sequence[str], number: int) -> Iterator[int]:
    """The lines of an HTML row and of the row of its headings."""
    begin = next((n for n in range(number, max(-1, number - SMALL_UNIT), -1)
                  if _ROW_BEGINS.match(lines[n])), None)  # fmt: skip
    if begin is None:
        return
    after = range(begin, min(len(lines), begin + 2 * SMALL_UNIT))
    end = next((n for n in after if _ROW_ENDS.match(lines[n])), None)
    if end is None or end < number:
        return
    yield from (n for n in range(begin, end + 1) if n != number)
    heads = [n for n in range(begin - 1, max(-1, begin - 2_000), -1) if _HEAD_CELL.search(lines[n])]
    yield from heads[:SMALL_UNIT]


def _header(lines: Sequence[str], number: int) -> Iterator[int]:
    """The header of a table: above a rule of dashes, or the first line where cells are as many."""
    line = lines[number]
    mark = next((mark for mark in ("|", "\t", ";", ",") if line.count(mark) >= 2), "")
    if not mark:
        return
    for n in range(number - 1, max(-1, number - 2_000), -1):
        if mark == "|" and _RULE.match(lines[n]) and n:
            yield n - 1
            yield n
            return
        if mark not in lines[n]:
            break
    if mark != "|" and number and abs(lines[0].count(mark) - line.count(mark)) <= 1:
        yield 0


def _nested(lines: Sequence[str], number: int) -> Iterator[int]:
    """Children, the small block around it, and the first lines of the blocks around that."""
    own = depth(lines[number])
    if own < 0:
        return
    end = _end(lines, number, own, MAX_UNIT)
    if end > number + 1:
        yield from range(number + 1, end)
    elif own == 0:
        for n in (number + 1, number - 1):
            if 0 <= n < len(lines) and lines[n].strip():
                yield n
    level, first = own, True
    at = number
    while level > 0:
        parent = _parent(lines, at, level)
        if parent is None:
            return
        level = depth(lines[parent])
        yield parent
        if first:
            last = _end(lines, parent, level, MAX_UNIT)
            inside = range(parent + 1, max(last, number + 1))
            reach = len(inside) if len(inside) <= 2 * SMALL_UNIT else 8
            yield from sorted(
                (n for n in inside if n != number and abs(n - number) <= reach),
                key=lambda n: abs(n - number),
            )
            first = False
        at = parent


def _parent(lines: Sequence[str], number: int, level: int) -> int | None:
    for n in range(number - 1, max(-1, number - 400), -1):
        if 0 <= depth(lines[n]) < level:
            if _CLOSES.match(unnumbered(lines[n])) and n and lines[n].strip() == "{":
                return n - 1
            return n
    return None


def _end(lines: Sequence[str], number: int, level: int, most: int) -> int:
    """The line after the block that begins here: deeper lines, and what closes it."""
    end = number + 1
    for n in range(number + 1, min(len(lines), number + most)):
        own = depth(lines[n])
        if own < 0:
            continue
        if own > level:
            end = n + 1
        elif own == level and _CLOSES.match(unnumbered(lines[n])):
            end = n + 1
            if not lines[n].rstrip().endswith(("{", ":")):  # of a signature over several lines
                break
        else:
            break
    return end


def _section(lines: Sequence[str], number: int) -> Iterator[int]:
    """What is between two blank or dashed lines, the nearest first, if it is small."""
    first = last = number
    most = 2 * SMALL_UNIT
    while first and last - first < most and not _BREAK.match(lines[first - 1]):
        first -= 1
    while last - first < most and last + 1 < len(lines) and not _BREAK.match(lines[last + 1]):
        last += 1
    if last - first < most:
        near = sorted(range(first, last + 1), key=lambda n: abs(n - number))
        yield from near[1:]
