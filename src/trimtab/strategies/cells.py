"""JSON values as cells of a table: a string without quotes where it cannot be mistaken.

Knows how a value is spelled so that it can be told again.  Does not know tables or columns.

A cell is JSON; what is not JSON is a string as it stands; an empty cell is no value at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trimtab.jsontext import dump
from trimtab.strategies.json_tree import Literal, Members

_JSON_SCALAR = re.compile(
    r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null|NaN|-?Infinity"
)
_SIMPLE_KEY = re.compile(r"[^\W\d][\w-]*")


def spelled(value: Any, names: Mapping[int, str] | None = None) -> str:
    """Compact JSON of a parsed tree: numbers as they came, all members, equal keys too.

    ``names``: what to write for single lists instead, by ``id``.  Recursive: for trees of known
    depth only.
    """
    if names and id(value) in names:
        return names[id(value)]
    if isinstance(value, Literal):
        return str(value)
    if isinstance(value, Members):
        inside = (f"{dump(key)}:{spelled(inner, names)}" for key, inner in value)
        return "{" + ",".join(inside) + "}"
    if isinstance(value, list):
        return "[" + ",".join(spelled(inner, names) for inner in value) + "]"
    return dump(value)


def bare(text: str) -> bool:
    """Whether a text can stand in a cell as it is: visible, one line, not begun like JSON."""
    if not text or text[0] in '[{"< ' or text[-1] == " ":
        return False
    return text.isprintable()


def cell(value: Any) -> str:
    """One value, nested ones as JSON: never a tab, a line break, or nothing."""
    if type(value) is str and not _JSON_SCALAR.fullmatch(value):
        return text_cell(value)
    return spelled(value)


def text_cell(text: str) -> str:
    """A string in a cell where only strings stand: ``280`` needs no quotes there."""
    return text if bare(text) else dump(text)


def listed(value: Any) -> str | None:
    """A list of strings as ``a,b,c``; None where it has to be JSON."""
    if type(value) is not list or not all(value):
        return None
    if any(type(item) is not str or "," in item for item in value):
        return None
    joined = ",".join(value)
    return joined if bare(joined) else None


def path(keys: tuple[str, ...]) -> str:
    """``author.name``; a key that is not a plain word as a JSON string."""
    return ".".join(key if _SIMPLE_KEY.fullmatch(key) else dump(key) for key in keys)
