"""An original as text for a model: the whole, a part, or the lines that contain a text.

Positions are in characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from trimtab.errors import StoreError, UnknownHandle, expect, expect_text
from trimtab.journal.folded_steps import (
    CONTENTS_CHARS,
    contents,
    folded_steps,
    step_range,
    steps_of,
)
from trimtab.journal.passages import PassageIndex

MOST_CHARS = 20_000
"""Most chars of one answer to a model: an original may exceed the window it was cut for."""
MOST_HITS, MOST_PASSAGES = 40, 5
LEAST_WORDS = 3
"""Least words of a query that searches for passages."""
LINE_CHARS = 240
LONG_LINE_CHARS = 1_000
_ESCAPED = re.compile(r"\\+n")
HANDLE_CHARS = 64


class Originals(Protocol):
    """Anything that returns originals: a ``Session``, a ``Fitted``, a store's reader."""

    def recall(self, handle: str) -> str:
        """The exact original.  Raises UnknownHandle."""
        ...


class Hit(NamedTuple):
    """One line that contains the searched text: its number from 1, its start and end."""

    line: int
    start: int
    end: int
    text: str


class Said(NamedTuple):
    """An answer to a model, and whether it reports an error."""

    text: str
    failed: bool = False


def is_handle(name: str) -> bool:
    """Whether ``name`` can be a handle: at most 64 printable chars."""
    return len(name) <= HANDLE_CHARS and name.isprintable()


def part(text: str, start: int | None = None, end: int | None = None) -> str:
    """``text[start:end]``; positions beyond its ends are its ends.

    >>> part("abcdef", 2, 99)
    'cdef'
    """
    for name, place in (("start", start), ("end", end)):
        expect(place is None or type(place) is int, name, place, "a whole number or None")
    return text[max(0, start or 0) : len(text) if end is None else max(0, end)]


def hits(text: str, wanted: str, most: int = MOST_HITS) -> list[Hit]:
    """The lines that contain ``wanted``, ignoring case; if there are none, those with all of its
    words.  [] if ``wanted`` is blank.  Dropped messages are one line of JSON: there, lines within
    its strings are searched."""
    expect_text("text", wanted)
    for words in ([wanted.strip().lower()], wanted.lower().split()):
        lines_with = list[Hit]()
        for hit in _lines(text):
            low = hit.text.lower()
            if words and all(word and word in low for word in words):
                lines_with.append(hit)
                if len(lines_with) == most:
                    return lines_with
        if lines_with:
            return lines_with
    return []


def best_passages(
    originals: Iterable[tuple[str, str]], wanted: str, most: int = MOST_PASSAGES
) -> list[tuple[str, Hit]]:
    """The passages of these (handle, original) pairs, oldest first, that match the words best: each
    with its neighbours, at most five and together about 2,000 tokens."""
    if len(wanted.split()) < LEAST_WORDS:  # probably a name, which has no near matches
        return []
    index, texts = PassageIndex(), dict[str, str]()
    for handle, text in originals:
        texts[handle] = text
        index.add(handle, text)
    ranked = []
    for passage in index.search(wanted, min(most, MOST_PASSAGES)):
        text = texts[passage.handle]
        start, end = passage.lines[0][0], passage.lines[-1][1]
        line = text.count("\n", 0, start) + 1
        ranked.append((passage.handle, Hit(line, start, end, passage.text(text))))
    return ranked


def _lines(text: str) -> Iterator[Hit]:
    """Every line; a very long one in pieces, split at escaped line ends."""
    position = 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        bare = line.rstrip("\r\n")
        if len(bare) <= LONG_LINE_CHARS:
            yield Hit(number, position, position + len(bare), bare)
        else:
            begin = 0
            for mark in _ESCAPED.finditer(bare):
                end = position + mark.start()
                yield Hit(number, position + begin, end, bare[begin : mark.start()])
                begin = mark.end()
            yield Hit(number, position + begin, position + len(bare), bare[begin:])
        position += len(line)


def answer(originals: Originals, arguments: Mapping[str, Any]) -> Said:
    """Answer a model's request for an original: the whole, ``start``…``end``, or a ``search``; for
    a fold its table of contents, or single ``steps``.

    Never raises for any arguments of a model; the answer then says what is wrong and what to do.
    """
    handle = arguments.get("handle")
    if not isinstance(handle, str) or not handle.strip():
        return Said('give the handle that the note names: recall("…")', failed=True)
    handle = handle.strip().strip("\"'`")[:HANDLE_CHARS]
    try:
        start, end = _position(arguments, "start"), _position(arguments, "end")
        steps = step_range(arguments.get("steps"))
    except ValueError as error:
        return Said(str(error), failed=True)
    try:
        text = originals.recall(handle)
    except (UnknownHandle, StoreError) as error:
        return Said(str(error), failed=True)
    wanted = arguments.get("search")
    if isinstance(wanted, str) and wanted.strip():
        return _searched(text, wanted)
    if steps is not None:
        try:
            text = steps_of(text, *steps)
        except ValueError as error:
            return Said(str(error), failed=True)
    elif start is None and end is None and len(text) > CONTENTS_CHARS:
        folded = folded_steps(text)
        if len(folded) > 1:
            return Said(contents(folded, len(text), MOST_CHARS))
    return _shown(text, start, end)


def _position(arguments: Mapping[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, float) and value.is_integer():  # JSON of some models has 5.0
        value = int(value)
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is a number of characters, 0 or more")
    return value


def _shown(text: str, start: int | None, end: int | None) -> Said:
    begin = min(max(0, start or 0), len(text))
    wanted = part(text, start, end)
    if text and not wanted:
        return Said(f"nothing stands there: the original has {len(text):,} chars", failed=True)
    if len(wanted) <= MOST_CHARS:
        return Said(wanted)
    stop = begin + MOST_CHARS
    more = (
        f"\n[chars {begin:,} to {stop:,} of {len(text):,}; the rest: start={stop}, "
        "or search for what is needed]"
    )
    return Said(wanted[:MOST_CHARS] + more)


def _searched(text: str, wanted: str) -> Said:
    matches = hits(text, wanted)
    if not matches:
        near = best_passages([("", text)], wanted)
        if not near:
            return Said(f"no line of the original holds {wanted[:LINE_CHARS]!r}", failed=True)
        rows = ["No line holds all of it; nearest:"]
        rows += [f"chars {hit.start}-{hit.end}:\n{hit.text}" for _, hit in near]
        return Said("\n".join(rows))
    rows = [
        f"line {hit.line} (chars {hit.start}-{hit.end}): {_clipped(hit, wanted)}" for hit in matches
    ]
    if len(matches) == MOST_HITS:
        rows.append(f"[the first {MOST_HITS} lines; search for more words to see others]")
    return Said("\n".join(rows))


def _clipped(hit: Hit, wanted: str) -> str:
    """The line; a long one is cut to the text around the first match."""
    if len(hit.text) <= LINE_CHARS:
        return hit.text
    low = hit.text.lower()
    words = [wanted.strip().lower(), *wanted.lower().split()]
    at = next((place for word in words if (place := low.find(word)) >= 0), 0)
    begin = max(0, min(at - LINE_CHARS // 3, len(hit.text) - LINE_CHARS))
    return f"…{hit.text[begin : begin + LINE_CHARS]}…"
