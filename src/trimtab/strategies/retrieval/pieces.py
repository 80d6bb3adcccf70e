"""A text in pieces that can be kept or left out one by one: sentences, lines, blocks of code.

Knows where sentences end, headings and fences.  Does not know what the text is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trimtab.strategies.boundaries import at_or_before

LEAST_CHARS, MOST_CHARS = 20, 600
GAP = "[...]"
_END = re.compile(
    r"\n+"
    r"|(?<=[.!?؟…])[\"'”’»)\]]{0,4}[ \t]{1,8}(?=\S)"
    r"|(?<=[。！？।॥])[」』”’）\"]{0,4}[ \t]{0,8}"
)
_FENCE = re.compile(r"^[ \t]{0,3}(?:```|~~~).*$", re.MULTILINE)
_HEADING = re.compile(r"[ \t]{0,3}(?:#{1,6} |={2,6} ?\w|<h[1-6]\b|\*\*[^*\n]{1,120}\*\*[ \t]*\n)")
_BLANK = re.compile(r"\n[ \t]*\n+")


class Piece(NamedTuple):
    """``text[start:end]``; a heading speaks for the pieces up to the next one."""

    start: int
    end: int
    heading: bool


def pieces(text: str) -> list[Piece]:
    """The text without remainder, in order: 20 to 600 characters a piece where it allows.

    Between code fences only blank lines divide.
    """
    found: list[Piece] = []
    for start, end, code in _stretches(text):
        found += _divided(text, start, end, _BLANK if code else _END)
    return found


def _stretches(text: str) -> Iterator[tuple[int, int, bool]]:
    """(start, end, whether it is code) of what stands outside and inside fences."""
    at, opened = 0, False
    for fence in _FENCE.finditer(text):
        end = min(len(text), fence.end() + 1) if opened else fence.start()
        if end > at:
            yield at, end, opened
            at = end
        opened = not opened
    if at < len(text):
        yield at, len(text), False


def _divided(text: str, start: int, stop: int, ends: re.Pattern[str]) -> Iterator[Piece]:
    heading = bool(_HEADING.match(text, start))
    for match in ends.finditer(text, start, stop):
        line_ends = "\n" in match[0]
        if match.end() - start >= LEAST_CHARS or (heading and line_ends):
            yield from _bounded(text, start, match.end(), heading)
            start = match.end()
            heading = bool(_HEADING.match(text, start))
    if start < stop:
        yield from _bounded(text, start, stop, heading)


def _bounded(text: str, start: int, end: int, heading: bool) -> Iterator[Piece]:
    while end - start > MOST_CHARS:
        middle = text.rfind(" ", start + MOST_CHARS // 2, start + MOST_CHARS) + 1
        middle = max(middle or at_or_before(text, start + MOST_CHARS), start + 1)
        yield Piece(start, middle, heading)
        start, heading = middle, False
    yield Piece(start, end, heading)


def joined(text: str, whole: Sequence[Piece], kept: frozenset[int] | set[int]) -> str:
    """The kept pieces in their order, ``[...]`` where something stood between them."""
    parts: list[str] = []
    for number in sorted(kept):
        piece = whole[number]
        if number and number - 1 not in kept:
            before = whole[number - 1]
            parts.append(GAP + ("\n" if text[before.end - 1 : before.end] == "\n" else " "))
        parts.append(text[piece.start : piece.end])
    if whole and len(whole) - 1 not in kept:
        return "".join(parts).rstrip() + " " + GAP
    return "".join(parts)
