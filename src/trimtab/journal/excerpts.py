"""The one look-up at every door: lists what was taken out, searches it, and reads of it.

Positions are in characters from 0, lines from 1; both in what the same handle and steps give.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from trimtab.errors import TrimtabError, expect
from trimtab.journal.archive import (
    Archived,
    ArchivedStep,
    Originals,
    archive_of,
    steps_in,
    steps_of_archive,
    unmarked,
)
from trimtab.journal.archived_files import NoReading, file_reading
from trimtab.journal.folded_steps import (
    CONTENTS_CHARS,
    contents,
    folded_steps,
    step_range,
    steps_of,
)
from trimtab.journal.passages import MAX_HITS, find, numbered_lines

MAX_CHARS = 20_000
"""Most chars of one answer to a model: an original may exceed the window it was cut for."""
FOUND_CHARS = 8_000
"""Most chars of what a search or a list says: some 2,000 tokens."""
MAX_ROWS, MAX_READ_CHARS = 60, 32_000_000
"""Rows of a list, and characters of originals that a list or a search reads, the newest first."""
LINE_CHARS = 240
HANDLE_CHARS = 64
HOW = 'recall(handle="…", steps="…") reads one'


class RecallAnswer(NamedTuple):
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


def answer(originals: Originals, arguments: Mapping[str, Any]) -> RecallAnswer:
    """Answer a model's look-up: a list, a search, a file's last reading, or an original whole or
    in part.

    Never raises for any arguments of a model; the answer then says what is wrong and what to do.
    """
    try:
        lookup = _LookUp.of(arguments)
        if lookup.handle:
            return _read(originals, lookup)
        archive = archive_of(originals)
        if archive is None:
            return RecallAnswer('give the handle that the note names: recall("…")', failed=True)
        if lookup.search:
            return _searched(steps_of_archive(originals, archive, MAX_READ_CHARS), lookup)
        if lookup.file:
            return _of_file(originals, archive, lookup)
        return _listed(originals, archive, lookup.start or 0)
    except (TrimtabError, ValueError) as error:
        return RecallAnswer(str(error), failed=True)


class _LookUp(NamedTuple):
    """A look-up's arguments, as they were meant: some models give each one, "" or 0 for none."""

    handle: str = ""
    search: str = ""
    file: str = ""
    steps: tuple[int, int] | None = None
    start: int | None = None
    end: int | None = None
    lines: tuple[int, int] | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> _LookUp:
        """Raises ValueError."""
        handle, search, file = (_text(arguments.get(key)) for key in ("handle", "search", "file"))
        return cls(
            handle.strip("\"'`")[:HANDLE_CHARS], search, file.strip("\"'`"),
            _range("steps", arguments.get("steps")), _position(arguments, "start"),
            _position(arguments, "end") or None, _range("lines", arguments.get("lines")),
        )  # fmt: skip

    @property
    def is_part(self) -> bool:
        return (self.start, self.end, self.lines) != (None, None, None)


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _position(arguments: Mapping[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, float) and value.is_integer():  # JSON of some models has 5.0
        value = int(value)
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 20:
        value = int(value)
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is a number of characters, 0 or more")
    return min(value, sys.maxsize)


def _range(name: str, value: Any) -> tuple[int, int] | None:
    try:
        return None if type(value) in (int, str) and value in (0, "0") else step_range(value)
    except ValueError:
        raise ValueError(f'{name} is a number from 1 ("3") or a range ("3-5")') from None


# --- a handle ---


def _read(originals: Originals, lookup: _LookUp) -> RecallAnswer:
    text = originals.recall(lookup.handle)
    if lookup.search:
        if lookup.steps is not None:
            text = steps_of(text, *lookup.steps)
        return _searched(steps_in(Archived(lookup.handle), text), lookup)
    if lookup.steps is not None:
        text = steps_of(text, *lookup.steps)
    elif not lookup.is_part and len(text) > CONTENTS_CHARS:
        folded = folded_steps(text)
        if len(folded) > 1:
            return RecallAnswer(contents(folded, len(text), MAX_CHARS))
    return _shown(text, lookup)


def _shown(text: str, lookup: _LookUp) -> RecallAnswer:
    if lookup.lines is not None:
        return _lines(text, *lookup.lines)
    begin = min(max(0, lookup.start or 0), len(text))
    wanted = part(text, lookup.start, lookup.end)
    if text and not wanted:
        return RecallAnswer(f"there is nothing: the original has {len(text):,} chars", failed=True)
    if len(wanted) <= MAX_CHARS:
        return RecallAnswer(wanted)
    stop = begin + MAX_CHARS
    more = (
        f"\n[chars {begin:,} to {stop:,} of {len(text):,}; the rest: start={stop}, "
        "or search for what is needed]"
    )
    return RecallAnswer(wanted[:MAX_CHARS] + more)


def _lines(text: str, first: int, last: int) -> RecallAnswer:
    """Lines by number: of messages as they were said, without the JSON around them."""
    is_messages = bool(folded_steps(text))
    rows, chars, number = list[str](), 0, 0
    for number, start, end in numbered_lines(text, is_messages):
        if first <= number <= last:
            chars += end - start + 1
            if chars > MAX_CHARS and rows:
                rows.append(f'[the rest: lines="{number}-{last}"]')
                break
            rows.append(readable(text[start:end]) if is_messages else text[start:end])
            if chars > MAX_CHARS:
                cut = rows.pop()[:MAX_CHARS]
                rows.append(f"{cut}\n[line {number} goes on: start and end give its characters]")
    if not rows:
        to = f" to {last}" if last != first else ""
        return RecallAnswer(f"no line {first}{to}: it has {number:,} lines", failed=True)
    return RecallAnswer("\n".join(rows))


def readable(text: str) -> str:
    """A piece of a JSON string with its escapes resolved; as it is where it was cut within one."""
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


# --- search and list ---


def _searched(steps: Iterable[ArchivedStep], lookup: _LookUp) -> RecallAnswer:
    wanted, rows = lookup.search, list[str]()
    found = find(steps, wanted)
    if not found:
        return RecallAnswer(
            f"no line of what was left out holds {wanted[:LINE_CHARS]!r}", failed=True
        )
    exact = all(_holds(hit.text, wanted) for _, hit in found)
    if not exact:
        rows.append("No line holds all of it; nearest:")
        order = {step.name: number for number, (step, _) in reversed([*enumerate(found)])}
        found = sorted(found, key=lambda one: (order[one[0].name], one[1].start))
    of_handle, chars = "", 0
    for number, (step, hit) in enumerate(found):
        text = _clipped(hit.text, wanted) if exact else hit.text
        text = readable(text) if step.number else text
        is_known = step.name == of_handle or step.name == lookup.handle
        head = "" if is_known else f"{step.name} ({step.about}):"
        row = (
            f"line {hit.line} (chars {hit.start}-{hit.end}): {text}"
            if exact
            else (f"line {hit.line}…:\n{text}")
        )
        chars += len(head) + len(row) + 2
        if chars > FOUND_CHARS and number:
            rows.append(f"[{len(found) - number} more; search for more words, or with a handle]")
            break
        rows += [head, row] if head else [row]
        of_handle = step.name
    if len(found) == MAX_HITS:
        rows.append(f"[the first {MAX_HITS} lines; search for more words to see others]")
    return RecallAnswer("\n".join(rows))


def _holds(text: str, wanted: str) -> bool:
    low = text.lower()
    return "\n" not in text and all(word in low for word in wanted.lower().split())


def _clipped(text: str, wanted: str) -> str:
    """The line; a long one is cut to the text around the first match."""
    if len(text) <= LINE_CHARS:
        return text
    low = text.lower()
    words = [wanted.strip().lower(), *wanted.lower().split()]
    at = next((place for word in words if (place := low.find(word)) >= 0), 0)
    begin = max(0, min(at - LINE_CHARS // 3, len(text) - LINE_CHARS))
    return f"…{text[begin : begin + LINE_CHARS]}…"


def _listed(originals: Originals, archive: Iterable[Archived], first: int) -> RecallAnswer:
    steps = steps_of_archive(originals, archive, MAX_READ_CHARS)
    rows, chars, handle = list[str](), 0, ""
    for _ in islice(steps, first):
        pass
    for number, step in enumerate(steps, first):
        row = f"{step.about} (~{step.tokens:,} tokens)"
        if not step.number:
            row = f"{step.archived.handle}: {row}"
        elif step.archived.handle != handle:
            row = f"{step.archived.handle}, by step:\n {step.number} {row}"
        else:
            row = f" {step.number} {row}"
        handle = step.archived.handle
        chars += len(row) + 1
        if number - first == MAX_ROWS or (chars > FOUND_CHARS and rows):
            rows.append(f"[older ones: start={number}; search finds lines in all]")
            break
        rows.append(row)
    if not rows:
        return RecallAnswer("nothing was left out of this conversation" if not first else
                    "nothing older was left out")  # fmt: skip
    return RecallAnswer("\n".join([f"What was left out, newest first ({HOW}):", *rows]))


# --- files ---


def _of_file(originals: Originals, archive: Iterable[Archived], lookup: _LookUp) -> RecallAnswer:
    steps = steps_of_archive(originals, archive, MAX_READ_CHARS)
    reading = file_reading(steps, lookup.file)
    if isinstance(reading, NoReading):
        return RecallAnswer(str(reading), failed=True)
    shown = _shown(unmarked(originals, reading.text), lookup)
    if shown.failed:
        return shown
    return RecallAnswer("\n".join([reading.head, shown.text, *reading.edits(FOUND_CHARS)]))
