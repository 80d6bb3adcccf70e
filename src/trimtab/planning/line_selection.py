"""Chooses which lines of old steps to keep: a weighted set cover, greedy by value per token.

Knows lines, identifiers and their weights.  Does not know messages or formats: what a line is worth
is set in ``fold``, and ``record`` says which lines there are.  Each identifier
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
from itertools import accumulate, chain, pairwise
from math import inf
from typing import NamedTuple, Protocol

from trimtab.planning.lines import Lines
from trimtab.transcript.model import Place

OWN = {"call": 0.2, "text": 0.03, "old": 0.02}
"""Value per token of the agent's own lines, in addition to their identifiers; once per line."""
USER = "user"
"""The kind of the user's lines."""
USER_WORTH = 0.3
"""Value per token of the user's lines."""
WORTH = {**OWN, USER: USER_WORTH}
BARE = 0.5
"""Factor on the value of an identifier on a line without words."""
IN_OWN_WORDS = 0.25
"""Factor on the value of an identifier that, so far, only the model's own words have."""
AGAIN = 2.0
"""Value per token of a line that occurs more than once, at least once written by the agent."""
END = 0.3
"""Value of a block's first and last line, which show how it began and ended."""
CONTEXT = 0.1
"""Share of a kept line's value that its neighbours get as its context."""


MAX_LINES = 50_000
"""Of more lines than twice this only so many, the best, are compared at once, to save memory."""
Priced = tuple[float, int]
"""(−price, number) of a line."""
ALL: Priced = (0.0, 0)
"""What no line is behind: all that have a price are in the heap."""

MISSES = 50
"""The search ends after so many lines in a row that are too long for the remaining room."""
REST = 0.004
"""Value per token of any line, once all that are worth more are kept: so the room is used, in
order."""


@dataclass(eq=False)
class CandidateLines:
    """The lines of one block; ``rate``: tokens per char; ``kind``: "result", "call", "old" (what
    an edit replaced), "text" (the model's) or "user" (the user's)."""

    kind: str
    lines: Lines
    rate: float
    head: Head | None = None
    """The line above its lines that says whose they are; None if none has to."""
    forced: frozenset[int] = frozenset()
    """Lines that are always kept."""
    worth: dict[int, float] = field(default_factory=dict)
    """Line → what it is worth for what it says: an outcome, something asked for."""
    tool: str = ""
    is_file: bool = False
    """Whether its text is what a file holds."""
    place: Place | None = None
    """Where its text is, for texts that are no step's."""
    group: int = -1
    """The number of the group it belongs to."""
    far: bool = False
    """Whether its lines count against ``LineSelector.far``."""
    sign: str = " "
    """The sign before each of its lines in a record."""
    plain: frozenset[int] = frozenset()
    """Lines that have a blank instead of the sign: those that an edit did not change."""
    path: str = ""
    """The file that its lines were written to."""
    kept: set[int] = field(default_factory=set)

    def rows(self) -> Iterator[str]:
        """The kept lines in order, each with its sign; … where lines between them are missing."""
        before, row = -1, ""
        for index in sorted(self.kept):
            if before == index - 1 and index in self.lines.joined:
                row += self.lines[index]
                before = index
                continue
            if row:
                yield row
            if before != index - 1 and before >= 0:
                yield " …"
            row = (" " if index in self.plain else self.sign) + self.lines[index]
            before = index
        if row:
            yield row


class Head(Protocol):
    """The line above the lines of a step; ``is_shown``: whether it is there already."""

    @property
    def is_shown(self) -> bool: ...
    @property
    def head_tokens(self) -> float: ...


class LineSelector:
    """The state of one selection; the lines of all sources are numbered in one sequence."""

    def __init__(
        self,
        sources: Sequence[CandidateLines],
        weights: Mapping[str, float],
        covered: set[str],
        own_words: set[str] | None = None,
    ) -> None:
        self.sources, self.weights, self.covered = sources, weights, covered
        self.own_words = set() if own_words is None else own_words
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
        self.rest = False
        """Whether every line has at least the value REST."""
        for (start, end), source in zip(pairwise(self.starts), sources, strict=True):
            if start < end:
                self.bonus[start] = self.bonus[end - 1] = END
            for index, worth in source.worth.items():
                self.bonus[start + index] = self.bonus.get(start + index, 0.0) + worth
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
        covered, either, own_words = self.covered, self.covered | self.named, self.own_words
        weigh, bonus = self.weights.get, self.bonus.get
        best, last, least = list[Priced](), ALL, 0.0
        for source, start in zip(self.sources, self.starts, strict=False):
            lines, rate, kept, own = source.lines, source.rate, source.kept, source.kind in WORTH
            head = _head_cost(source)
            share = 0.0 if source.kind in OWN else IN_OWN_WORDS
            rows = zip(lines.starts, lines.ends, lines.name_ends, lines.has_words, strict=True)
            first, names = 0, lines.names
            for at, (begin, end, behind, has_words) in enumerate(rows, start):
                value = bonus(at, 0.0)
                if behind > first:
                    kept_names, gain = covered if has_words else either, 0.0
                    for name in names[first:behind]:
                        if name not in kept_names:
                            gain += weigh(name, 1.0) * (share if name in own_words else 1.0)
                    first, value = behind, value + (gain if has_words else BARE * gain)
                if own:
                    value += self._own(source, at - start)
                if self.rest:
                    value += REST * ((end - begin) * rate + 1.0)
                price = value / ((end - begin) * rate + 1.0 + head)
                if price <= least or (price := round(price, 9)) <= least:
                    continue
                if at - start not in kept and at not in passed:
                    best.append((-price, at))
                    if len(best) > 2 * MAX_LINES:
                        best.sort()
                        del best[MAX_LINES:]
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
        if self.rest:
            value += REST * _line_cost(source, index)
        return round(value / _cost(source, index), 9) if value else 0.0

    def take_rest(self, tokens: float) -> float:
        """Keep further lines although they have no value of their own; return what is left."""
        if not self.rest:
            self.rest, self._heap, self._last = True, [], (-inf, 0)
        return self.take(tokens)

    def _gain(self, source: CandidateLines, index: int) -> float:
        """The value of the identifiers on a line that are not kept elsewhere."""
        names = source.lines.names_on(index)
        if not names:
            return 0.0
        covered, own_words, weigh = self.covered, self.own_words, self.weights.get
        value, share = 0.0, 0.0 if source.kind in OWN else IN_OWN_WORDS
        has_words = source.lines.has_words[index]
        also = covered if has_words else self.named
        for name in names:
            if name not in covered and name not in also:
                value += weigh(name, 1.0) * (share if name in own_words else 1.0)
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
        kept = self.own_words if source.kind in OWN else self.covered
        (kept if lines.has_words[index] else self.named).update(lines.names_on(index))
        if not gain:
            return
        for near in (index - 1, index + 1):
            if 0 <= near < len(lines) and near not in source.kept:
                number = at - index + near
                self.bonus[number] = self.bonus.get(number, 0.0) + CONTEXT * gain
                yield near


def _cost(source: CandidateLines, index: int) -> float:
    """Tokens of a line, with the head that it needs."""
    return _line_cost(source, index) + _head_cost(source)


def _line_cost(source: CandidateLines, index: int) -> float:
    lines = source.lines
    return (lines.ends[index] - lines.starts[index]) * source.rate + 1.0


def _head_cost(source: CandidateLines) -> float:
    """Tokens of the head that the first line of a step needs."""
    return 0.0 if source.head is None or source.head.is_shown else source.head.head_tokens


def _repeated(sources: Sequence[CandidateLines]) -> set[str]:
    """The lines that are in several sources, in one of them as the agent's own."""
    own = (set(source.lines) for source in sources if source.kind in OWN)
    times = Tally(chain.from_iterable(own))
    again = {text for text, number in times.items() if number > 1}
    for source in sources if times else ():
        if source.kind not in OWN:
            again.update(filter(times.__contains__, source.lines))
    return again


class Written(NamedTuple):
    """The kept lines of the model and of the user."""

    model_text: str
    user_text: str


def written(sources: Iterable[CandidateLines]) -> Written:
    """What is kept of the model's words and of the user's."""
    sources = list(sources)
    model_text = [row for one in sources if one.kind == "text" for row in verbatim(one)]
    theirs = (one for one in sources if one.kind == USER)
    user_text = [row for one in theirs for row in with_gaps(one.lines, one.kept)]
    return Written("\n".join(model_text), "\n".join(user_text))


def with_gaps(lines: Lines, kept: Iterable[int]) -> Iterator[str]:
    """These lines in order, with ``[... 1,204 lines cut]`` for what is missing between them."""
    row, before, numbers = "", -1, sorted(kept)
    for number in numbers:
        if row and number in lines.joined and before == number - 1:
            row += lines[number]
        else:
            if row:
                yield row
            if gap := _gap(lines, before, number):
                yield gap
            row = lines[number]
        before = number
    if row:
        yield row
    if numbers and (gap := _gap(lines, before, len(lines))):
        yield gap


def _gap(lines: Lines, before: int, number: int) -> str:
    """``[... 1,204 lines cut]``, or "" where no line is missing."""
    start = lines.ends[before] if before >= 0 else 0
    end = lines.starts[number] if number < len(lines) else len(lines.text)
    text = lines.text[start:end].strip()
    cut = text.count("\n") + 1 if text else 0
    return f"[... {cut:,} line{'s' * (cut > 1)} cut]" if cut else ""


def verbatim(source: CandidateLines) -> list[str]:
    """The kept lines of a text, in order."""
    rows, before = list[str](), -2
    for index in sorted(source.kept):
        if index in source.lines.joined and before == index - 1:
            rows[-1] += source.lines[index]
        else:
            rows.append(source.lines[index])
        before = index
    return rows
