"""Chooses which lines of old steps to keep: a weighted set cover, greedy by value per token.

Knows lines, identifiers and their weights.  Does not know messages or formats.  Each identifier
counts once, and not at all if it occurs in what is sent anyway; where only the model's own words
have it, a line of a tool still counts in part: the model named it, the tool said what it is.  The
weights of a line's place and kind were tuned on recorded sessions; docs/benchmark.md has the
results.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate, chain, groupby, pairwise
from math import inf
from operator import itemgetter
from typing import NamedTuple

from trimtab.planning.lines import Lines

OWN = {"call": 0.2, "text": 0.03}
"""Value per token of the agent's own lines, in addition to their identifiers; once per line."""
ASKED = "asked"
"""The kind of the user's lines."""
USER_WORTH = 0.3
"""Value per token of the user's lines."""
WORTH = {**OWN, ASKED: USER_WORTH}
BARE = 0.5
"""Factor on the value of an identifier on a line without words."""
SAID = 0.25
"""Factor on the value of an identifier that, so far, only the model's own words have."""
AGAIN = 2.0
"""Value per token of a line that occurs more than once, at least once written by the agent."""
END = 0.3
"""Value of a block's first and last line, which show how it began and ended."""
CONTEXT = 0.1
"""Share of a kept line's value that its neighbours get as its context."""


MOST_LINES = 50_000
"""Of more lines than twice this only so many, the best, are compared at once, to save memory."""
Priced = tuple[float, int]
"""(−price, number) of a line."""
ALL: Priced = (0.0, 0)
"""What no line is behind: all that have a price are in the heap."""

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
        self.again = _repeated(sources)
        self.starts = list(accumulate((len(source.lines) for source in sources), initial=0))
        """The number of the first line of each source."""
        self.bonus: dict[int, float] = {}
        """Line → its value by its place: at an end of a block, beside a kept line."""
        for start, end in pairwise(self.starts):
            if start < end:
                self.bonus[start] = self.bonus[end - 1] = END
        self._heap: list[Priced] = []
        """Lines by their last computed price, the best first."""
        self._last: Priced = (-inf, 0)
        """Lines that were priced behind this one are not in the heap."""

    def force(self) -> None:
        """Keep the forced lines."""
        for source, start in zip(self.sources, self.starts, strict=False):
            for index in sorted(source.forced):
                for near in self._keep(start + index, source, index):
                    assert near >= 0

    def take(self, tokens: float) -> float:
        """Keep the lines of highest value per token until ``tokens`` are used or no line has any
        value; return the tokens that are left."""
        missed, passed = 0, list[Priced]()
        while tokens > 0 and missed < MISSES:
            if not self._heap or self._heap[0] > self._last:
                if self._last == ALL:
                    break
                self._fill({at for _, at in passed})
                continue
            before, at = heapq.heappop(self._heap)
            source, index = self._line(at)
            if index in source.kept:
                continue
            now = -self._price(at, source, index)
            if now > before:
                if now < 0:
                    heapq.heappush(self._heap, (now, at))
                continue
            cost = _cost(source, index)
            if source.far:
                if cost > self.far:
                    continue
                self.far -= cost if cost <= tokens else 0.0
            missed += 1
            if cost <= tokens:
                missed, tokens = 0, tokens - cost
                for near in self._keep(at, source, index):
                    price = self._price(at - index + near, source, near)
                    heapq.heappush(self._heap, (-price, at - index + near))
            else:
                passed.append((before, at))
        for entry in passed:
            heapq.heappush(self._heap, entry)
        return tokens

    def _fill(self, passed: Set[int]) -> None:
        """Fill the heap: with all lines that have a price and are not kept, or the best of very
        many.  ``_price`` is inlined for speed, as it runs for every line of every old step."""
        covered, either, said = self.covered, self.covered | self.named, self.said
        weigh, bonus = self.weights.get, self.bonus.get
        best, last, least = list[Priced](), ALL, 0.0
        for source, start in zip(self.sources, self.starts, strict=False):
            lines, rate, kept, own = source.lines, source.rate, source.kept, source.kind in WORTH
            head = 0.0 if kept else HEADER_RATE * len(source.header)
            share = 0.0 if source.kind in OWN else SAID
            rows = zip(lines.starts, lines.ends, lines.name_ends, lines.has_words, strict=True)
            first, names = 0, lines.names
            for at, (begin, end, behind, has_words) in enumerate(rows, start):
                value = bonus(at, 0.0)
                if behind > first:
                    kept_names, gain = covered if has_words else either, 0.0
                    for name in names[first:behind]:
                        if name not in kept_names:
                            gain += weigh(name, 1.0) * (share if name in said else 1.0)
                    first, value = behind, value + (gain if has_words else BARE * gain)
                if own:
                    value += self._own(source, at - start)
                price = value / ((end - begin) * rate + 1.0 + head)
                if price <= least or (price := round(price, 9)) <= least:
                    continue
                if at - start not in kept and at not in passed:
                    best.append((-price, at))
                    if len(best) > 2 * MOST_LINES:
                        best.sort()
                        del best[MOST_LINES:]
                        last, least = best[-1], -best[-1][0]
        heapq.heapify(best)
        self._heap, self._last = best, last

    def _line(self, at: int) -> tuple[CandidateLines, int]:
        """The source of a line, and the line's number there."""
        row = bisect_right(self.starts, at) - 1
        return self.sources[row], at - self.starts[row]

    def _price(self, at: int, source: CandidateLines, index: int) -> float:
        """The value per token of a line."""
        value = self.bonus.get(at, 0.0) + self._gain(source, index)
        if source.kind in WORTH:
            value += self._own(source, index)
        return round(value / _cost(source, index), 9) if value else 0.0

    def _gain(self, source: CandidateLines, index: int) -> float:
        """The value of the identifiers on a line that are not kept elsewhere."""
        names = source.lines.names_on(index)
        if not names:
            return 0.0
        covered, said, weigh = self.covered, self.said, self.weights.get
        value, share = 0.0, 0.0 if source.kind in OWN else SAID
        has_words = source.lines.has_words[index]
        also = covered if has_words else self.named
        for name in names:
            if name not in covered and name not in also:
                value += weigh(name, 1.0) * (share if name in said else 1.0)
        return value if has_words else BARE * value

    def _own(self, source: CandidateLines, index: int) -> float:
        """The value of a line that the agent or the user wrote, beside that of its identifiers."""
        text = source.lines[index]
        if text in self.kept_texts:
            return 0.0
        worth = AGAIN if text in self.again else WORTH[source.kind]
        return worth * (len(text) * source.rate + 1.0)

    def _keep(self, at: int, source: CandidateLines, index: int) -> Iterator[int]:
        """Keep a line; yield the neighbours in its source whose value rises by that."""
        lines, gain = source.lines, self._gain(source, index)
        source.kept.add(index)
        self.kept_texts.add(lines[index])
        kept = self.said if source.kind in OWN else self.covered
        (kept if lines.has_words[index] else self.named).update(lines.names_on(index))
        if not gain:
            return
        for near in (index - 1, index + 1):
            if 0 <= near < len(lines) and near not in source.kept:
                number = at - index + near
                self.bonus[number] = self.bonus.get(number, 0.0) + CONTEXT * gain
                yield near


def _cost(source: CandidateLines, index: int) -> float:
    """Tokens of a line, with the header that it needs."""
    lines = source.lines
    cost = (lines.ends[index] - lines.starts[index]) * source.rate + 1.0
    return cost if source.kept else cost + HEADER_RATE * len(source.header)


def _repeated(sources: Sequence[CandidateLines]) -> set[str]:
    """The lines that stand in several sources, in one of them as the agent's own."""
    own = (set(source.lines) for source in sources if source.kind in OWN)
    times = Tally(chain.from_iterable(own))
    again = {text for text, number in times.items() if number > 1}
    for source in sources if times else ():
        if source.kind not in OWN:
            again.update(filter(times.__contains__, source.lines))
    return again


def written(sources: Sequence[CandidateLines]) -> list[str]:
    """The kept lines in order, those of each call and its result under a header."""
    return _rows((source.header, source) for source in sources)


def _rows(named: Iterable[tuple[str, CandidateLines]]) -> list[str]:
    """The kept lines of sources, each with its header."""
    rows: list[str] = []
    for header, own in groupby(named, key=itemgetter(0)):
        several = [source for _, source in own]
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
    kinds = (("result",), tuple(OWN), (ASKED,))
    own = ([source for source in sources if source.kind in kind] for kind in kinds)
    rows = (_rows((_short_header(source), source) for source in some) for some in own)
    return Written(*map("\n".join, rows))


def _short_header(source: CandidateLines) -> str:
    """The header as it is written: for the agent's own lines the tool's name alone, as they say the
    rest; a result keeps the header with its call."""
    return source.header.partition(" ")[0] if source.kind in OWN else source.header


def _write(source: CandidateLines, rows: list[str]) -> None:
    before = -2
    for index in sorted(source.kept):
        if index in source.lines.joined and before == index - 1:
            rows[-1] += source.lines[index]
        else:
            rows.append(source.lines[index])
        before = index
