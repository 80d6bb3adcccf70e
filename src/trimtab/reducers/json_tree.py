"""A JSON tree that preserves duplicate keys and the spelling of numbers; writing it within limits
(characters per string, items per array, members per object); and cutting JSON to a number of
characters so that it stays valid.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from trimtab.jsontext.parsing import dump
from trimtab.reducers import text_boundaries

MAX_DEPTH = 64
"""Deeper containers are replaced by a count; a fixed depth, because the depth at which Python's own
parser gives up depends on the current stack."""


class Literal(str):
    """A number (or NaN) as it was spelled."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """The members of an object in order, duplicate keys included."""

    __slots__ = ()


def parse(text: str) -> Any:
    """A tree of str, Literal, bool, None, list and Members; ``ValueError`` if it is not JSON."""
    try:
        return json.loads(
            text,
            object_pairs_hook=Members,
            parse_int=Literal,
            parse_float=Literal,
            parse_constant=Literal,
        )
    except RecursionError:
        raise ValueError("nested too deep") from None


def longest_string(tree: Any) -> int:
    """Characters of the longest string value (or number) anywhere in the tree."""
    longest, level = 0, [tree]
    while level:
        below = []
        for value in level:
            if isinstance(value, str):
                longest = max(longest, len(value))
            elif isinstance(value, Members):
                below += [member for _, member in value]
            elif isinstance(value, list):
                below += value
        level = below
    return longest


CUT_KEY = "_cut"


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Most characters per string, items per array, members per object (None: all).

    ``strict``: arrays get no note if their items are not strings.
    """

    chars: int
    items: int | None = None
    members: int | None = None
    strict: bool = False


def write_limited(tree: Any, shape: JsonLimits, most: int | None = None) -> str | None:
    """Compact JSON of the tree in that shape; None as soon as it exceeds ``most`` characters."""
    parts: list[str] = []
    used = 0
    for part in _pieces(tree, shape, 0):
        parts.append(part)
        used += len(part)
        if most is not None and used > most:
            return None
    return "".join(parts)


def _pieces(value: Any, shape: JsonLimits, depth: int) -> Iterator[str]:
    if isinstance(value, Literal):
        fits = len(value) <= max(shape.chars, 40)
        yield str(value) if fits else dump(f"[{len(value):,} digits cut]")
    elif isinstance(value, str):
        yield dump(shorten_string(value, shape.chars))
    elif isinstance(value, Members):
        yield from _object(value, shape, depth + 1)
    elif isinstance(value, list):
        yield from _array(value, shape, depth + 1)
    else:
        yield "null" if value is None else "true" if value else "false"


def _array(items: list[Any], shape: JsonLimits, depth: int) -> Iterator[str]:
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


def _object(members: Members, shape: JsonLimits, depth: int) -> Iterator[str]:
    kept = _kept(len(members), shape.members, depth)
    noted = kept < len(members)
    if noted and kept:
        kept -= 1
    comma = "{"
    for key, value in members[:kept]:
        yield f"{comma}{dump(shorten_string(key, max(80, shape.chars)))}:"
        yield from _pieces(value, shape, depth)
        comma = ","
    if noted:
        yield f'{comma}"{CUT_KEY}":"[{len(members) - kept:,} more members cut]"'
    yield "{}" if comma == "{" and not noted else "}"


def _kept(size: int, most: int | None, depth: int) -> int:
    return 0 if depth > MAX_DEPTH else size if most is None else min(size, most)


def shorten_string(text: str, chars: int) -> str:
    """A string cut to ``chars``: head, count, tail; below 60, the count alone if shorter."""
    if len(text) <= chars:
        return text
    note = f"[{len(text):,} chars cut]"
    if chars < 60:
        return note if len(note) < len(text) else text
    room = chars - len(note) - 2
    head = text_boundaries.at_or_before(text, room * 6 // 10)
    tail = text_boundaries.at_or_after(text, len(text) - (room - room * 6 // 10))
    return f"{text[:head]} [{tail - head:,} chars cut] {text[tail:]}"


# --- JSON of at most so many characters: long strings are cut first, then arrays, then objects ---

_MAY_BE_JSON = re.compile(r'[ \t\n\r]*[\[{"0-9tfn-]')


def cut_json(text: str, chars: int, note: str = "") -> str | None:
    """Valid JSON of at most ``chars`` characters, of the same type; None if ``text`` is not JSON.

    If there is room, an object states the cut with ``"truncated":true,"originalLength":N``, an
    array with a last item; ``note`` is added to it.  2 ``chars`` always suffice for objects, arrays
    and strings; a number or constant becomes a string.
    """
    if not _MAY_BE_JSON.match(text):
        return None
    try:
        tree = parse(text)
    except ValueError:
        return None
    remark = _remark(tree, len(text), note)
    if remark and 4 * len(remark) <= chars:
        largest = _largest(tree, chars - len(remark) - 1)
        if largest is not None:
            return f"{largest[:-1]}{',' if len(largest) > 2 else ''}{remark}{largest[-1]}"
    return _largest(tree, chars) or _only_a_count(tree, len(text), chars)


def _only_a_count(tree: Any, size: int, chars: int) -> str | None:
    count = f"[{size:,} chars cut]"
    if isinstance(tree, Members):
        candidates = (dump({CUT_KEY: count}), "{}")
    elif isinstance(tree, list):
        candidates = (dump([count]), "[]")
    else:
        candidates = (dump(count), '""')
    return next((text for text in candidates if len(text) <= chars), None)


def _remark(tree: Any, size: int, note: str) -> str:
    """The members or item added at the end of an object or array to state the cut."""
    if isinstance(tree, Members):
        taken = {key for key, _ in tree}
        facts: dict[str, Any] = {"truncated": True, "originalLength": size}
        if note:
            facts[CUT_KEY] = note
        return dump({key: value for key, value in facts.items() if key not in taken})[1:-1]
    more = f"; {note}" if note else ""
    return dump(f"[cut from {size:,} chars{more}]") if isinstance(tree, list) else ""


def _largest(tree: Any, most: int) -> str | None:
    """The fullest JSON, over a few hundred limits, of at most ``most`` characters, else None."""
    phases: tuple[tuple[int, int, Callable[[int], JsonLimits]], ...] = (
        (min(most, longest_string(tree)), 64, lambda n: JsonLimits(n)),
        (most // 2, 2, lambda n: JsonLimits(64, items=n)),
        (64, 1, lambda n: JsonLimits(24, items=n)),
        (most // 4, 1, lambda n: JsonLimits(24, items=2, members=n)),
    )
    for top, least, shape in phases:
        size = max(top, least)
        while size > least and write_limited(tree, shape(size), most) is None:
            size = max(least, size // 2)
        best = write_limited(tree, shape(size), most)
        if best is None:
            continue
        low, high = size, min(2 * size, max(top, least))
        while high - low > max(1, low // 16):  # use the room that halving left
            middle = (low + high) // 2
            fuller = write_limited(tree, shape(middle), most)
            if fuller is None:
                high = middle
            else:
                low, best = middle, fuller
        return best
    return None
