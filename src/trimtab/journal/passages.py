"""Finds lines and passages of what was taken out, by words.

Lines that hold all the words come first; where there is none, the steps that hold most of them,
with their best passages: BM25 over groups of lines, with a share of the neighbours' scores.

BM25 after Robertson and Zaragoza 2009; no library for it comes without numpy.  Positions are those
of the original, so that the text around a passage can be recalled.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import log
from typing import NamedTuple

from trimtab.errors import expect_text
from trimtab.formats.words import ID_KEYS, SIGNATURE_KEYS
from trimtab.journal.archive import ArchivedStep
from trimtab.reducers.articles.relevance import STEM, terms

PASSAGE_CHARS, SHOWN_CHARS = 480, 1_400
"""Chars of a passage, and of a passage shown with its neighbours: five of the latter are at most
2,000 tokens of common text."""
SATURATION, LENGTH = 1.2, 0.75
NEXT = 0.2
"""Share of a passage's score that is added to each neighbour."""
NEAR, PASSAGES_EACH = 0.5, 3
"""Share of its best passage's score that is added to a step's, and the passages shown of a step."""
ALIKE = 0.75
"""Steps with this share of the best rank match alike: of these the newest comes first, because what
it says replaces what older ones say."""
LITERAL = 2.0
"""Weight of a name of several words that occurs as it is asked for; its words count once each."""
MAX_TERMS = 60
"""Most terms of a query that are used, the rarest first."""
COMMON_SHARE = 0.25
"""A term in a larger share of the passages is ignored."""

MAX_HITS, MAX_STEPS, MAX_RANKED_CHARS = 40, 5, 8_000_000
"""Lines of one search, steps whose passages it ranks, and characters that it ranks."""
EACH = 8
"""Lines of one step, where others have some too."""
LONG_LINE_CHARS = 1_000
"""A longer line is read in pieces, split at escaped line ends."""

_WORDS = re.compile(r"[^\W_]+")
_LINE_END = re.compile(r"\r?\n|\r")
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
    """Passages of any number of originals.  ``literals``: texts in lower case that count as terms,
    where a passage holds them as they are: ``name_11_40`` is more than its words."""

    def __init__(self, literals: Sequence[str] = ()) -> None:
        self._literals = tuple(literals)
        self._places: list[tuple[str, Spans]] = []
        self._lengths: list[int] = []
        self._postings: dict[str, dict[int, int]] = {}
        self._total = 0
        self._known: set[str] = set()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, handle: str, text: str, messages: bool | None = None) -> None:
        """Add an original; a passage that an earlier original also has is skipped.  ``messages``:
        whether it is a list of messages; None: as it begins."""
        for lines in _passages(text, messages):
            passage = "\n".join(text[start:end] for start, end in lines)
            if passage in self._known:
                continue
            self._known.add(passage)
            number = len(self._places)
            counts = Counter(terms(passage))
            self._places.append((handle, lines))
            self._lengths.append(counts.total())
            self._total += counts.total()
            low = passage.casefold() if self._literals else ""
            counts.update({one: low.count(one) for one in self._literals if one in low})
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
        return {number: sum(parts.values()) for number, parts in self._parts(query).items()}

    def _parts(self, query: str) -> dict[int, dict[str, float]]:
        """The score of each passage by the query's terms that it has."""
        size = len(self)
        wanted = [term for term in dict.fromkeys(terms(query)) if term not in _FILLER]
        wanted += self._literals
        known = [term for term in wanted if term in self._postings]
        rare = [t for t in known if len(self._postings[t]) <= max(COMMON_SHARE * size, 8)] or known
        rare = sorted(rare, key=lambda term: len(self._postings[term]))[:MAX_TERMS]
        average = self._total / max(size, 1) or 1.0
        scores: dict[int, dict[str, float]] = {}
        for term in rare:
            postings = self._postings[term]
            weight = log(1 + (size - len(postings) + 0.5) / (len(postings) + 0.5))
            weight *= 0.5 if term.endswith("~") else LITERAL if term in self._literals else 1.0
            for number, times in postings.items():
                long = 1 - LENGTH + LENGTH * self._lengths[number] / average
                part = times * (SATURATION + 1) / (times + SATURATION * long)
                scores.setdefault(number, {})[term] = weight * part
        return scores

    def best_of_handles(self, query: str, most: int) -> list[tuple[str, list[Spans]]]:
        """The handles whose passages together match best, of those that match alike the first
        added; each with up to three passages: the best with its neighbours, and those that have
        words which it lacks."""
        parts = self._parts(query)
        by_handle: dict[str, dict[int, dict[str, float]]] = {}
        for number, own in parts.items():
            by_handle.setdefault(self._places[number][0], {})[number] = own
        ranks = dict[str, float]()
        for handle, passages in by_handle.items():
            together: dict[str, float] = {}
            for own in passages.values():
                for term, part in own.items():
                    together[term] = max(part, together.get(term, 0.0))
            nearest = max(sum(own.values()) for own in passages.values())
            ranks[handle] = round(sum(together.values()) + NEAR * nearest, 9)
        order = sorted(by_handle, key=lambda handle: -ranks[handle])[:most]
        alike = ALIKE * max(ranks.values(), default=0.0)
        order.sort(key=lambda one: min(by_handle[one]) if ranks[one] >= alike else len(self))
        return [(handle, self._covering(by_handle[handle])) for handle in order]

    def _covering(self, passages: dict[int, dict[str, float]]) -> list[Spans]:
        """The lines of up to PASSAGES_EACH of these passages, the best first, each for words that
        those before lack."""
        chosen, had = list[int](), dict[str, float]()

        def gain(number: int) -> float:
            return sum(max(0.0, p - had.get(t, 0.0)) for t, p in passages[number].items())

        for _ in range(PASSAGES_EACH):
            best = max(passages, key=lambda number: (round(gain(number), 9), -number))
            if gain(best) <= 0.0:
                break
            chosen.append(best)
            had |= {t: max(p, had.get(t, 0.0)) for t, p in passages[best].items()}
        shown = [self._with_neighbours(chosen[0], ()), *(range(n, n + 1) for n in chosen[1:])]
        covered, rows = set[int](), list[Spans]()
        for numbers in shown:
            fresh = [number for number in numbers if number not in covered]
            covered.update(fresh)
            if fresh:
                rows.append(tuple(line for n in fresh for line in self._places[n][1]))
        return rows

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


def _passages(text: str, messages: bool | None) -> Iterator[Spans]:
    """Split a text into groups of lines of about PASSAGE_CHARS; a longer line into pieces."""
    lines: list[tuple[int, int]] = []
    for _, start, end in numbered_lines(text, messages):
        if not text[start:end].strip():
            continue
        if lines and _size(tuple(lines)) + end - start > PASSAGE_CHARS:
            yield tuple(lines)
            lines = []
        while end - start > PASSAGE_CHARS:
            yield ((start, start + PASSAGE_CHARS),)
            start += PASSAGE_CHARS
        lines.append((start, end))
    if lines:
        yield tuple(lines)


# --- lines ---


_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?', re.DOTALL)
_NAMES = frozenset(("type", "role", *ID_KEYS, *SIGNATURE_KEYS))
"""Keys of a message whose values are not searched."""


class Line(NamedTuple):
    """A line: its number from 1, its start and end.  Pieces of a very long one share a number."""

    number: int
    start: int
    end: int


def numbered_lines(text: str, messages: bool | None = None) -> Iterator[Line]:
    """Every line of a text, empty ones too; of messages, which are JSON, the lines within their
    strings.  ``messages``: whether it is that; None: as it begins."""
    if text.startswith("[{") if messages is None else messages:
        number, key = 0, ""
        for match in _TOKEN.finditer(text):
            if match[2]:
                key = match[1]
            elif key not in _NAMES:
                for start, end in _parted(_BREAK, text, *match.span(1)):
                    number += 1
                    yield Line(number, start, end)
        return
    for number, (start, end) in enumerate(_parted(_LINE_END, text, 0, len(text)), 1):
        if end - start <= LONG_LINE_CHARS:
            yield Line(number, start, end)
        else:
            yield from (Line(number, *piece) for piece in _parted(_BREAK, text, start, end))


def _parted(at: re.Pattern[str], text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """What is between the matches of a pattern; nothing after one that ends the text."""
    for mark in at.finditer(text, start, end):
        yield start, mark.start()
        start = mark.end()
    if start < end:
        yield start, end


class Hit(NamedTuple):
    """A line, or several, that match a search: the first one's number, their start and end."""

    line: int
    start: int
    end: int
    text: str

    def moved(self, by: int) -> Hit:
        """The hit where its text begins ``by`` characters later; its line stays its own."""
        return self._replace(start=self.start + by, end=self.end + by)


def hits(text: str, wanted: str, most: int = MAX_HITS, messages: bool | None = None) -> list[Hit]:
    """The lines that contain ``wanted``, ignoring case; if there are none, those with all of its
    words.  [] if ``wanted`` is blank."""
    expect_text("text", wanted)
    phrase, words = wanted.strip().lower(), wanted.lower().split()
    low = text.lower()
    if not words or not all(word in low for word in words):
        return []
    exact, apart = list[Hit](), list[Hit]()
    for number, start, end in numbered_lines(text, messages):
        line = text[start:end].lower()
        if all(word in line for word in words):
            chosen = exact if phrase in line else apart
            chosen.append(Hit(number, start, end, text[start:end]))
            if len(exact) == most:
                break
    return (exact or apart)[:most]


def find(
    steps: Iterable[ArchivedStep], wanted: str, most: int = MAX_HITS
) -> list[tuple[ArchivedStep, Hit]]:
    """The lines of these steps, newest first, that contain ``wanted`` or all of its words; if there
    is none, the best passages of the steps that have most of the words.  No more than EACH lines
    are of one step, unless no other has any."""
    expect_text("text", wanted)
    found, read = list[tuple[ArchivedStep, list[Hit]]](), list[ArchivedStep]()
    left, lines = MAX_RANKED_CHARS, 0
    for step in steps:
        if own := hits(step.text, wanted, most, step.number > 0):
            found.append((step, own))
            lines += min(len(own), EACH)
            if lines >= most:
                break
        left -= len(step.text)
        if left >= 0 and not found:
            read.append(step)
    if not found:
        return best_passages(read, wanted, most)
    each = EACH if len(found) > 1 else most
    return [(step, hit) for step, own in found for hit in own[:each]][:most]


def best_passages(
    steps: Iterable[ArchivedStep], wanted: str, most: int
) -> list[tuple[ArchivedStep, Hit]]:
    """The best passages of the steps that match the words best; those first that are newer, where
    they match alike.  One word has no near matches."""
    if len(wanted.split()) < 2:
        return []
    stems = {term.strip("~")[:STEM] for term in terms(wanted) if term not in _FILLER}
    index, by_name = PassageIndex(_literals(wanted)), dict[str, ArchivedStep]()
    for step in steps:
        low = step.text.casefold()
        if any(stem in low for stem in stems):
            by_name[step.name] = step
            index.add(step.name, step.text, step.number > 0)
    found = list[tuple[ArchivedStep, Hit]]()
    for name, passages in index.best_of_handles(wanted, MAX_STEPS):
        step = by_name[name]
        numbers = {line.start: line.number for line in numbered_lines(step.text, step.number > 0)}
        for lines in passages:
            start, end = lines[0][0], lines[-1][1]
            text = "\n".join(step.text[a:b] for a, b in lines)
            found.append((step, Hit(_number(numbers, start), start, end, text)))
    return found[:most]


def _literals(wanted: str) -> list[str]:
    """The names in a query that are made of several words: paths, identifiers, ids."""
    names = (word.strip(".,;:?!\"'`()[]{}").casefold() for word in wanted.split())
    return [name for name in dict.fromkeys(names) if len(_WORDS.findall(name)) > 1]


def _number(numbers: dict[int, int], start: int) -> int:
    """The number of the line that begins at ``start`` or, of a piece, before it."""
    if start not in numbers:
        start = max((one for one in numbers if one <= start), default=0)
    return numbers.get(start, 1)
