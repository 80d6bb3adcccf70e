"""What is asked for by name, and the lines of a text that tell it.

Names come from the user's words, the model's newest turns and the call that produced a text, never
from what tools said: that could be forged.  A name that stands on few lines of a text points at
them; one that stands on many points at none.  With a line its unit is told: what is indented below
it, the hunk of a diff, the section of a failed test, a table's header.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

MAX_NAMES = 64
"""So many names are looked for."""
MAX_LINES = 3
"""A name that stands on more lines of one text does not point at any of them."""
PLAIN_WORTH, ENOUGH = 0.2, 0.3
"""What a plain word on one line counts beside a name, which counts 1; and what a line needs, each
divided by the number of lines with it."""
UNIT_LINES, PARENTS = 40, 6
"""The most lines of a unit, and of the lines above that it is indented under."""
TEXT_CHARS = 4_000
"""A longer text is not a question: its two halves' ends of so many chars are read."""

_RUN = re.compile(r"[^\s,;\"'`“”„«»()<>{}|=]+")
_WORD = re.compile(r"\w[\w@.~+#/-]*\w|\w")
_TELLING = re.compile(
    r"\d{3}|[A-Za-z]\d|\d[A-Za-z]|[a-z][A-Z]|\w[_./:#@-]\w|^[A-Z][a-zà-ÿ]{2,}|^[A-Z]{2,}$"
)
_HUNK, _FILE = re.compile(r"@@ "), re.compile(r"(?:\+\+\+ |--- |diff --git )")
_SECTION = re.compile(r"_{3,} .+ _{3,}$|={3,}|-{3,}$|--- FAIL")


class Asked(NamedTuple):
    """Names that say which one is meant, and plain words that may."""

    names: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


NOTHING = Asked()


def asked_in(texts: Iterable[str]) -> Asked:
    """The names in these texts, those of the first text first.

    >>> asked_in(["What does INV-2041 cost?"])
    Asked(names=('INV-2041',), words=('cost', 'does'))
    """
    names, words = dict[str, None](), dict[str, None]()
    for text in texts:
        if len(text) > TEXT_CHARS:
            text = f"{text[: TEXT_CHARS // 2]}\n{text[-TEXT_CHARS // 2 :]}"
        for run in _RUN.findall(text):
            run = run.strip(".,:;!?*…")
            for name in dict.fromkeys((run, *_WORD.findall(run))):
                if len(name) < 3 or len(name) > 160:
                    continue
                if _TELLING.search(name):
                    names[name] = None
                elif len(name) > 3:
                    words[name] = None
    first = {word: None for word in names if word.isalpha() and word[0].isupper()}
    strong = [name for name in names if name not in first]  # a capital may only begin a sentence
    kept = [*strong, *first][:MAX_NAMES]
    return Asked(tuple(kept), tuple(sorted(list(words)[:MAX_NAMES])))


def joined(*several: Asked) -> Asked:
    """The names of several, each once."""
    names = dict.fromkeys(name for one in several for name in one.names)
    words = dict.fromkeys(word for one in several for word in one.words)
    return Asked(tuple(names)[: 2 * MAX_NAMES], tuple(words)[: 2 * MAX_NAMES])


def spots(text: str, asked: Asked) -> dict[int, list[int]]:
    """Number of a line that an asked name points at → where on it, as offsets in ``text``."""
    found: dict[int, list[int]] = defaultdict(list)
    worth: dict[int, float] = defaultdict(float)
    begins: list[int] = []
    for names, each in ((asked.names, 1.0), (asked.words, PLAIN_WORTH)):
        for name in names:
            if name not in text:
                continue
            begins = begins or _begins(text)
            at = list(_lines_with(text, name, begins))
            if len({line for line, _ in at}) <= MAX_LINES:
                share = each / len({line for line, _ in at}) if at else 0.0
                for line, offset in at:
                    worth[line] += share
                    found[line].append(offset)
    return {line: offsets for line, offsets in found.items() if worth[line] >= ENOUGH}


def _begins(text: str) -> list[int]:
    begins, at = [0], text.find("\n")
    while at >= 0:
        begins.append(at + 1)
        at = text.find("\n", at + 1)
    return begins


def _lines_with(text: str, name: str, begins: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(line, offset) of each place where the name stands by itself; at most a few too many."""
    line, at, lines = 0, text.find(name), set[int]()
    while at >= 0 and len(lines) <= MAX_LINES:
        end = at + len(name)
        if not (at and _inner(text[at - 1]) and _inner(name[0])) and not (
            end < len(text) and _inner(text[end]) and _inner(name[-1])
        ):
            while line + 1 < len(begins) and begins[line + 1] <= at:
                line += 1
            lines.add(line)
            yield line, at
        at = text.find(name, end)


def _inner(char: str) -> bool:
    return char.isalnum() or char == "_"


# --- the unit of a line ---


def unit(lines: Sequence[str], number: int) -> set[int]:
    """The numbers of the lines that are told together with this one, itself included."""
    line = lines[number]
    if line[:1] in ("+", "-", " ") and (hunk := _hunk(lines, number)):
        return hunk
    if _SECTION.match(line):
        return set(_until(lines, number, lambda row: bool(_SECTION.match(row))))
    depth = _indent(line)
    below = list(_below(lines, number, depth))
    if len(below) == 1 and depth > 0:  # a leaf: what stands beside it says what it is
        parent = _parent(lines, number, depth)
        beside = list(_below(lines, parent, _indent(lines[parent]))) if parent >= 0 else []
        near = [n for n in beside if abs(n - number) <= UNIT_LINES // 4]
        below += near if len(beside) <= UNIT_LINES else near[: UNIT_LINES // 2]
    unit = {*below, *_parents(lines, number, depth)}
    if depth == 0 and len(below) == 1 and number > 1:
        unit |= _header(lines)
    return unit


def _indent(line: str) -> int:
    bare = re.sub(r"^[ \t]*\d+(?:→|\t)", "", line)
    return len(bare.expandtabs(4)) - len(bare.expandtabs(4).lstrip())


def _below(lines: Sequence[str], number: int, depth: int) -> Iterator[int]:
    """A line and those indented deeper below it, and the line that closes them."""
    yield number
    for n in range(number + 1, min(len(lines), number + UNIT_LINES)):
        if not lines[n].strip():
            continue
        if _indent(lines[n]) <= depth:
            closes = re.match(r"(?:[ \t]*\d+(?:→|\t))?[ \t]*(?:[)}\]]|</|end\b|\{)", lines[n])
            if closes and (n > number + 1 or "{" in lines[n]):
                yield n
            if not (closes and lines[n].strip() == "{"):
                return
        else:
            yield n


def _parent(lines: Sequence[str], number: int, depth: int) -> int:
    """The nearest line above that this one is indented under; −1 if there is none."""
    for n in range(number - 1, max(-1, number - 200), -1):
        if lines[n].strip() and _indent(lines[n]) < depth:
            return n
    return -1


def _parents(lines: Sequence[str], number: int, depth: int) -> Iterator[int]:
    for _ in range(PARENTS):
        number = _parent(lines, number, depth)
        if number < 0:
            return
        yield number
        depth = _indent(lines[number])


def _header(lines: Sequence[str]) -> set[int]:
    """The first line of a table, and the rule below it."""
    rule = {1} if not any(map(str.isalnum, lines[1])) else set[int]()
    return {0, *rule}


def _hunk(lines: Sequence[str], number: int) -> set[int]:
    """The hunk of a diff around a line, and the names of its files; empty outside a diff."""
    start = next((n for n in range(number, max(-1, number - 200), -1) if _HUNK.match(lines[n])), -1)
    if start < 0:
        return set()
    own = _until(lines, start, lambda row: bool(_HUNK.match(row) or _FILE.match(row)))
    near = {n for n in own if abs(n - number) <= UNIT_LINES // 2}
    heads = (n for n in range(start, max(-1, start - 2_000), -1) if _FILE.match(lines[n]))
    return {start, *near, *list(heads)[:2]}


def _until(lines: Sequence[str], number: int, ends: Callable[[str], bool]) -> Iterator[int]:
    yield number
    for n in range(number + 1, min(len(lines), number + UNIT_LINES)):
        if ends(lines[n]):
            return
        yield n
