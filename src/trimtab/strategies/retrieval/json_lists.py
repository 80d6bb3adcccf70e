"""Articles in JSON: objects with a content, in lists under known keys, at any place near the top.

Knows the keys that search tools use.  Does not know texts that are not JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.errors import InvalidRequest
from trimtab.jsontext import Spot, dump, layout
from trimtab.model import Path
from trimtab.strategies.retrieval.article import Article, Splice
from trimtab.strategies.retrieval.holder import Holder, holder_of, score
from trimtab.strategies.retrieval.marks import mark_of

DEEPEST = 6
"""Objects within objects that are searched for a list."""


def json_articles(text: str, list_keys: Sequence[str]) -> list[Article]:
    """The articles of a JSON text, in order; none where it is not JSON or has no such list.

    JSON lines count as a list.  An article has a content, and a title, URL or id.
    """
    start = text[:64].lstrip()[:1]
    if start not in ("{", "["):
        return []
    try:
        return list(_articles(text, json.loads(text), list_keys, 0))
    except InvalidRequest:
        return []
    except (ValueError, RecursionError):
        return _of_lines(text) if start == "{" and "\n" in text.strip() else []


def _of_lines(text: str) -> list[Article]:
    found: list[Article] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            try:
                tree = json.loads(line)
            except (ValueError, RecursionError):
                return []
            if isinstance(tree, dict) and (holder := holder_of(tree)):
                spot = layout(line, _wanted([holder.places()]))
                found.append(_article(line, tree, holder, spot, at))
        at += len(line)
    return found


def _articles(text: str, tree: Any, keys: Sequence[str], offset: int) -> Iterator[Article]:
    held = [
        (path, item, holder)
        for path, items in _lists(tree, frozenset(keys))
        for number, item in enumerate(items)
        if isinstance(item, dict) and (holder := holder_of(item, (*path, number)))
    ]
    if not held:
        return
    top = layout(text, _wanted([holder.places() for _, _, holder in held]))
    for _, item, holder in held:
        yield _article(text, item, holder, _at(top, holder.item), offset)


def _lists(tree: Any, keys: frozenset[str]) -> Iterator[tuple[Path, list[Any]]]:
    """Lists that may hold articles, outermost first."""
    if isinstance(tree, list):
        yield (), tree
        return
    level: list[tuple[Path, dict[str, Any]]] = [((), tree)] if isinstance(tree, dict) else []
    for _ in range(DEEPEST):
        below: list[tuple[Path, dict[str, Any]]] = []
        for path, box in level:
            for key, value in box.items():
                if isinstance(value, list) and key in keys:
                    yield (*path, key), value
                elif isinstance(value, dict):
                    below.append(((*path, key), value))
        level = below


def _article(
    text: str, item: Mapping[str, Any], holder: Holder, spot: Spot, offset: int
) -> Article:
    """``spot``: where the item stands in ``text``, which begins at ``offset``."""
    for key in holder.inner:
        spot = spot.inner[key]
    fields, at = holder.fields, spot.inner[holder.key]
    mark, compressed = mark_of(text, fields, spot)
    content = fields[holder.key]
    return Article(
        holder.title, holder.url, content, at.start + offset, at.end + offset,
        Splice(mark.start + offset, mark.end + offset, mark.text) if mark else None, dump,
        score(item, fields), compressed,
    )  # fmt: skip


@dataclass
class _Want:
    """A tree of wanted places, for ``layout``."""

    opens: bool = False
    below: dict[str | int, _Want] = field(default_factory=dict)


def _wanted(places: Sequence[Sequence[Path]]) -> _Want:
    top = _Want()
    for path in (path for paths in places for path in paths):
        node = top
        for key in path:
            node.opens = True
            node = node.below.setdefault(key, _Want())
    return top


def _at(spot: Spot, path: Path) -> Spot:
    for key in path:
        spot = spot.inner[key]
    return spot
