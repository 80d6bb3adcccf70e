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

CONTENT_KEYS = (
    "content", "text", "page_content", "pageContent", "body", "passage", "raw_content", "snippet",
    "chunk", "markdown", "document_content", "extract", "abstract", "summary", "description",
)  # fmt: skip
TITLE_KEYS = ("title", "name", "heading", "headline", "file", "filename")
URL_KEYS = ("url", "link", "source", "uri", "href", "source_url", "id", "_id", "path")
SCORE_KEYS = ("score", "_score", "relevance_score", "relevance", "similarity", "rerank_score")
DISTANCE_KEYS = ("distance", "rank")
METADATA, COMPRESSED = "metadata", "compressed"
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
            if isinstance(tree, dict) and (holder := _holder(tree)):
                spot = layout(line, _wanted([holder.places()]))
                found.append(_article(line, tree, holder, spot, at))
        at += len(line)
    return found


def _articles(text: str, tree: Any, keys: Sequence[str], offset: int) -> Iterator[Article]:
    held = [
        (path, item, holder)
        for path, items in _lists(tree, frozenset(keys))
        for number, item in enumerate(items)
        if isinstance(item, dict) and (holder := _holder(item, (*path, number)))
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


@dataclass(frozen=True)
class _Holder:
    """Where an article's fields stand: in the item itself or in one object within it."""

    item: Path
    inner: Path
    key: str
    fields: Mapping[str, Any]
    title: str
    url: str

    def places(self) -> list[Path]:
        """What has to be found in the text."""
        base = (*self.item, *self.inner)
        return [(*base, self.key), (*base, METADATA, COMPRESSED), (*base, COMPRESSED)]


def _holder(item: Mapping[str, Any], path: Path = ()) -> _Holder | None:
    for inner, fields in (((), item), *(((k,), v) for k, v in item.items() if type(v) is dict)):
        texts = {key: fields[key] for key in CONTENT_KEYS if isinstance(fields.get(key), str)}
        if texts and inner != (METADATA,):
            key = max(texts, key=lambda key: len(texts[key]))
            title, url = _named(item, fields, TITLE_KEYS), _named(item, fields, URL_KEYS)
            if title or url:
                return _Holder(path, inner, key, fields, title, url)
    return None


def _named(item: Mapping[str, Any], fields: Mapping[str, Any], keys: Sequence[str]) -> str:
    more = fields.get(METADATA)
    boxes = [fields, more if isinstance(more, dict) else {}, item]
    for key in keys:
        for box in boxes:
            if isinstance(box.get(key), str) and box[key]:
                return str(box[key])
    return ""


def _score(item: Mapping[str, Any], fields: Mapping[str, Any]) -> float | None:
    more = fields.get(METADATA)
    for box in (fields, item, more if isinstance(more, dict) else {}):
        for keys, sign in ((SCORE_KEYS, 1), (DISTANCE_KEYS, -1)):
            for key in keys:
                number = box.get(key)
                if isinstance(number, (int, float)) and not isinstance(number, bool):
                    return sign * float(number) if abs(number) < 1e15 else None
    return None


def _article(
    text: str, item: Mapping[str, Any], holder: _Holder, spot: Spot, offset: int
) -> Article:
    """``spot``: where the item stands in ``text``, which begins at ``offset``."""
    for key in holder.inner:
        spot = spot.inner[key]
    fields, at = holder.fields, spot.inner[holder.key]
    mark, compressed = _mark(text, fields, spot)
    content = fields[holder.key]
    return Article(
        holder.title, holder.url, content, at.start + offset, at.end + offset,
        Splice(mark.start + offset, mark.end + offset, mark.text) if mark else None, dump,
        _score(item, fields), compressed,
    )  # fmt: skip


def _mark(text: str, fields: Mapping[str, Any], spot: Spot) -> tuple[Splice | None, bool]:
    """``"compressed":true`` among the metadata; beside it where that is no object."""
    metadata = fields.get(METADATA, {})
    if isinstance(metadata, dict):
        if METADATA in spot.inner:
            return _flag(spot.inner[METADATA], f'"{COMPRESSED}":true', metadata)
        flag, _ = _flag(spot, f'"{METADATA}":{{"{COMPRESSED}":true}}', {})
        return flag, False
    return _flag(spot, f'"{COMPRESSED}":true', fields)


def _flag(spot: Spot, member: str, fields: Mapping[str, Any]) -> tuple[Splice | None, bool]:
    if COMPRESSED in fields and COMPRESSED in spot.inner:
        if fields[COMPRESSED] is True:
            return None, True
        value = spot.inner[COMPRESSED]
        return Splice(value.start, value.end, "true"), False
    if spot.ends:
        return Splice(spot.ends[-1], spot.ends[-1], f",{member}"), False
    return Splice(spot.start + 1, spot.start + 1, member), False


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
