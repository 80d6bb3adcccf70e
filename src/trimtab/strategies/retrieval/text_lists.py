"""Articles in plain text: numbered passages, ``Title:`` sections, headings with a URL.

Knows what a section holds and where its content starts; texts in tags it hands on.  Does not
know JSON.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from trimtab.strategies.retrieval.article import Article, Splice, number_in
from trimtab.strategies.retrieval.sections import (
    FIELD,
    MAY_BEGIN,
    URL,
    URL_FIELDS,
    Lines,
    headed,
    is_address,
    lone_url,
    numbered,
    titled,
)
from trimtab.strategies.retrieval.tag_lists import tagged_articles

LEAST_SECTIONS = 2
TITLE_CHARS, MOST_FIELDS = 200, 12
"""What stands behind a number is a title up to here, and the content itself if it is longer."""
MARK = "Compressed: true"
_CONTENT_FIELDS = {
    "content",
    "text",
    "snippet",
    "body",
    "passage",
    "excerpt",
    "summary",
    "abstract",
}
_SCORE_FIELDS = {"score", "relevance", "similarity"}
_RULE = re.compile(r"^[ \t]*(?:[-=*_]{3,100})?[ \t]*$")


def text_articles(text: str) -> list[Article]:
    """The articles of a plain text, in order; none unless two or more sections look alike."""
    tagged = tagged_articles(text) if "</" in text else []
    if len(tagged) >= LEAST_SECTIONS:
        return tagged
    if not (MAY_BEGIN.search(text) or "Title" in text or "http" in text):
        return []  # most texts: nothing in them begins a section
    lines = Lines.of(text)
    for starts in (numbered(lines), titled(lines), headed(lines)):
        if len(starts) >= LEAST_SECTIONS:
            ends = [*starts[1:], (len(lines.texts), "")]
            found = [
                _section(text, lines, first, title, following[0])
                for (first, title), following in zip(starts, ends, strict=True)
            ]
            return [article for article in found if article is not None]
    return []


class _Fields(NamedTuple):
    """What the lines before a section's content say, and the line behind them.

    ``at``: where the content begins, if it begins on one of these lines.
    """

    title: str
    url: str = ""
    score: float | None = None
    compressed: bool = False
    behind: int = 0
    at: int | None = None


def _section(text: str, lines: Lines, first: int, title: str, stop: int) -> Article | None:
    """One section: its fields, then its content up to the rule before the next section."""
    end = _end_of_content(lines, stop, len(text))
    if len(title) > TITLE_CHARS:  # "[1] A passage without a title …"
        at = text.index(title, lines.starts[first])
        return Article("", "", text[at:end], at, end, Splice(at, at, f"\n{MARK}\n"), str)
    fields = _fields(lines, first, title, min(stop, first + MOST_FIELDS))
    start = _start_of_content(lines, first, fields, stop)
    where = lines.starts[first + 1] if first + 1 < len(lines.starts) else None
    if start is None or where is None or not where <= start < end:
        return None
    mark = None if fields.compressed else Splice(where, where, MARK + "\n")
    return Article(
        fields.title, fields.url, text[start:end], start, end, mark, str, fields.score,
        fields.compressed,
    )  # fmt: skip


def _fields(lines: Lines, first: int, title: str, stop: int) -> _Fields:
    found = _Fields(title, behind=first)
    for number in range(first, stop):
        line = lines.texts[number]
        match = FIELD.match(line)
        name, value = (match[1].lower(), match[2]) if match else ("", "")
        if match and name in _CONTENT_FIELDS:
            return found._replace(at=lines.starts[number] + match.start(2))
        if name in URL_FIELDS:
            found = found._replace(url=value)
        elif name in _SCORE_FIELDS:
            found = found._replace(score=number_in(value))
        elif name == "title":
            found = found._replace(title=value.strip(" *"))
        elif line == MARK:
            found = found._replace(compressed=True)
        elif not line and number + 1 < stop and is_address(lines.texts[number + 1]):
            continue  # a blank line between a heading and its address
        elif number > first and not match and not lone_url(line):
            break
        if not found.url and (address := URL.search(line[:600])):
            found = found._replace(url=address[0])
        found = found._replace(behind=number + 1)
    return found


def _start_of_content(lines: Lines, first: int, fields: _Fields, stop: int) -> int | None:
    if fields.at is not None:
        return fields.at
    for number in range(max(first + 1, fields.behind), stop):
        if not _RULE.match(lines.texts[number]):
            return lines.starts[number]
    return None


def _end_of_content(lines: Lines, stop: int, total: int) -> int:
    """Where the last line of content ends: blank lines and rules behind it are not content."""
    number = stop
    while number and _RULE.match(lines.texts[number - 1]):
        number -= 1
    return min(total, lines.starts[number - 1] + len(lines.texts[number - 1])) if number else 0
