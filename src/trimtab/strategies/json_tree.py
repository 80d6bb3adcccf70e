"""JSON as a tree that keeps what plain objects lose: spellings of numbers, and equal keys.

Knows JSON values.  Does not know whose they are, nor how they are made shorter.
"""

from __future__ import annotations

import json
from typing import Any

MAX_DEPTH = 64
"""What is nested deeper is replaced by a count: where Python's own parser gives up depends on the
stack of the moment."""


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
