"""Articles between tags: ``<document title="…">…</document>`` and what is like it.

Knows tag names that prompts and tools use.  It is no XML parser: what it reads need not be XML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trimtab.strategies.retrieval.article import Article, Splice, number_in

_OPEN = re.compile(
    r"<(document|article|result|item|passage|chunk|source|search_result|doc|page)"
    r"(?=[\s>])([^<>]{0,600})>"
)
_INNER = re.compile(r"<(document_content|page_content|content|text|body|passage|snippet)>")
_TAG = re.compile(r"<(title|url|source|link|score)>([^<]{0,600})</\1>")
_ATTRIBUTE = re.compile(r"\b([A-Za-z_]{1,20})=\"([^\"]{0,500})\"")


def tagged_articles(text: str) -> list[Article]:
    """What stands between ``<document …>`` and its closing tag, in order."""
    return [article for found in _tags(text) if (article := _from_tag(text, *found))]


def _tags(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """(opening tag, where its closing tag begins), one after another, never within another."""
    at = 0
    closing: dict[str, int] = {}
    for opened in _OPEN.finditer(text):
        name = opened[1]
        if opened.start() < at or closing.get(name) == -1:
            continue
        end = closing[name] = text.find(f"</{name}>", opened.end())
        if end >= 0:
            yield opened, end
            at = end


def _from_tag(text: str, opened: re.Match[str], end: int) -> Article | None:
    attributes = dict(_ATTRIBUTE.findall(opened[2]))
    start, stop = opened.end(), end
    inner = _INNER.search(text, start, end)
    fields = dict(_TAG.findall(text, start, min(end, start + 4000)))
    if inner is not None:
        start = inner.end()
        closes = text.find(f"</{inner[1]}>", start, end)
        stop = end if closes < 0 else closes
    elif fields:
        start = max(m.end() for m in _TAG.finditer(text, start, min(end, start + 4000)))
    named: Sequence[dict[str, str]] = (attributes, fields)
    title = next((box["title"] for box in named if box.get("title")), "")
    url = next((box[k] for k in ("url", "source", "link") for box in named if box.get(k)), "")
    if not (title or url or attributes):
        return None
    score = number_in(attributes.get("score") or fields.get("score") or "")
    compressed = attributes.get("compressed") == "true"
    at = opened.end() - 1
    mark = None if compressed else Splice(at, at, ' compressed="true"')
    return Article(title, url, text[start:stop], start, stop, mark, str, score, compressed)
