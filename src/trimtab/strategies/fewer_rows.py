"""Which rows of a long list stay: its ends, what failed, what stands out, and an even spread.

Knows rows as lines of text, cells tab-separated where they are of a table.  Does not know JSON,
blocks or offers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

_FAILED = re.compile(
    r"\b(?:errors?|fail(?:ed|ure|s)?|exception|fatal|panic|denied|refused|critical|crash(?:ed)?|"
    r"time(?:d )?-?out)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
MOST_FAILED = 0.25
"""Where a larger share of the rows speaks of failure, it is what the list is about."""
MOST_CELLS = 32


def ranked(rows: Sequence[str]) -> Iterator[tuple[int, float, int]]:
    """(class, place within it, row), the most important row first.

    Classes: 0 the first and the last row, 1 errors, 2 what stands out, 3 all others, so ordered
    that the first n are spread evenly, whatever n is.
    """
    failed = {n for n, row in enumerate(rows) if _FAILED.search(row)}
    return by_rank(len(rows), failed, set(_standing_out(rows)))


def by_rank(size: int, failed: set[int], odd: set[int]) -> Iterator[tuple[int, float, int]]:
    """The same for so many items, of which these failed and those stand out."""
    if len(failed) > max(1, MOST_FAILED * size):
        failed = set()
    bits = max(1, (size - 1).bit_length())

    def spread(number: int) -> int:  # its bits reversed: 0, a half, a quarter, three quarters …
        return int(f"{number:0{bits}b}"[::-1], 2)

    seen = set[int]()
    for tier, rows in enumerate(({0, size - 1}, failed, odd)):
        for place, row in sorted((spread(row), row) for row in rows - seen):
            yield tier, place / (1 << bits), row
        seen |= rows
    for place in range(1 << bits):
        row = spread(place)
        if row < size and row not in seen:
            yield 3, place / (1 << bits), row


def shown(rows: Sequence[str], kept: set[int]) -> Iterator[str]:
    """The kept rows in order, and in each gap how many were left out."""
    gone = 0
    for number, row in enumerate(rows):
        if number not in kept:
            gone += 1
            continue
        if gone:
            yield left_out(gone)
        gone = 0
        yield row
    if gone:
        yield left_out(gone)


def left_out(rows: int) -> str:
    """``[214 rows left out]``"""
    return f"[{rows:,} row{'s' * (rows > 1)} left out]"


def _standing_out(rows: Sequence[str]) -> Iterator[int]:
    """Rows with the smallest or largest number of a column, or with a value few others have."""
    table = [row.split("\t")[:MOST_CELLS] for row in rows]
    for at in range(max(map(len, table))):
        cells = [row[at] if at < len(row) else "" for row in table]
        tally = Counter(cells)
        if 2 <= len(tally) <= max(3, len(rows) // 10):
            few = {cell for cell, times in tally.items() if times <= max(1, len(rows) // 50)}
            yield from (n for n, cell in enumerate(cells) if cell in few)
        elif len(tally) > 1:
            numbers = [(float(cell), n) for n, cell in enumerate(cells) if _NUMBER.fullmatch(cell)]
            if 2 * len(numbers) > len(rows):
                yield min(numbers)[1]
                yield max(numbers)[1]
