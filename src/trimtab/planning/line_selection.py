"""Chooses which lines of old steps to keep: a weighted set cover, greedy by value per token.

Knows lines, identifiers and their weights.  Does not know messages or formats.  Each identifier
counts once, and not at all if it occurs in what is sent anyway; where only the model's own words
have it, a line of a tool still counts in part: the model named it, the tool said what it is.  The
weights of a line's place and
kind were tuned on recorded sessions; docs/benchmark.md has the results.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import groupby
from math import inf
from typing import NamedTuple

from trimtab.planning.lines import Line, Lines

OWN = {"call": 0.12, "text": 0.03}
"""Value per token of the agent's own lines, in addition to their identifiers; once per line."""
ASKED = "asked"
"""The kind of the user's lines."""
USER_WORTH = 0.3
"""Value per token of the user's lines."""
BARE = 0.5
"""Factor on the value of an identifier on a line without words."""
SAID = 0.25
"""Factor on the value of an identifier that, so far, only the model's own words have."""
AGAIN = 0.6
"""Value per token of a line that occurs more than once, at least once written by the agent."""
END = 0.3
"""Value of a block's first and last line, which show how it began and ended."""
CONTEXT = 0.05
"""Share of a kept line's value that its neighbours get as its context."""


MISSES = 50
"""The search ends after so many lines in a row that are too long for the remaining room."""
HEADER_RATE = 0.3
"""Tokens per char of a header."""


@dataclass
class CandidateLines:
    """The lines of one block, under one header; ``rate``: tokens per char."""

    kind: str
    lines: Lines
    rate: float
    header: str = ""
    forced: frozenset[int] = frozenset()
    """Lines that are always kept."""
    group: int = -1
    """The number of the group it belongs to."""
    far: bool = False
    """Whether its lines count against ``LineSelector.far``."""
    kept: set[int] = field(default_factory=set)


class LineSelector:
    """The state of one selection; the lines of all sources are numbered in one sequence."""

    def __init__(
        self,
        sources: Sequence[CandidateLines],
        weights: Mapping[str, float],
        covered: set[str],
        said: set[str] | None = None,
    ) -> None:
        self.sources, self.weights, self.covered = sources, weights, covered
        self.said = set() if said is None else said
        """Identifiers that are kept, but only on lines of the model."""
        self.far = inf
        """Tokens that may be used for sources with ``far``."""
        self.named: set[str] = set()
        """Identifiers that are kept, but only on lines without words."""
        self.kept_texts: set[str] = set()
        """Lines that are kept."""
        self.source: list[CandidateLines] = []
        self.starts: list[int] = []
        self.lines: list[Line] = []
        self.costs: list[float] = []
        """Tokens of each line, without a header."""
        self.heads: list[float] = []
        """Tokens of the header above each line."""
        self.own: list[float] = []
        """The value of the agent's own lines, in addition to their identifiers."""
        self.bonus: list[float] = []
        seen: set[str] = set()
        again: set[str] = set()
        own: set[str] = set()
        for source in sources:
            texts = {line.text for line in source.lines.lines}
            again |= texts & (seen if source.kind in OWN else own)
            seen |= texts
            own |= texts if source.kind in OWN else set()
        for source in sources:
            self._add(source, again)

    def _add(self, source: CandidateLines, again: set[str]) -> None:
        lines = source.lines.lines
        start, rate = len(self.lines), source.rate
        costs = [len(line.text) * rate + 1.0 for line in lines]
        if own := USER_WORTH if source.kind == ASKED else OWN.get(source.kind):
            worth = [AGAIN if line.text in again else own for line in lines]
            self.own += [share * cost for share, cost in zip(worth, costs, strict=True)]
        else:
            self.own += [0.0] * len(lines)
        self.source += [source] * len(lines)
        self.starts += [start] * len(lines)
        self.lines += lines
        self.costs += costs
        self.heads += [HEADER_RATE * len(source.header)] * len(lines)
        self.bonus += [0.0] * len(lines)
        if lines:
            self.bonus[start] = self.bonus[-1] = END

    def force(self) -> None:
        """Keep the forced lines."""
        for at, source in enumerate(self.source):
            if at - self.starts[at] in source.forced:
                for near in self._keep(at):
                    assert near >= 0

    def take(self, tokens: float) -> float:
        """Keep the lines of highest value per token until ``tokens`` are used or no line has any
        value; return the tokens that are left."""
        heap, missed = self._heap, 0
        passed: list[tuple[float, int]] = []
        price = self._price
        while heap and tokens > 0 and missed < MISSES:
            before, at = heap[0]
            kept = self.source[at].kept
            if at - self.starts[at] in kept:
                heapq.heappop(heap)
                continue
            now = -price(at)
            if now > before:
                if now < 0:
                    heapq.heapreplace(heap, (now, at))
                else:
                    heapq.heappop(heap)
                continue
            heapq.heappop(heap)
            cost = self._cost(at)
            if self.source[at].far:
                if cost > self.far:
                    continue
                self.far -= cost if cost <= tokens else 0.0
            missed += 1
            if cost <= tokens:
                missed, tokens = 0, tokens - cost
                for near in self._keep(at):
                    heapq.heappush(heap, (-price(near), near))
            else:
                passed.append((before, at))
        for entry in passed:
            heapq.heappush(heap, entry)
        return tokens

    @cached_property
    def _heap(self) -> list[tuple[float, int]]:
        """A heap of lines by their last computed value per token, the best first."""
        heap = self._priced()
        heapq.heapify(heap)
        return heap

    def _priced(self) -> list[tuple[float, int]]:
        """(−price, number) of every line with a positive price: ``_price`` inlined for speed, as it
        runs for every line of every old step."""
        if self.kept_texts or self.named or any(source.kept for source in self.sources):
            return [(-p, at) for at in range(len(self.lines)) if (p := self._price(at)) > 0]
        priced: list[tuple[float, int]] = []
        covered, said, weigh = self.covered, self.said, self.weights.get
        rows = zip(
            self.lines, self.source, self.bonus, self.own, self.costs, self.heads, strict=True
        )
        for at, (line, source, value, own, cost, head) in enumerate(rows):
            if line.names:
                gain, share = 0.0, 0.0 if source.kind in OWN else SAID
                for name in line.names:
                    if name not in covered:
                        gain += weigh(name, 1.0) * (share if name in said else 1.0)
                value += gain if line.has_words else BARE * gain
            value += own
            if value and (price := round(value / (cost + head), 9)) > 0:
                priced.append((-price, at))
        return priced

    def _price(self, at: int) -> float:
        """The value per token of a line."""
        line = self.lines[at]
        value = self.bonus[at]
        if line.names:
            value += self._gain(at)
        if (own := self.own[at]) and line.text not in self.kept_texts:
            value += own
        return round(value / self._cost(at), 9) if value else 0.0

    def _gain(self, at: int) -> float:
        """The value of the identifiers on a line that are not kept elsewhere."""
        line, covered, said, weigh = self.lines[at], self.covered, self.said, self.weights.get
        value, share = 0.0, 0.0 if self.source[at].kind in OWN else SAID
        named = frozenset[str]() if line.has_words else self.named
        for name in line.names:
            if name not in covered and name not in named:
                value += weigh(name, 1.0) * (share if name in said else 1.0)
        return value if line.has_words else BARE * value

    def _cost(self, at: int) -> float:
        return self.costs[at] if self.source[at].kept else self.costs[at] + self.heads[at]

    def _keep(self, at: int) -> Iterator[int]:
        """Keep a line; yield the neighbours whose value rises by that."""
        line, source, start = self.lines[at], self.source[at], self.starts[at]
        gain = self._gain(at)
        source.kept.add(at - start)
        self.kept_texts.add(line.text)
        kept = self.said if source.kind in OWN else self.covered
        (kept if line.has_words else self.named).update(line.names)
        if not gain:
            return
        for near in (at - 1, at + 1):
            beside = start <= near < start + len(source.lines.lines)
            if beside and near - start not in source.kept:
                self.bonus[near] += CONTEXT * gain
                yield near


def written(sources: Sequence[CandidateLines]) -> list[str]:
    """The kept lines in order, those of each call and its result under a header."""
    rows: list[str] = []
    for header, own in groupby(sources, key=lambda source: source.header):
        several = list(own)
        if header and any(source.kept for source in several):
            rows.append(f"# {header}")
        for source in several:
            _write(source, rows)
    return rows


class Written(NamedTuple):
    """The kept lines of each speaker."""

    lines: str
    words: str
    asked: str


def written_apart(sources: Sequence[CandidateLines]) -> Written:
    """The kept lines of results, of the model, of the user."""
    named = with_short_headers(sources)
    kinds = (("result",), tuple(OWN), (ASKED,))
    rows = (written([source for source in named if source.kind in own]) for own in kinds)
    return Written(*("\n".join(own) for own in rows))


def with_short_headers(sources: Sequence[CandidateLines]) -> list[CandidateLines]:
    """Shorten the headers of the agent's own sources to the tool's name, as their lines say the
    rest; a result keeps the header with its call."""
    return [
        replace(source, header=source.header.partition(" ")[0]) if source.kind in OWN else source
        for source in sources
    ]


def _write(source: CandidateLines, rows: list[str]) -> None:
    before = -2
    for index in sorted(source.kept):
        line = source.lines.lines[index]
        if line.joined and before == index - 1:
            rows[-1] += line.text
        else:
            rows.append(line.text)
        before = index
