"""Long strings within call arguments replaced by notes: keys, types and short values stay.

Knows JSON values and which keys name files.  Does not know why the values may go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from trimtab.jsontext import dump
from trimtab.model import Block
from trimtab.strategies.json_tree import MAX_DEPTH, Literal, Members, longest_string, parse

LONG_CHARS = 60
"""What is shorter stays: it would save next to nothing, and names what the call was about."""
_NAMES = ("path", "file", "url", "uri", "name", "id")

Note = Callable[[int], str]
"""From the number of characters to what is shown instead of them."""


def emptied(block: Block, note: Note) -> str | None:
    """The input of a call with notes for its long strings; None if it has none.

    The text of a JSON object stays one; of a tool that takes free text a note is left.
    """
    if block.spelling == "string":
        return note(len(block.text)) if len(block.text) > LONG_CHARS else None
    try:
        tree = parse(block.text)
        if not isinstance(tree, Members) or longest_string(tree) <= LONG_CHARS:
            return None
        return "".join(_pieces(tree, note, "", 0))
    except ValueError:
        return None


def _pieces(value: Any, note: Note, key: str, depth: int) -> Iterator[str]:
    """Compact JSON in pieces; ``ValueError`` where it is nested too deep to be worth it."""
    if depth > MAX_DEPTH:
        raise ValueError("nested too deep")
    if isinstance(value, Literal):
        yield str(value)
    elif isinstance(value, str):
        named = key.lower().endswith(_NAMES) and "\n" not in value
        yield dump(value if len(value) <= LONG_CHARS or named else note(len(value)))
    elif isinstance(value, Members):
        sign = "{"
        for name, inner in value:
            yield f"{sign}{dump(name)}:"
            yield from _pieces(inner, note, name, depth + 1)
            sign = ","
        yield "{}" if sign == "{" else "}"
    elif isinstance(value, list):
        sign = "["
        for inner in value:
            yield sign
            yield from _pieces(inner, note, key, depth + 1)
            sign = ","
        yield "[]" if sign == "[" else "]"
    else:
        yield dump(value)
