"""What a kind of content is, and the scale of line weights."""

from __future__ import annotations

import re
from collections.abc import Callable, MutableSequence, Sequence
from typing import NamedTuple

CLIP = 500
"""Characters of a line that rules look at."""

MANDATORY = 100.0
"""From here on a line is kept as long as there is room for all such lines."""
SUMMARY, FAILURE, ERROR, MUST = 1000.0, 500.0, 300.0, MANDATORY
"""Tiers of what must stay: outcome and counts; what failed, where and why; errors; the rest."""
DEMOTED = 50.0
"""What a line weighs that would be mandatory, had there not been so many before it."""

_NUMBER = re.compile(r"[ \t]*\d{1,7}(?:→|\t)")
_LONG_HEX = re.compile(r"(?:0x)?[0-9a-f]{6,}|0x[0-9a-f]+")
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))


class LineSample(NamedTuple):
    """Lines to tell a kind by: some from all over, the first ones, and the tool's name."""

    lines: tuple[str, ...]
    first: tuple[str, ...]
    tool: str

    def share(self, looks: Callable[[str], object]) -> float:
        """The share of the lines that look so."""
        return sum(1 for line in self.lines if looks(line)) / max(1, len(self.lines))


class Kind(NamedTuple):
    """``weigh`` raises or lowers weights in place; lines come clipped, in their order.

    ``ends``: whether the first and last lines say what the whole is.
    """

    name: str
    takes: Callable[[LineSample], bool]
    weigh: Callable[[Sequence[str], MutableSequence[float]], None]
    ends: bool = True


def unnumbered(line: str) -> str:
    """A line of a file without the number that a reading tool put before it."""
    match = _NUMBER.match(line)
    return line[match.end() :] if match else line


def shape(line: str) -> str:
    """The line without numbers and hexadecimal ids: equal for lines that repeat each other.

    >>> shape("12:04:31 job 17 took 250 ms") == shape("12:05:02 job 18 took 9 ms")
    True
    """
    return _LONG_HEX.sub("", line).translate(_NO_DIGITS)
