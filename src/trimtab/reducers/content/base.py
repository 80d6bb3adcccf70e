"""The interface of a kind of content, and the scale of line weights."""

from __future__ import annotations

import re
from collections.abc import Callable, MutableSequence, Sequence
from typing import NamedTuple

CLIP = 500
"""Characters of a line that are examined."""

MANDATORY = 100.0
"""Lines of at least this weight are kept as long as there is room for all of them."""
SUMMARY, FAILURE, ERROR, MUST = 1000.0, 500.0, 300.0, MANDATORY
"""Tiers of mandatory lines: outcome and counts; what failed, where and why; errors; the rest."""
BY_NAME = 2000.0
"""What is asked for by name, and its unit: above every other tier."""
DEMOTED = 50.0
"""Weight of a line that would be mandatory if there were not too many such lines before it."""

_NUMBER = re.compile(r"[ \t]*\d{1,7}(?:→|\t)")
_LONG_HEX = re.compile(r"(?:0x)?[0-9a-f]{6,}|0x[0-9a-f]+")
_NO_DIGITS = dict.fromkeys(map(ord, "0123456789"))


class LineSample(NamedTuple):
    """What a kind is detected from: evenly spread lines, the first lines, and the tool's name."""

    lines: tuple[str, ...]
    first: tuple[str, ...]
    tool: str

    def share(self, looks: Callable[[str], object]) -> float:
        """The share of the lines for which ``looks`` is true."""
        return sum(1 for line in self.lines if looks(line)) / max(1, len(self.lines))


class Kind(NamedTuple):
    """``takes`` accepts a sample of this kind; ``weigh`` changes the weights of clipped lines in
    place; ``ends``: whether the first and last lines matter most.
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
    """The line without numbers and hexadecimal ids; repeated lines have equal shapes.

    >>> shape("12:04:31 job 17 took 250 ms") == shape("12:05:02 job 18 took 9 ms")
    True
    """
    return _LONG_HEX.sub("", line).translate(_NO_DIGITS)
