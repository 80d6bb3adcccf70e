"""A JSON tree written in a shape: so many characters a string, items an array, members an object.

Knows trees and shapes.  Does not know which shape fits, nor whose the values are.  Numbers keep
their spelling and objects their duplicate keys; strings that stay whole are spelled anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trimtab.jsontext import dump
from trimtab.strategies import boundaries
from trimtab.strategies.json_tree import MAX_DEPTH, Literal, Members

CUT_KEY = "_cut"


@dataclass(frozen=True, slots=True)
class Shape:
    """How much may stay: characters a string, items an array, members an object (None: all).

    ``strict``: arrays take no note among items that are not strings.
    """

    chars: int
    items: int | None = None
    members: int | None = None
    strict: bool = False


def written(tree: Any, shape: Shape, most: int | None = None) -> str | None:
    """Compact JSON of the tree in that shape; None as soon as it exceeds ``most`` characters."""
    parts: list[str] = []
    used = 0
    for part in _pieces(tree, shape, 0):
        parts.append(part)
        used += len(part)
        if most is not None and used > most:
            return None
    return "".join(parts)


def _pieces(value: Any, shape: Shape, depth: int) -> Iterator[str]:
    if isinstance(value, Literal):
        fits = len(value) <= max(shape.chars, 40)
        yield str(value) if fits else dump(f"[{len(value):,} digits cut]")
    elif isinstance(value, str):
        yield dump(shortened(value, shape.chars))
    elif isinstance(value, Members):
        yield from _object(value, shape, depth + 1)
    elif isinstance(value, list):
        yield from _array(value, shape, depth + 1)
    else:
        yield "null" if value is None else "true" if value else "false"


def _array(items: list[Any], shape: Shape, depth: int) -> Iterator[str]:
    kept = _kept(len(items), shape.items, depth)
    noted = kept < len(items) and (
        not shape.strict or depth > MAX_DEPTH or type(items[0]) is str  # a Literal is not
    )
    if noted and kept:
        kept -= 1  # the note counts as an item, so that cutting again changes nothing
    comma = "["
    for item in items[:kept]:
        yield comma
        yield from _pieces(item, shape, depth)
        comma = ","
    if noted:
        yield comma + dump(f"[{len(items) - kept:,} more items cut]")
    yield "[]" if comma == "[" and not noted else "]"


def _object(members: Members, shape: Shape, depth: int) -> Iterator[str]:
    kept = _kept(len(members), shape.members, depth)
    noted = kept < len(members)
    if noted and kept:
        kept -= 1
    comma = "{"
    for key, value in members[:kept]:
        yield f"{comma}{dump(shortened(key, max(80, shape.chars)))}:"
        yield from _pieces(value, shape, depth)
        comma = ","
    if noted:
        yield f'{comma}"{CUT_KEY}":"[{len(members) - kept:,} more members cut]"'
    yield "{}" if comma == "{" and not noted else "}"


def _kept(size: int, most: int | None, depth: int) -> int:
    return 0 if depth > MAX_DEPTH else size if most is None else min(size, most)


def shortened(text: str, chars: int) -> str:
    """A string of at most ``chars``: head, count, tail; under 60 the count alone, if shorter."""
    if len(text) <= chars:
        return text
    note = f"[{len(text):,} chars cut]"
    if chars < 60:
        return note if len(note) < len(text) else text
    room = chars - len(note) - 2
    head = boundaries.at_or_before(text, room * 6 // 10)
    tail = boundaries.at_or_after(text, len(text) - (room - room * 6 // 10))
    return f"{text[:head]} [{tail - head:,} chars cut] {text[tail:]}"
