"""Finds passages of originals by words: BM25 over groups of lines, with a share of the neighbours'
scores.

BM25 after Robertson and Zaragoza 2009; no library for it comes without numpy.  Positions are those
of the original, so that the text around a passage can be recalled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from math import log
from typing import NamedTuple

from trimtab.reducers.articles.relevance import terms

PASSAGE_CHARS, SHOWN_CHARS = 480, 1_400
"""Chars of a passage, and of a passage shown with its neighbours: five of the latter are at most
2,000 tokens of common text."""
SATURATION, LENGTH = 1.2, 0.75
NEXT = 0.2
"""Share of a passage's score that is added to each neighbour."""
MOST_TERMS = 60
"""Most terms of a query that are used, the rarest first."""
COMMON_SHARE = 0.25
"""A term in a larger share of the passages is ignored."""

_BREAK = re.compile(r"\r?\n|(?:\\+r)?\\+n")
_FILLER = frozenset(
    terms(
        "the a an and or of to in is it that this for on with as at by be are was i you we from "
        "not but have has had will can let me now so if then there here what which do does did my "
        "your its our all"
    )
)
"""Stop words."""


Spans = tuple[tuple[int, int], ...]
"""(start, end) of lines in an original."""


class Passage(NamedTuple):
    """A passage: the handle of its original, its lines and those of neighbours shown with it, and
    its score."""

    handle: str
    lines: Spans
    score: float

    def text(self, original: str) -> str:
        """Its lines."""
        return "\n".join(original[start:end] for start, end in self.lines)


class PassageIndex:
    """Passages of any number of originals, newest last."""

    def __init__(self) -> None:
        self._places: list[tuple[str, Spans]] = []
        self._lengths: list[int] = []
        self._postings: dict[str, dict[int, int]] = {}
        self._total = 0
        self._known: set[str] = set()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, handle: str, text: str) -> None:
        """Add an original; a passage that an earlier original also has is skipped."""
        for lines in _passages(text):
            said = "\n".join(text[start:end] for start, end in lines)
            if said in self._known:
                continue
            self._known.add(said)
            number = len(self._places)
            counts = Counter(terms(said))
            self._places.append((handle, lines))
            self._lengths.append(counts.total())
            self._total += counts.total()
            for term, times in counts.items():
                self._postings.setdefault(term, {})[number] = times

    def search(self, query: str, most: int = 5) -> list[Passage]:
        """The passages that match best, each with its neighbours and none twice."""
        scores = self._scores(query)
        near = dict(scores)
        for number, score in scores.items():
            for other in (number - 1, number + 1):
                if 0 <= other < len(self) and self._places[other][0] == self._places[number][0]:
                    near[other] = near.get(other, 0.0) + NEXT * score
        passages, covered = list[Passage](), set[int]()
        for number in sorted(near, key=lambda n: (-round(near[n], 9), -n)):
            if len(passages) == most:
                break
            if number in covered:
                continue
            shown = self._with_neighbours(number, covered)
            covered.update(shown)
            lines = tuple(line for n in shown for line in self._places[n][1])
            passages.append(Passage(self._places[number][0], lines, near[number]))
        return passages

    def _scores(self, query: str) -> dict[int, float]:
        size = len(self)
        wanted = [term for term in dict.fromkeys(terms(query)) if term not in _FILLER]
        known = [term for term in wanted if term in self._postings]
        rare = [t for t in known if len(self._postings[t]) <= max(COMMON_SHARE * size, 8)] or known
        rare = sorted(rare, key=lambda term: len(self._postings[term]))[:MOST_TERMS]
        average = self._total / max(size, 1) or 1.0
        scores: dict[int, float] = {}
        for term in rare:
            postings = self._postings[term]
            weight = log(1 + (size - len(postings) + 0.5) / (len(postings) + 0.5))
            weight *= 0.5 if term.endswith("~") else 1.0
            for number, times in postings.items():
                long = 1 - LENGTH + LENGTH * self._lengths[number] / average
                part = times * (SATURATION + 1) / (times + SATURATION * long)
                scores[number] = scores.get(number, 0.0) + weight * part
        return scores

    def _with_neighbours(self, number: int, covered: Collection[int]) -> range:
        """The passage with the neighbours shown with it, except those already shown."""
        handle, lines = self._places[number]
        first = last = number
        size = _size(lines)
        for other in (number + 1, number - 1):
            free = 0 <= other < len(self) and other not in covered
            if free and self._places[other][0] == handle:
                more = _size(self._places[other][1])
                if size + more <= SHOWN_CHARS:
                    size += more
                    first, last = min(first, other), max(last, other)
        return range(first, last + 1)


def _size(lines: Spans) -> int:
    return sum(end - start + 1 for start, end in lines)


def _passages(text: str) -> Iterator[Spans]:
    """Split a text into groups of lines of about PASSAGE_CHARS; a longer line into pieces."""
    lines: list[tuple[int, int]] = []
    for start, end in _lines(text):
        if lines and _size(tuple(lines)) + end - start > PASSAGE_CHARS:
            yield tuple(lines)
            lines = []
        while end - start > PASSAGE_CHARS:
            yield ((start, start + PASSAGE_CHARS),)
            start += PASSAGE_CHARS
        lines.append((start, end))
    if lines:
        yield tuple(lines)


_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?', re.DOTALL)
_NAMES = frozenset(
    ("type", "role", "id", "call_id", "tool_call_id", "tool_use_id", "toolUseId", "signature",
     "thoughtSignature", "encrypted_content")
)  # fmt: skip
"""Keys of a message whose values are not searched."""


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """(start, end) of each non-blank line; of messages, which are JSON, the lines within their
    strings."""
    if not text.startswith("[{"):
        yield from _lines_within(text, 0, len(text))
        return
    key = ""
    for match in _TOKEN.finditer(text):
        if match[2]:
            key = match[1]
        elif key not in _NAMES:
            yield from _lines_within(text, *match.span(1))


def _lines_within(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for mark in _BREAK.finditer(text, start, end):
        if text[start : mark.start()].strip():
            yield start, mark.start()
        start = mark.end()
    if text[start:end].strip():
        yield start, end
