"""JSON made shorter that stays JSON: long strings first, then items of arrays, then members.

Knows shapes and the room there is, in characters.  Does not know how a shape is written
(json_shape.py), nor whose the values are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from trimtab.jsontext import dump
from trimtab.strategies.json_shape import CUT_KEY, Shape, written
from trimtab.strategies.json_tree import Members, longest_string, parse

_MAY_BE_JSON = re.compile(r'[ \t\n\r]*[\[{"0-9tfn-]')


def cut_json(text: str, chars: int, note: str = "") -> str | None:
    """Valid JSON of at most ``chars`` characters, of the same type; None if ``text`` is not JSON.

    An object says so with ``"truncated":true,"originalLength":N``, an array with a last item,
    where there is room; ``note`` is added to it.  ``chars`` of 2 always suffice for these two and
    for a string; a number or constant becomes a string.
    """
    if not _MAY_BE_JSON.match(text):
        return None
    try:
        tree = parse(text)
    except ValueError:
        return None
    remark = _remark(tree, len(text), note)
    if remark and 4 * len(remark) <= chars:
        found = _largest(tree, chars - len(remark) - 1)
        if found is not None:
            return f"{found[:-1]}{',' if len(found) > 2 else ''}{remark}{found[-1]}"
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
    """What is added at the end of an object or array so that the cut can be seen."""
    if isinstance(tree, Members):
        taken = {key for key, _ in tree}
        facts: dict[str, Any] = {"truncated": True, "originalLength": size}
        if note:
            facts[CUT_KEY] = note
        return dump({key: value for key, value in facts.items() if key not in taken})[1:-1]
    more = f"; {note}" if note else ""
    return dump(f"[cut from {size:,} chars{more}]") if isinstance(tree, list) else ""


def _largest(tree: Any, most: int) -> str | None:
    """The fullest of a few hundred shapes that fits ``most`` characters; None if none does."""
    phases: tuple[tuple[int, int, Callable[[int], Shape]], ...] = (
        (min(most, longest_string(tree)), 64, lambda n: Shape(n)),
        (most // 2, 2, lambda n: Shape(64, items=n)),
        (64, 1, lambda n: Shape(24, items=n)),
        (most // 4, 1, lambda n: Shape(24, items=2, members=n)),
    )
    for top, least, shape in phases:
        size = max(top, least)
        while size > least and written(tree, shape(size), most) is None:
            size = max(least, size // 2)
        best = written(tree, shape(size), most)
        if best is None:
            continue
        low, high = size, min(2 * size, max(top, least))
        while high - low > max(1, low // 16):  # what halving left unused
            middle = (low + high) // 2
            fuller = written(tree, shape(middle), most)
            if fuller is None:
                high = middle
            else:
                low, best = middle, fuller
        return best
    return None
