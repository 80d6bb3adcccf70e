"""Which groups are dropped, as rows of neighbours.

Knows numbers of groups.  Does not know what is in them, nor what stands in their place.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right


class Gone:
    """A set of numbers that costs as much as it has gaps, not as it has members."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    def __contains__(self, number: int) -> bool:
        row = bisect_right(self._first, number) - 1
        return row >= 0 and number <= self._last[row]

    def begin(self, number: int) -> int:
        """The first of the neighbours that end right before this one; itself where there are
        none."""
        row = bisect_left(self._first, number) - 1
        return self._first[row] if row >= 0 and self._last[row] >= number - 1 else number

    def add(self, first: int, last: int) -> None:
        """Take first … last in."""
        begin, end = bisect_left(self._last, first - 1), bisect_right(self._first, last + 1)
        if begin < end:
            first, last = min(first, self._first[begin]), max(last, self._last[end - 1])
        self._first[begin:end], self._last[begin:end] = [first], [last]

    def remove(self, first: int, last: int) -> None:
        """Take first … last out."""
        begin, end = bisect_left(self._last, first), bisect_right(self._first, last)
        firsts, lasts = self._first[begin:end], self._last[begin:end]
        rows = [(n, first - 1) for n in firsts[:1] if n < first]
        rows += [(last + 1, n) for n in lasts[-1:] if n > last]
        self._first[begin:end], self._last[begin:end] = [n for n, _ in rows], [n for _, n in rows]
