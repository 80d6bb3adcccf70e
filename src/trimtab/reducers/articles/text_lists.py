"""Reads articles from plain text: between tags such as ``<document title="…">``, numbered passages,
``Title:`` sections, headings with a URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from trimtab.reducers.articles.article import Article, Splice, number_in

MIN_SECTIONS = 2
TITLE_CHARS, MAX_FIELDS = 200, 12
"""Text after a passage number is a title up to this many chars; if longer, it is the content."""
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
    if len(tagged) >= MIN_SECTIONS:
        return tagged
    numbered = _MAY_BEGIN.search(text, 0, _end_of_lines(text, FIRST_LINES)) is not None
    titled, headed = "Title" in text, "http" in text
    if not (numbered or titled or headed):
        return []  # most texts have no section heading
    lines = SectionLines.of(text)
    for starts in (
        numbered_sections(lines) if numbered else [],
        titled_sections(lines) if titled else [],
        headed_sections(lines) if headed else [],
    ):
        if len(starts) >= MIN_SECTIONS:
            ends = [*starts[1:], (len(lines.texts), "")]
            articles = [
                _section(text, lines, first, title, following[0])
                for (first, title), following in zip(starts, ends, strict=True)
            ]
            return [article for article in articles if article is not None]
    return []


class _Fields(NamedTuple):
    """The fields in the lines before a section's content; ``behind`` is the line after them.

    ``at``: position of the content if it begins on one of these lines.
    """

    title: str
    url: str = ""
    score: float | None = None
    compressed: bool = False
    behind: int = 0
    at: int | None = None


def _section(text: str, lines: SectionLines, first: int, title: str, stop: int) -> Article | None:
    """Read one section: its fields, then its content up to the rule before the next section."""
    end = _end_of_content(lines, stop, len(text))
    if len(title) > TITLE_CHARS:  # "[1] A passage without a title …"
        at = text.index(title, lines.starts[first])
        return Article("", "", text[at:end], at, end, Splice(at, at, f"\n{MARK}\n"), str)
    fields = _fields(lines, first, title, min(stop, first + MAX_FIELDS))
    start = _start_of_content(lines, first, fields, stop)
    where = lines.starts[first + 1] if first + 1 < len(lines.starts) else None
    if start is None or where is None or not where <= start < end:
        return None
    mark = None if fields.compressed else Splice(where, where, MARK + "\n")
    return Article(
        fields.title, fields.url, text[start:end], start, end, mark, str, fields.score,
        fields.compressed,
    )  # fmt: skip


def _fields(lines: SectionLines, first: int, title: str, stop: int) -> _Fields:
    fields = _Fields(title, behind=first)
    for number in range(first, stop):
        line = lines.texts[number]
        match = FIELD.match(line)
        name, value = (match[1].lower(), match[2]) if match else ("", "")
        if match and name in _CONTENT_FIELDS:
            return fields._replace(at=lines.starts[number] + match.start(2))
        if name in URL_FIELDS:
            fields = fields._replace(url=value)
        elif name in _SCORE_FIELDS:
            fields = fields._replace(score=number_in(value))
        elif name == "title":
            fields = fields._replace(title=value.strip(" *"))
        elif line == MARK:
            fields = fields._replace(compressed=True)
        elif not line and number + 1 < stop and is_address(lines.texts[number + 1]):
            continue  # a blank line between a heading and its address
        elif number > first and not match and not is_url_line(line):
            break
        if not fields.url and (address := URL.search(line[:600])):
            fields = fields._replace(url=address[0])
        fields = fields._replace(behind=number + 1)
    return fields


def _start_of_content(lines: SectionLines, first: int, fields: _Fields, stop: int) -> int | None:
    if fields.at is not None:
        return fields.at
    for number in range(max(first + 1, fields.behind), stop):
        if not _RULE.match(lines.texts[number]):
            return lines.starts[number]
    return None


def _end_of_content(lines: SectionLines, stop: int, total: int) -> int:
    """The end of the last line of content; blank lines and rules after it are not content."""
    number = stop
    while number and _RULE.match(lines.texts[number - 1]):
        number -= 1
    return min(total, lines.starts[number - 1] + len(lines.texts[number - 1])) if number else 0


# --- where sections begin ---

_NUMBERED = re.compile(
    r"^(?:[-=*]{2,8} )?(?:#{1,4} )?(?:\*\*)?"
    r"(?:\[(\d{1,4})\]|(?:[Dd]ocument|[Pp]assage|[Rr]esult|[Ss]ource|[Aa]rticle|[Cc]hunk|[Pp]age)"
    r" ?#?\[?(\d{1,4})\]?)(?:\*\*)?[ \t]*[:.)\-–]?[ \t]*(.*)$"
)
FIRST_LINES = 5
"""The first numbered section begins on one of these lines."""
_MAY_BEGIN = re.compile(r"^[-=*# ]*(?:\[\d|\w{4,8} ?#?\[?\d)", re.MULTILINE)
_TITLE = re.compile(r"^(?:[-*] )?(?:\*\*)?Title:?(?:\*\*)?:?[ \t]+(.{1,300})$")
_HEADING = re.compile(r"^(?:\d{1,3}\. )?#{1,4} (.{1,300})$|^\d{1,3}\. \*\*(.{1,300})\*\*[ \t]*$")
FIELD = re.compile(
    r"^[ \t]{0,4}(?:[-*] )?(?:\*\*)?([A-Z][\w -]{0,24}?):?(?:\*\*)?:[ \t]{0,8}(.{0,600})$"
)
URL = re.compile(r"https?://[^\s<>\")\]]{1,500}")
URL_FIELDS = {"url", "source", "link", "uri"}


class SectionLines(NamedTuple):
    texts: list[str]
    starts: list[int]

    @classmethod
    def of(cls, text: str) -> SectionLines:
        texts = text.split("\n")
        starts = list(accumulate((len(line) + 1 for line in texts[:-1]), initial=0))
        return cls([line.rstrip("\r") for line in texts] if "\r" in text else texts, starts)


def _end_of_lines(text: str, count: int) -> int:
    """Where so many lines of a text end."""
    end = -1
    for _ in range(count):
        end = text.find("\n", end + 1)
        if end < 0:
            return len(text)
    return end


Starts = list[tuple[int, str]]
"""(number of the line that begins a section, its title)."""


def numbered_sections(lines: SectionLines) -> Starts:
    """Lines with consecutive numbers; the first must be among the first lines."""
    starts: Starts = []
    expected = None
    for number, line in enumerate(lines.texts):
        if expected is None and number >= FIRST_LINES:
            break
        match = _NUMBERED.match(line) if line[:1] in "[#*-=DdPpRrSsAaCc" else None
        if match is None:
            continue
        index = int(match[1] or match[2])
        if index == expected or (expected is None and index in (0, 1)):
            starts.append((number, match[3].strip(" *")))
            expected = index + 1
    return starts


def titled_sections(lines: SectionLines) -> Starts:
    return [
        (number, match[1].strip(" *"))
        for number, line in enumerate(lines.texts)
        if "Title" in line[:12] and (match := _TITLE.match(line))
    ]


def headed_sections(lines: SectionLines) -> Starts:
    """Headings with an address: a link in the heading, or a line with only a link below it.

    [] if many other headings of the same kind have none: then it is a page, not a list of pages.
    """
    headings: list[tuple[int, str, str]] = []
    bare: dict[str, int] = {}
    for number, line in enumerate(lines.texts):
        match = _HEADING.match(line) if line[:1] == "#" or line[:1].isdigit() else None
        if match is None:
            continue
        kind = line.split(" ", 1)[0].strip("0123456789")
        below = [text for text in lines.texts[number + 1 : number + 4] if text.strip()][:2]
        if URL.search(line[:600]) or any(map(is_address, below)):
            headings.append((number, (match[1] or match[2]).strip(" *"), kind))
        else:
            bare[kind] = bare.get(kind, 0) + 1
    if not headings or bare.get(headings[0][2], 0) > len(headings) // 4:
        return []
    return [(number, title) for number, title, kind in headings if kind == headings[0][2]]


def is_address(line: str) -> bool:
    field = FIELD.match(line)
    if field and field[1].lower() in URL_FIELDS:
        return bool(URL.search(field[2]))
    return is_url_line(line)


def is_url_line(line: str) -> bool:
    return bool(URL.fullmatch(line.strip(" <>()[]*_")))


# --- tags; it is no XML parser, as the text need not be XML ---

_OPEN = re.compile(
    r"<(document|article|result|item|passage|chunk|source|search_result|doc|page)"
    r"(?=[\s>])([^<>]{0,600})>"
)
_INNER = re.compile(r"<(document_content|page_content|content|text|body|passage|snippet)>")
_TAG = re.compile(r"<(title|url|source|link|score)>([^<]{0,600})</\1>")
_ATTRIBUTE = re.compile(r"\b([A-Za-z_]{1,20})=\"([^\"]{0,500})\"")


def tagged_articles(text: str) -> list[Article]:
    """The articles between ``<document …>`` (or similar tags) and their closing tags, in order."""
    return [article for tag in _tags(text) if (article := _from_tag(text, *tag))]


def _tags(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """(opening tag, start of its closing tag) of each tag that is not inside another."""
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
