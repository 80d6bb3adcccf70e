"""Identifiers, lines and the words around them: the features of a text that the metric looks for.

An identifier is a path, an id, a number of five digits or more, or a compound name
(camelCase, snake_case, dotted file name, letters mixed with digits); never a plain word.  Escape
sequences of JSON are read as the breaks they encode, so ``\\nThe`` is never an identifier, however
often the text was encoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from trimtab.transcript.identifiers import TOKEN, names_in

LINE_CHARS, LINE_WORDS = 15, 3
"""The least chars and words of a line that counts."""
NEAR_CHARS = 50
"""Words on the same line within this distance ground an identifier (g1)."""
CONTEXT_CHARS = 80
"""Chars of context across line breaks on either side of an identifier (g3)."""
CONTEXT_SHARE = 0.8
GROUND_WORDS = 2
"""The least plain words beside an identifier; a bare list of names does not count as context."""

_ESCAPED = re.compile(r'\\+(?:(?P<line>[nr])|["t/]|u[0-9a-fA-F]{4})')
_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_NUMBERED = re.compile(r"^[ \t]*\d+(?:→|\t)", re.MULTILINE)


class Span(NamedTuple):
    """An identifier and its position in the text."""

    identifier: str
    start: int
    end: int


class Context(NamedTuple):
    """The words around one occurrence: the plain ones, and all."""

    plain: frozenset[str]
    every: frozenset[str]


def plain_text(text: str) -> str:
    """``text`` with escapes undone, and without colour codes and line-number prefixes."""
    if "\\" in text:
        text = _ESCAPED.sub(lambda match: "\n" if match["line"] else " ", text)
    if "\x1b" in text:
        text = _ANSI.sub("", text)
    if "→" in text or "\t" in text:
        text = _NUMBERED.sub("", text)
    return text


def values(text: str) -> list[str]:
    """The string and number values in a JSON text, without keys; ``[text]`` if it is not JSON."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return [text]
    return [str(leaf) for leaf in _leaves(tree)]


def _leaves(tree: Any) -> Iterator[Any]:
    if isinstance(tree, dict):
        for value in tree.values():
            yield from _leaves(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _leaves(value)
    elif isinstance(tree, str) or (isinstance(tree, int) and not isinstance(tree, bool)):
        yield tree


def spans(text: str) -> Iterator[Span]:
    """Every identifier in a text from ``plain_text``, in order.

    >>> [span.identifier for span in spans("see src/app/main.go:12 and fooBar(self.max_len)")]
    ['src/app/main.go', 'fooBar', 'max_len']
    """
    for match in TOKEN.finditer(text):
        for identifier, offset in names_in(match[0]):
            start = match.start() + offset
            yield Span(identifier, start, start + len(identifier))


def lines(text: str) -> Iterator[str]:
    """The lines long enough to count, without blanks at both ends."""
    for line in text.splitlines():
        line = line.strip()
        if len(line) >= LINE_CHARS and len(line.split()) >= LINE_WORDS:
            yield line


def near(text: str, span: Span) -> Context:
    """The words on the same line, at most NEAR_CHARS away."""
    low = max(text.rfind("\n", 0, span.start) + 1, span.start - NEAR_CHARS)
    end = text.find("\n", span.end)
    high = min(len(text) if end < 0 else end, span.end + NEAR_CHARS)
    return _words(text, span, low, high)


def around(text: str, span: Span) -> Context:
    """The words at most CONTEXT_CHARS away, across line breaks."""
    low, high = max(0, span.start - CONTEXT_CHARS), min(len(text), span.end + CONTEXT_CHARS)
    return _words(text, span, low, high)


def _words(text: str, span: Span, low: int, high: int) -> Context:
    """Whole words between ``low`` and ``high``, without the identifier itself."""
    plain, every = set(), set()
    for match in TOKEN.finditer(text, low, high):
        start, end = match.span()
        if start < span.end and end > span.start:
            continue
        if (start == low and low and _joins(text[low - 1], text[low])) or (
            end == high and high < len(text) and _joins(text[high - 1], text[high])
        ):
            continue  # cut by the border
        token = match[0]
        if len(token) < 2 or not any(char.isalpha() for char in token):
            continue
        every.add(token)
        if not names_in(token):
            plain.add(token)
    return Context(frozenset(plain), frozenset(every))


def _joins(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one token."""
    return bool(TOKEN.fullmatch(left + "x") and TOKEN.fullmatch("x" + right + "x"))


def grounds(original: Context, now: Context) -> bool:
    """g1: at least two and at least half of the plain words are still beside the identifier."""
    shared = len(original.plain & now.plain)
    return shared >= GROUND_WORDS and 2 * shared >= len(original.plain)


def surrounds(original: Context, now: Context) -> bool:
    """g3: at least two plain words and 80 % of all words are still around the identifier."""
    if len(original.plain & now.plain) < GROUND_WORDS:
        return False
    return len(original.every & now.every) >= CONTEXT_SHARE * len(original.every)


def can_ground(context: Context) -> bool:
    """Whether there are enough plain words to compare."""
    return len(context.plain) >= GROUND_WORDS
