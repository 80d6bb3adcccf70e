"""Where sections of a plain text begin: numbered passages, ``Title:`` lines, headings with a URL.

Knows lines.  Does not know what a section holds.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_NUMBERED = re.compile(
    r"^(?:[-=*]{2,8} )?(?:#{1,4} )?(?:\*\*)?"
    r"(?:\[(\d{1,4})\]|(?:[Dd]ocument|[Pp]assage|[Rr]esult|[Ss]ource|[Aa]rticle|[Cc]hunk|[Pp]age)"
    r" ?#?\[?(\d{1,4})\]?)(?:\*\*)?[ \t]*[:.)\-–]?[ \t]*(.*)$"
)
MAY_BEGIN = re.compile(r"^[-=*# ]*(?:\[\d|\w{4,8} ?#?\[?\d)", re.MULTILINE)
_TITLE = re.compile(r"^(?:[-*] )?(?:\*\*)?Title:?(?:\*\*)?:?[ \t]+(.{1,300})$")
_HEADING = re.compile(r"^(?:\d{1,3}\. )?#{1,4} (.{1,300})$|^\d{1,3}\. \*\*(.{1,300})\*\*[ \t]*$")
FIELD = re.compile(
    r"^[ \t]{0,4}(?:[-*] )?(?:\*\*)?([A-Z][\w -]{0,24}?):?(?:\*\*)?:[ \t]{0,8}(.{0,600})$"
)
URL = re.compile(r"https?://[^\s<>\")\]]{1,500}")
URL_FIELDS = {"url", "source", "link", "uri"}


class Lines(NamedTuple):
    texts: list[str]
    starts: list[int]

    @classmethod
    def of(cls, text: str) -> Lines:
        starts, at = [], 0
        texts = text.split("\n")
        for line in texts:
            starts.append(at)
            at += len(line) + 1
        return cls([line.rstrip("\r") for line in texts] if "\r" in text else texts, starts)


Starts = list[tuple[int, str]]
"""(number of the line that begins a section, its title)."""


def numbered(lines: Lines) -> Starts:
    """Lines numbered one after another; the first stands among the first five lines."""
    found: Starts = []
    expected = None
    for number, line in enumerate(lines.texts):
        match = _NUMBERED.match(line) if line[:1] in "[#*-=DdPpRrSsAaCc" else None
        if match is None or (expected is None and number > 4):
            continue
        index = int(match[1] or match[2])
        if index == expected or (expected is None and index in (0, 1)):
            found.append((number, match[3].strip(" *")))
            expected = index + 1
    return found


def titled(lines: Lines) -> Starts:
    return [
        (number, match[1].strip(" *"))
        for number, line in enumerate(lines.texts)
        if "Title" in line[:12] and (match := _TITLE.match(line))
    ]


def headed(lines: Lines) -> Starts:
    """Headings with an address: a link in them, or right below a line that is just that.

    None where other headings of the same kind lack one: then it is a page, not a list of pages.
    """
    found: list[tuple[int, str, str]] = []
    bare: dict[str, int] = {}
    for number, line in enumerate(lines.texts):
        match = _HEADING.match(line) if line[:1] == "#" or line[:1].isdigit() else None
        if match is None:
            continue
        kind = line.split(" ", 1)[0].strip("0123456789")
        below = [text for text in lines.texts[number + 1 : number + 4] if text.strip()][:2]
        if URL.search(line[:600]) or any(map(is_address, below)):
            found.append((number, (match[1] or match[2]).strip(" *"), kind))
        else:
            bare[kind] = bare.get(kind, 0) + 1
    if not found or bare.get(found[0][2], 0) > len(found) // 4:
        return []
    return [(number, title) for number, title, kind in found if kind == found[0][2]]


def is_address(line: str) -> bool:
    field = FIELD.match(line)
    if field and field[1].lower() in URL_FIELDS:
        return bool(URL.search(field[2]))
    return lone_url(line)


def lone_url(line: str) -> bool:
    return bool(URL.fullmatch(line.strip(" <>()[]*_")))
