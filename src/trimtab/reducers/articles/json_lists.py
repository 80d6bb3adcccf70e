"""Reads articles from JSON: objects with a content, in lists under known keys, near the top."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.errors import InvalidRequest
from trimtab.jsontext.parsing import ValueSpan, dump, layout
from trimtab.jsontext.paths import Path
from trimtab.reducers.articles.article import Article, Splice

DEEPEST = 6
"""Levels of nested objects that are searched for a list."""


def json_articles(text: str, list_keys: Sequence[str]) -> list[Article]:
    """The articles of a JSON text, in order; [] if it is not JSON or has no such list.

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
    articles: list[Article] = []
    at = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            try:
                tree = json.loads(line)
            except (ValueError, RecursionError):
                return []
            if isinstance(tree, dict) and (holder := article_fields(tree)):
                span = layout(line, _wanted([holder.places()]))
                articles.append(_article(line, tree, holder, span, at))
        at += len(line)
    return articles


def _articles(text: str, tree: Any, keys: Sequence[str], offset: int) -> Iterator[Article]:
    held = [
        (path, item, holder)
        for path, items in _lists(tree, frozenset(keys))
        for number, item in enumerate(items)
        if isinstance(item, dict) and (holder := article_fields(item, (*path, number)))
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
    text: str, item: Mapping[str, Any], holder: ArticleFields, span: ValueSpan, offset: int
) -> Article:
    """Make an Article; ``span``: position of the item in ``text``, which begins at ``offset``."""
    for key in holder.inner:
        span = span.inner[key]
    fields, at = holder.fields, span.inner[holder.key]
    mark, compressed = compressed_splice(text, fields, span)
    content = fields[holder.key]
    return Article(
        holder.title, holder.url, content, at.start + offset, at.end + offset,
        Splice(mark.start + offset, mark.end + offset, mark.text) if mark else None, dump,
        search_score(item, fields), compressed,
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


def _at(span: ValueSpan, path: Path) -> ValueSpan:
    for key in path:
        span = span.inner[key]
    return span


# --- an article's fields, under the keys that search tools use ---

CONTENT_KEYS = (
    "content", "text", "page_content", "pageContent", "body", "passage", "raw_content", "snippet",
    "chunk", "markdown", "document_content", "extract", "abstract", "summary", "description",
)  # fmt: skip
TITLE_KEYS = ("title", "name", "heading", "headline", "file", "filename")
URL_KEYS = ("url", "link", "source", "uri", "href", "source_url", "id", "_id", "path")
SCORE_KEYS = ("score", "_score", "relevance_score", "relevance", "similarity", "rerank_score")
DISTANCE_KEYS = ("distance", "rank")
METADATA, COMPRESSED = "metadata", "compressed"


@dataclass(frozen=True)
class ArticleFields:
    """The location of an article's fields: in the item itself or in one object inside it."""

    item: Path
    inner: Path
    key: str
    fields: Mapping[str, Any]
    title: str
    url: str

    def places(self) -> list[Path]:
        """The paths whose positions in the text are needed."""
        base = (*self.item, *self.inner)
        return [(*base, self.key), (*base, METADATA, COMPRESSED), (*base, COMPRESSED)]


def article_fields(item: Mapping[str, Any], path: Path = ()) -> ArticleFields | None:
    """The article's fields in the ``item`` at ``path``; None if it is not an article."""
    for inner, fields in (((), item), *(((k,), v) for k, v in item.items() if type(v) is dict)):
        texts = {key: fields[key] for key in CONTENT_KEYS if isinstance(fields.get(key), str)}
        if texts and inner != (METADATA,):
            key = max(texts, key=lambda key: len(texts[key]))
            title, url = _named(item, fields, TITLE_KEYS), _named(item, fields, URL_KEYS)
            if title or url:
                return ArticleFields(path, inner, key, fields, title, url)
    return None


def _named(item: Mapping[str, Any], fields: Mapping[str, Any], keys: Sequence[str]) -> str:
    more = fields.get(METADATA)
    boxes = [fields, more if isinstance(more, dict) else {}, item]
    for key in keys:
        for box in boxes:
            if isinstance(box.get(key), str) and box[key]:
                return str(box[key])
    return ""


def search_score(item: Mapping[str, Any], fields: Mapping[str, Any]) -> float | None:
    """The search tool's own score, higher is better; None if it gives none."""
    more = fields.get(METADATA)
    for box in (fields, item, more if isinstance(more, dict) else {}):
        for keys, sign in ((SCORE_KEYS, 1), (DISTANCE_KEYS, -1)):
            for key in keys:
                number = box.get(key)
                if isinstance(number, (int, float)) and not isinstance(number, bool):
                    return sign * float(number) if abs(number) < 1e15 else None
    return None


# --- ``"compressed":true`` in an article's metadata or beside it ---


def compressed_splice(
    text: str, fields: Mapping[str, Any], span: ValueSpan
) -> tuple[Splice | None, bool]:
    """The splice that adds ``"compressed":true`` to the metadata (beside it if that is no object),
    and whether it is there already."""
    metadata = fields.get(METADATA, {})
    if isinstance(metadata, dict):
        if METADATA in span.inner:
            return _flag(span.inner[METADATA], f'"{COMPRESSED}":true', metadata)
        flag, _ = _flag(span, f'"{METADATA}":{{"{COMPRESSED}":true}}', {})
        return flag, False
    return _flag(span, f'"{COMPRESSED}":true', fields)


def _flag(span: ValueSpan, member: str, fields: Mapping[str, Any]) -> tuple[Splice | None, bool]:
    if COMPRESSED in fields and COMPRESSED in span.inner:
        if fields[COMPRESSED] is True:
            return None, True
        value = span.inner[COMPRESSED]
        return Splice(value.start, value.end, "true"), False
    if span.ends:
        return Splice(span.ends[-1], span.ends[-1], f",{member}"), False
    return Splice(span.start + 1, span.start + 1, member), False
