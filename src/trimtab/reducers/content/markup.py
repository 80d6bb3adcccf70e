"""Markdown and HTML by line: headings, tables and links before running text."""

from __future__ import annotations

import re
from collections.abc import MutableSequence, Sequence

from trimtab.reducers.content.base import Kind, LineSample, unnumbered

_HEADING = re.compile(r"(?P<marks>#{1,6}) \S|(?:={3,}|-{3,})$")
_LIST = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)]) \S")
_LINK = re.compile(r"\]\(|https?://")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_TABLE = re.compile(r"\s*\|.*\|\s*$")
_TAG = re.compile(r"\s*</?[a-zA-Z!][^<>]*>")
_PAGE = re.compile(r"(?i)\s*<(?:!doctype|html|head|body|\?xml|svg|div|rss|feed)\b")
_SHOWN = re.compile(r"(?i)<(?:title|h[1-6]|th|caption|summary|dt)\b")
_HIDDEN = re.compile(r"(?i)<(script|style|svg|noscript|template)\b")
_WORDS = re.compile(r">[^<>]*[A-Za-z]{3,}[^<>]*<|^[^<>]*[A-Za-z]{3,}")


def _is_html(sample: LineSample) -> bool:
    page = any(map(_PAGE.match, sample.first[:3]))
    return sample.share(_TAG.match) > (0.4 if page else 0.7)


def _weigh_html(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    hidden = ""
    for number, line in enumerate(lines):
        if hidden:
            weights[number] = 0.0
            hidden = "" if f"</{hidden}" in line.lower() else hidden
            continue
        if _SHOWN.search(line):
            weights[number] += 12.0
        elif "href=" in line:
            weights[number] += 1.0
        elif not _WORDS.search(line):
            weights[number] *= 0.1
        match = _HIDDEN.search(line)
        if match and f"</{match[1].lower()}" not in line.lower()[match.end() :]:
            hidden = match[1].lower()


def _is_markdown(sample: LineSample) -> bool:
    def bare(line: str) -> str:
        return unnumbered(line)

    headings = sample.share(lambda line: re.match(r"#{1,6} \S", bare(line)))
    marked = sample.share(
        lambda line: (
            _LIST.match(bare(line))
            or _LINK.search(line)
            or _FENCE.match(bare(line))
            or _TABLE.match(bare(line))
            or "**" in line
            or "`" in line
        )
    )
    return 0.01 < headings < 0.7 and marked > 0.15


def _weigh_markdown(lines: Sequence[str], weights: MutableSequence[float]) -> None:
    fenced, row = False, False
    for number, line in enumerate(lines):
        bare = unnumbered(line)
        if _FENCE.match(bare):
            fenced = not fenced
            weights[number] = 0.5
            continue
        heading = None if fenced else _HEADING.match(bare)
        if heading and heading["marks"]:
            weights[number] += 24.0 - 3 * len(heading["marks"])
        elif _TABLE.match(bare):
            weights[number] += 0.0 if row else 6.0
        elif _LINK.search(bare):
            weights[number] += 1.0
        row = bool(_TABLE.match(bare))


HTML = Kind("html", _is_html, _weigh_html, ends=False)
MARKDOWN = Kind("markdown", _is_markdown, _weigh_markdown, ends=False)
