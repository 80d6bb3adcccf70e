"""Nested JSON with less in it: ids, paths, numbers and errors stay, prose and long lists go.

Knows parsed JSON.  Does not know whose it is, and chooses nothing: each shape is one text.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, NamedTuple

from trimtab.strategies.blobs import shortened
from trimtab.strategies.fewer_rows import by_rank
from trimtab.strategies.json_shape import CUT_KEY
from trimtab.strategies.json_shape import shortened as cut_string
from trimtab.strategies.json_tree import Literal, Members

LONGEST_ID = 200
"""Characters up to which a string without a blank counts as an id, a path or an address."""
_ERROR = re.compile(r"error|fail|exception|fatal|denied|refused|invalid|warn", re.IGNORECASE)
_SAMPLE = 2_000


class Detail(NamedTuple):
    """Characters of a string (errors get four times), items of a list, members of an object."""

    chars: int
    items: int = 1 << 60
    members: int = 1 << 60


ALL = Detail(1 << 60)
"""Everything but encoded and minified runs."""
DETAILS = (
    Detail(1_000, 200, 400), Detail(500, 60, 200), Detail(250, 30, 120), Detail(125, 12, 60),
    Detail(80, 6, 30), Detail(60, 3, 15), Detail(24, 2, 8),
)  # fmt: skip
"""From much to little."""


def digest(tree: Any, detail: Detail, whole: frozenset[int] = frozenset()) -> Any:
    """The parsed tree with no more than this; counts of ours are strings.

    ``whole``: lists, by ``id``, that keep all their items.
    """
    if isinstance(tree, Literal):
        return tree if len(tree) <= LONGEST_ID else f"[{len(tree):,} digits cut]"
    if isinstance(tree, str):
        return _string(tree, detail)
    if isinstance(tree, Members):
        return _object(tree, detail, whole)
    return _list(tree, detail, whole) if isinstance(tree, list) else tree


def _string(text: str, detail: Detail) -> str:
    text = shortened(text)
    if len(text) <= detail.chars:
        return text
    if len(text) <= LONGEST_ID and not any(map(str.isspace, text)):
        return text
    return cut_string(text, detail.chars * 4 if _ERROR.search(text[:_SAMPLE]) else detail.chars)


def _list(items: list[Any], detail: Detail, whole: frozenset[int]) -> list[Any]:
    """The ends, those that speak of an error, an even spread; a count for each gap."""
    if len(items) <= detail.items or id(items) in whole:
        return [digest(item, detail, whole) for item in items]
    failed = {number for number, item in enumerate(items) if _speaks(item)}
    order = islice(by_rank(len(items), failed, set()), detail.items)
    found: list[Any] = []
    last = -1
    for number in sorted(number for _, _, number in order):
        if number > last + 1:
            found.append(f"[{number - last - 1:,} items left out]")
        found.append(digest(items[number], detail, whole))
        last = number
    return found


def _object(members: Members, detail: Detail, whole: frozenset[int]) -> Members:
    """The first members and those that speak of an error, in their order."""
    most = detail.members
    kept = [
        (key, digest(value, detail, whole))
        for number, (key, value) in enumerate(members)
        if number < most or (number < 5 * most and (_ERROR.search(key) or _speaks(value)))
    ]
    if len(kept) < len(members):
        kept.append((CUT_KEY, f"[{len(members) - len(kept):,} members left out]"))
    return Members(kept)


def _speaks(value: Any) -> bool:
    """Whether a string, or one that an object holds, speaks of an error."""
    if isinstance(value, Members):
        return any(
            _ERROR.search(key) and inner not in (None, False, "", [], "0")
            if type(inner) is not str
            else _ERROR.search(inner[:_SAMPLE]) or (inner and _ERROR.search(key))
            for key, inner in value[:40]
        )
    return type(value) is str and bool(_ERROR.search(value[:_SAMPLE]))
