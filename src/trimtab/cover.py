"""Which lines of old steps to keep: a weighted set cover, greedy by value a token.

Knows lines, identifiers and weights.  Does not know messages or formats.  Each identifier counts
once, and not at all where it stands in what is sent anyway; what the agent itself wrote counts
most.  The weights were tried on recorded sessions; what they come to is in docs/benchmark.md.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from trimtab.lines import Line, Lines

WRITTEN, REUSED = 4.0, 2.5
"""How much more an identifier counts that the agent ever wrote, and that it wrote after it had
seen it."""
OWN = {"call": 0.17, "text": 0.06}
"""Value a token of what the agent wrote itself, beside the identifiers in it; once a line."""
BARE = 0.3
"""What an identifier counts on a line without words."""
AGAIN = 0.3
"""Value a token of a line that the agent wrote more than once."""
END = 0.3
"""Value of a block's first and last line: how it began, how it ended."""
CONTEXT = 0.15
"""Share of a kept line's value that its neighbours get, because they say what it is about."""


MISSES = 50
"""So many lines in a row that are too long for what is left end the search."""
HEADER_RATE = 0.3
"""Tokens a character of a header."""


@dataclass
class Source:
    """The lines of one block, under one header; ``rate`` tokens a character."""

    kind: str
    lines: Lines
    rate: float
    header: str = ""
    kept: set[int] = field(default_factory=set)


def weigh(blocks: Iterable[tuple[bool, Lines]]) -> Callable[[str], float]:
    """Weights of identifiers from all blocks in order; each with whether the agent wrote it."""
    seen: set[str] = set()
    written: set[str] = set()
    reused: set[str] = set()
    for own, lines in blocks:
        if own:
            reused |= lines.names & seen
            written |= lines.names
        seen |= lines.names
    weights: dict[str, float] = dict.fromkeys(written, WRITTEN)
    weights.update(dict.fromkeys(reused, WRITTEN * REUSED))
    return lambda name: weights.get(name, 1.0)


class Choice:
    """One cover in the making."""

    def __init__(
        self, sources: Sequence[Source], weight: Callable[[str], float], covered: set[str]
    ) -> None:
        self.sources, self.weight, self.covered = sources, weight, covered
        self.named: set[str] = set()
        """Identifiers that stand, but with no words by them."""
        self.told: set[str] = set()
        """Lines that are kept."""
        self.again: set[str] = set()
        self.bonus: dict[tuple[int, int], float] = {}
        seen: set[str] = set()
        for number, source in enumerate(sources):
            ends = {0, len(source.lines.lines) - 1} if source.lines.lines else ()
            self.bonus.update(((number, index), END) for index in ends)
            if source.kind in OWN:
                texts = {line.text for line in source.lines.lines}
                self.again |= texts & seen
                seen |= texts

    def take(self, tokens: float) -> float:
        """Keep the lines worth most a token until ``tokens`` are used or nothing is worth
        keeping; returns the tokens that are left."""
        heap = [
            (-price, number, index)
            for number, source in enumerate(self.sources)
            for index in range(len(source.lines.lines))
            if (price := self._price(number, index)) > 0
        ]
        heapq.heapify(heap)
        missed = 0
        while heap and tokens > 0 and missed < MISSES:
            price, number, index = heapq.heappop(heap)
            if index in self.sources[number].kept:
                continue
            now = -self._price(number, index)
            if now > price:
                if now < 0:
                    heapq.heappush(heap, (now, number, index))
                continue
            cost = self._cost(number, index)
            missed += 1
            if cost <= tokens:
                missed, tokens = 0, tokens - cost
                for near in self._keep(number, index):
                    heapq.heappush(heap, (-self._price(number, near), number, near))
        return tokens

    def _price(self, number: int, index: int) -> float:
        """Value a token."""
        source = self.sources[number]
        line = source.lines.lines[index]
        cost = len(line.text) * source.rate + 1.0
        value = self._gain(line) + self.bonus.get((number, index), 0.0)
        if source.kind in OWN and line.text not in self.told:
            value += (AGAIN if line.text in self.again else OWN[source.kind]) * cost
        return round(value / self._cost(number, index), 9)

    def _gain(self, line: Line) -> float:
        """What the identifiers on a line are worth that do not stand elsewhere."""
        value, weight, covered = 0.0, self.weight, self.covered
        for name in line.names:
            if name not in covered and (line.told or name not in self.named):
                value += weight(name)
        return value if line.told else BARE * value

    def _cost(self, number: int, index: int) -> float:
        source = self.sources[number]
        cost = len(source.lines.lines[index].text) * source.rate + 1.0
        return cost if source.kept else cost + HEADER_RATE * len(source.header)

    def _keep(self, number: int, index: int) -> Iterator[int]:
        """Keep a line; its neighbours that are worth more now."""
        source = self.sources[number]
        line = source.lines.lines[index]
        gain = self._gain(line)
        source.kept.add(index)
        self.told.add(line.text)
        (self.covered if line.told else self.named).update(line.names)
        for near in (index - 1, index + 1):
            if gain and 0 <= near < len(source.lines.lines) and near not in source.kept:
                self.bonus[number, near] = self.bonus.get((number, near), 0.0) + CONTEXT * gain
                yield near


def written(sources: Sequence[Source]) -> list[str]:
    """The kept lines in order, each call's under a header: its tool, and what it was asked where
    none of that is among the lines."""
    rows: list[str] = []
    for header, own in groupby(sources, key=lambda source: source.header):
        several = list(own)
        if header and any(source.kept for source in several):
            asked = any(source.kept for source in several if source.kind == "call")
            rows.append("# " + (header.partition(" ")[0] if asked else header))
        for source in several:
            _write(source, rows)
    return rows


def _write(source: Source, rows: list[str]) -> None:
    before = -2
    for index in sorted(source.kept):
        line = source.lines.lines[index]
        if line.joined and before == index - 1:
            rows[-1] += line.text
        else:
            rows.append(line.text)
        before = index
