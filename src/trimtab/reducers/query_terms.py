"""What is asked for: names from the words of the user and of the model, and where a text has them.

Names never come from what a tool returned: a tool could forge them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_NAMES = 96
MAX_NAME_CHARS = 120
MAX_TOLD = 24
"""A name that a text has more often says nothing about where its answer is."""
RARE = 3
"""A name on at most so many lines makes each of them mandatory."""
MIN_RARE = 0.999
"""Least worth, times RARE, of a mention of a rare name; a sum of thirds is not quite one."""

_QUOTED = re.compile(r"`([^`\n]{2,120})`|\"([^\"\n]{2,120})\"|(?<!\w)'([^'\n]{2,120})'(?!\w)")
_WORD = re.compile(r"[#@$/.~]?\w(?:[\w./@:~+\[\]-]*\w\]?)?")
_PROPER = re.compile(r"[^\W\d_a-z]\w+(?: (?:(?:de|van|von|der|di|la) )?[^\W\d_a-z][\w'-]+){1,4}")
_MARKED = re.compile(r"[\d_./@:#\[-]|[a-z][A-Z]")
_PARTS = re.compile(r"[./:]+")
_COMMON_WORDS = """
about above after again also another answer back because been before between both call
case change check class code colleague command could does done each error every example
file files find first following from function give have help here into just know last
later line lines list look make many more most much must name names need number once
only other output part path please read result run same say see select set shall short
should show some such sure take tell test tests text than that their them then there
these they thing this those time told tool under until update used using value very want
wants was well were what when where whether which while will with without word work
would write your
"""
_COMMON = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True, slots=True)
class QueryTerms:
    """Names that are asked for, the most certain first; ``words`` are plain words of the same
    texts, which raise a line less than a name does."""

    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names or self.words)


NO_TERMS = QueryTerms()


def terms_in(texts: Iterable[str]) -> QueryTerms:
    """The names in these texts, whose order is kept.

    >>> terms_in(["Which town is Marta Kowalski's, invoice 4711, in `db.pool`?"]).names
    ('db.pool', 'Marta Kowalski', 'Marta', 'Kowalski', '4711')
    """
    names: dict[str, None] = {}
    words: dict[str, None] = {}
    for text in texts:
        for name, certain in _names(text):
            (names if certain else words).setdefault(name)
        if len(names) >= MAX_NAMES:
            break
    plain = [word for word in words if word not in names]
    return QueryTerms(tuple(names)[:MAX_NAMES], tuple(plain[:MAX_NAMES]))


def _names(text: str) -> Iterator[tuple[str, bool]]:
    """Each name, and whether it is more than a plain word."""
    for match in _QUOTED.finditer(text):
        yield (match[1] or match[2] or match[3]).strip(), True
    for match in _PROPER.finditer(text):
        yield match[0].removesuffix("'s"), True
    for match in _WORD.finditer(text):
        word = match[0]
        if len(word) > MAX_NAME_CHARS or len(word) < 3:
            continue
        if _MARKED.search(word):
            if not word.isdigit() or len(word) >= 3:
                yield word, True
            for part in _PARTS.split(word):  # of a key path or an address
                if part != word and len(part) >= 4 and part.lower() not in _COMMON:
                    yield part, bool(_MARKED.search(part))
            continue
        if word.lower() in _COMMON:
            continue
        if word[0].isupper():
            yield word, True
        elif len(word) >= 4:
            yield word, False


def occurrences(text: str, name: str) -> list[int]:
    """Where the text has this name as a whole word; [] if it has it more than MAX_TOLD times."""
    found: list[int] = []
    at = text.find(name)
    tries = 0
    while at >= 0:
        end = at + len(name)
        inside = (at > 0 and _joins(text[at - 1], name[0])) or (
            end < len(text) and _joins(text[end], name[-1])
        )
        if not inside:
            found.append(at)
        tries += 1
        if len(found) > MAX_TOLD or tries > 8 * MAX_TOLD:
            return []
        at = text.find(name, end)
    return found


def _joins(beside: str, end: str) -> bool:
    return (beside.isalnum() or beside == "_") and (end.isalnum() or end == "_")


def places(text: str, terms: QueryTerms) -> dict[int, float]:
    """Offset of each mention → its worth: 1 for the only mention of a name, a third for each of
    three; a plain word is worth a fifth of that."""
    worth: dict[int, float] = {}
    for names, share in ((terms.names, 1.0), (terms.words, 0.2)):
        for name in names:
            found = occurrences(text, name)
            for at in found:
                worth[at] = max(worth.get(at, 0.0), share / len(found))
    return worth


def rare_names(text: str, terms: QueryTerms) -> tuple[str, ...]:
    """The names, not the plain words, that the text has at most RARE times."""
    return tuple(name for name in terms.names if 0 < len(occurrences(text, name)) <= RARE)
