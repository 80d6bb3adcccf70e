"""Reduces a web page to its text: it keeps headings, lists, tables and links, and removes scripts
and markup.

HTML is read in one pass and not rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

from trimtab.reducers.base import Config, Offer, smaller
from trimtab.reducers.digest import digest
from trimtab.transcript.model import Block

LOSS = 0.08
MIN_TAGS, MIN_SHARE = 12, 0.15
"""Least number of tags, and least share of characters in tags; below, it is text with some markup.
"""
_BEGINS = re.compile(
    r"(?i)\ufeff?\s{0,80}<(?:!doctype html|html|head|body|main|article|div|table)\b"
)
_TOKEN = re.compile(r"<!--|-->|<(/?)([a-zA-Z!?][\w:-]{0,40})([^<>]{0,4000})>")
_HIDDEN = frozenset(("script", "style", "svg", "noscript", "template", "iframe"))
_LINES = frozenset((
    *("p", "div", "br", "tr", "ul", "ol", "dl", "dt", "dd", "table", "section", "article", "main"),
    *("header", "footer", "nav", "aside", "form", "blockquote", "pre", "figure", "figcaption"),
    *("hr", "option", "title"),
))  # fmt: skip
_HREF = re.compile(r"\bhref\s*=\s*[\"']?((?:https?:/)?/[^\s\"'<>]{1,300})", re.I)
_ALT = re.compile(r"\balt\s*=\s*(?:\"([^\"]{1,300})\"|'([^']{1,300})')", re.I)
_BLANKS = re.compile(r"[^\S\n]+")


def html_text(block: Block, config: Config) -> Iterator[Offer]:
    """Offers: the visible text of a page, loss 0.08, then digests of that text."""
    if block.kind != "result" or not _BEGINS.match(block.text):
        return
    text = visible_text(block.text)
    if text and smaller(text, block.text, config.count):
        why = f"the text of a page: {config.count(text):,} of {config.count(block.text):,} tokens"
        yield Offer("replace", text, LOSS, "page-text", why)
        for offer in digest(replace(block, text=text), config):
            yield replace(offer, loss=round(LOSS + (1 - LOSS) * offer.loss, 3))


def visible_text(html: str) -> str:
    """The visible text, line by line; "" if there is too little markup for a page.

    >>> visible_text("<div><h1>A &amp; B</h1>" + "<p>see <a href='/x'>here</a></p>" * 12)[:24]
    '# A & B\\nsee here </x>\\nse'
    """
    out, hidden, link, at, tags, marked = list[str](), "", "", 0, 0, 0
    for match in _TOKEN.finditer(html):
        name, closing = (match[2] or "").lower(), bool(match[1])
        tags, marked = tags + 1, marked + len(match[0])
        if not hidden:
            out.append(_words(html[at : match.start()]))
        at = match.end()
        if hidden:
            over = match[0] == "-->" if hidden == "!" else closing and name == hidden
            hidden = "" if over else hidden
        elif match[0] == "<!--":
            hidden = "!"
        elif name in _HIDDEN and not closing and not match[3].endswith("/"):
            hidden = name
        elif name == "a":
            if closing and link:
                out.append(f" <{unescape(link)}>")
            href = None if closing else _HREF.search(match[3])
            link = href[1] if href else ""
        elif name:
            out.append(_markup(name, closing, match[3]))
    if tags < MIN_TAGS or marked < MIN_SHARE * len(html):
        return ""
    if not hidden:
        out.append(_words(html[at:]))
    lines = (_BLANKS.sub(" ", line).strip() for line in "".join(out).split("\n"))
    return "\n".join(line for line in lines if line.strip("-|# "))


def _markup(name: str, closing: bool, attributes: str) -> str:
    """The text that replaces a tag between the words around it."""
    if len(name) == 2 and name[0] == "h" and name[1] in "123456":
        return "\n" if closing else "\n" + "#" * int(name[1]) + " "
    if name == "li":
        return "" if closing else "\n- "
    if name in ("td", "th"):
        return " | " if closing else ""
    if name == "img" and (alt := _ALT.search(attributes)):
        return f" {unescape(alt[1] or alt[2])} "
    return "\n" if name in _LINES else ""


def _words(raw: str) -> str:
    return unescape(" ".join(raw.split("\n"))) if raw else ""
