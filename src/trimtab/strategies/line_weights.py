"""How much each line of a text is worth keeping, by what kind of content it is.

Knows lines, the names in them and that lines repeat; what is special to a kind stands in
``content``.  Does not know budgets, offers or any other text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from trimtab.reading.names import TOKEN, names_in
from trimtab.strategies.content import kind_of
from trimtab.strategies.content.base import CLIP, DEMOTED, MANDATORY, SUMMARY, shape
from trimtab.strategies.terminal import strip_escapes

_MOST_NAMES = 4
_NEW_NAME, _PLAIN, _REPEATED = 1.0, 0.5, 0.15
_NEIGHBOUR = 0.4
"""What a line beside a mandatory one gains: what stands around an error explains it."""
FIRST_LINES, LAST_LINES = 2, 3
_NEAR_END = 30.0
_ENVELOPE, _IN_ENVELOPE = 10, 0.3
_EXIT = re.compile(r"\b[Ee]xit(?:ed)?\b.{0,40}?\b(?:code|status)\b\D{0,12}(-?\d+)")
MOST_MANDATORY, MANDATORY_SHARE = 400, 0.5
"""No more lines, and no larger share of the characters, are mandatory, best tier first."""


class Reading(NamedTuple):
    """A text as lines (``text.split("\\n")``), their weights, and the name of its kind.

    ``shapes``: each line without numbers, equal for lines that repeat each other.
    """

    kind: str
    lines: list[str]
    weights: list[float]
    shapes: list[str]


def line_weights(text: str, tool: str = "") -> Sequence[float]:
    """One weight for each of ``text.split("\\n")``: 0 says nothing, from 100 on it must stay.

    Mandatory are outcome and counts (1,000), what failed and where (500), errors (300) and the
    ends of an output (100 or more); else a line is worth the names it is the first to hold, and
    lines that repeat an earlier one but for numbers next to nothing.  ``tool`` names where the
    text came from, where that is known.  Pure and linear; never raises.
    """
    return read(text, tool).weights


def read(text: str, tool: str = "") -> Reading:
    """The same, with the lines and the kind."""
    lines = text.split("\n")
    plain = strip_escapes(text).split("\n")
    clipped = [line[:CLIP].rstrip() for line in (plain if len(plain) == len(lines) else lines)]
    kind = kind_of(clipped, tool)
    shapes = list(map(shape, clipped))
    weights = _novelty(clipped, shapes)
    kind.weigh(clipped, weights)
    inside = _weigh_envelope(clipped, weights)
    if kind.ends:
        _raise_ends(clipped, weights, inside)
    _limit(lines, weights)
    _raise_neighbours(clipped, weights)
    return Reading(kind.name, lines, weights, shapes)


def _novelty(lines: Sequence[str], forms: Sequence[str]) -> list[float]:
    """What each line is the first to name; lines alike but for numbers count once."""
    tokens: set[str] = set()
    names: set[str] = set()
    shapes: set[str] = set()
    weights = []
    for line, form in zip(lines, forms, strict=True):
        if not line:
            weights.append(0.0)
            continue
        new = 0
        for token in TOKEN.findall(line):
            if token not in tokens:
                tokens.add(token)
                fresh = {name for name, _ in names_in(token)} - names
                new += len(fresh)
                names |= fresh
        worth = _PLAIN + _NEW_NAME * min(new, _MOST_NAMES)
        if form in shapes:
            worth *= _REPEATED
        else:
            shapes.add(form)
            if not any(map(str.isalnum, line[:80])):
                worth = 0.05
        weights.append(worth)
    return weights


def _raise_ends(lines: Sequence[str], weights: list[float], first: int) -> None:
    filled = [number for number in range(first, len(lines)) if lines[number]]
    for number in {*filled[:FIRST_LINES], *filled[-LAST_LINES:]}:
        weights[number] = max(weights[number], _NEAR_END)
    for number in {*filled[:1], *filled[-1:]}:
        weights[number] = max(weights[number], 2 * MANDATORY)


def _weigh_envelope(lines: Sequence[str], weights: list[float]) -> int:
    """How many lines a client put before the output, down to ``Output:``; their weight falls."""
    end = next((n + 1 for n, line in enumerate(lines[:_ENVELOPE]) if line == "Output:"), 0)
    for number in range(end):
        weights[number] = min(weights[number], _IN_ENVELOPE)
    for number in {*range(min(_ENVELOPE, len(lines))), *range(len(lines))[-_ENVELOPE:]}:
        if found := _EXIT.search(lines[number]):
            failed = found[1].strip("0") != ""
            weights[number] = max(weights[number], SUMMARY if failed else MANDATORY)
    return end


def _limit(lines: Sequence[str], weights: list[float]) -> None:
    """Where too much is mandatory, the lesser tiers are not; first and last come first."""
    must = [number for number, weight in enumerate(weights) if weight >= MANDATORY]
    room = int(MANDATORY_SHARE * sum(map(len, lines)))
    if len(must) <= MOST_MANDATORY and sum(min(len(lines[n]), CLIP) for n in must) <= room:
        return
    must.sort(key=lambda number: -weights[number])
    for rank, number in enumerate(must):
        room -= min(len(lines[number]), CLIP)
        if rank and (rank >= MOST_MANDATORY or room < 0):
            weights[number] = min(weights[number] / 10, DEMOTED)


def _raise_neighbours(lines: Sequence[str], weights: list[float]) -> None:
    must = [number for number, weight in enumerate(weights) if weight >= MANDATORY]
    for number in must:
        for near in (number - 1, number + 1):
            if 0 <= near < len(lines) and lines[near] and weights[near] < MANDATORY:
                weights[near] += _NEIGHBOUR
