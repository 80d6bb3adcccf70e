"""Blocks as lines: what a line says, which identifiers stand among words on it, what it costs.

Knows texts and JSON arguments.  Does not know transcripts, nor which lines will be kept.  Nothing
is changed in a line, save that colours and the number a reading tool put before it are left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trimtab.model import Block
from trimtab.reading.names import TOKEN, names_in
from trimtab.strategies.boundaries import at_or_after, at_or_before
from trimtab.strategies.terminal import strip_escapes

LONG_CHARS, PIECE_CHARS = 240, 160
"""A longer line is taken in pieces of about so many characters."""
GROUND_WORDS = 2
"""Plain words that must stand on a line for its identifiers to say anything."""
HEADER_CHARS = 100
"""How much of a call's arguments a header shows, and of each string in them."""
_NUMBERED = re.compile(r"[ \t]*\d+(?:→|\t)")
_BREAK = re.compile(r"[\s,;]\S*$")


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or a piece of a long one: ``joined`` to the piece before it.

    ``names``: the identifiers on it; ``told``: whether at least two plain words stand by them.
    """

    text: str
    names: tuple[str, ...]
    told: bool = False
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Lines:
    """A block's lines in order, and every identifier in it, ``grounded`` among words or not."""

    lines: tuple[Line, ...]
    names: frozenset[str]
    grounded: frozenset[str]
    header: str = ""
    """Of a call: its tool and the beginning of its arguments' values on one line."""


def lines_of(block: Block) -> Lines:
    """The lines of one block; of arguments, those of their values."""
    found: list[Line] = []
    every: set[str] = set()
    for text in texts_of(block):
        text = strip_escapes(text) if "\x1b" in text else text
        for line in _split(text, numbered=block.kind == "result"):
            names, words = _names(line.text)
            every.update(names)
            found.append(Line(line.text, names, words >= GROUND_WORDS, line.joined))
    grounded = frozenset(name for line in found if line.told for name in line.names)
    header = _header(block) if block.kind == "call" else ""
    return Lines(tuple(found), frozenset(every), grounded, header)


def texts_of(block: Block) -> list[str]:
    """The texts the model reads in a block: the values of arguments, else the text itself."""
    if block.kind != "call" or block.spelling == "string":
        return [block.text]
    try:
        tree = json.loads(block.text)
    except (ValueError, RecursionError):
        return [block.text]
    return list(_strings(tree))


def _strings(tree: Any) -> Iterator[str]:
    stack = [tree]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack.extend(reversed(value.values()))
        elif isinstance(value, list):
            stack.extend(reversed(value))
        elif isinstance(value, int) and not isinstance(value, bool):
            yield str(value)


def _header(block: Block) -> str:
    """``Read src/app.py 40``: the values, of long ones the beginning of their first line."""
    values = []
    for text in texts_of(block):
        line = text.strip().split("\n", 1)[0].strip()
        values.append(line if len(line) <= HEADER_CHARS else _begun(line))
        if sum(map(len, values)) > HEADER_CHARS:
            break
    return " ".join([block.tool or "tool", *filter(None, values)])


def _begun(line: str) -> str:
    return line[: at_or_before(line, HEADER_CHARS)].rstrip() + " …"


def _split(text: str, *, numbered: bool) -> Iterator[Line]:
    for row in text.split("\n"):
        if numbered and (found := _NUMBERED.match(row)):
            row = row[found.end() :]
        row = row.rstrip()
        if not row:
            continue
        if len(row) <= LONG_CHARS:
            yield Line(row, ())
            continue
        for number, piece in enumerate(pieces(row)):
            yield Line(piece, (), joined=number > 0)


def pieces(row: str) -> Iterator[str]:
    """A long line in pieces; of what begins with one of them, the same ones."""
    start = 0
    while start < len(row):
        end = start + PIECE_CHARS
        if end < len(row) and (found := _BREAK.search(row, start + PIECE_CHARS // 2, end)):
            end = found.start() + 1
        end = at_or_after(row, end)
        yield row[start:end]
        start = end


def _names(text: str) -> tuple[tuple[str, ...], int]:
    """The identifiers of a line, and how many plain words it has."""
    names: list[str] = []
    words = 0
    for token in TOKEN.findall(text):
        found = names_in(token)
        if found:
            names += [name for name, _ in found]
        elif len(token) > 1 and not token.isdigit():
            words += 1
    return tuple(names), words
