"""Decides whether a later text contains an earlier one: by content, never by the number of lines.

A stub ("unchanged since last read"), an error or a truncated text contains little of it and does
not replace it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trimtab.reducers.content.base import unnumbered

HELD_SHARE = 0.8
"""A later text replaces an earlier one only if it has at least this share of it (by chars of
distinct lines); the lines that it lacks are kept in the marker."""

POINTER_CHARS = 2_000
"""A longer text is not taken for a mere pointer to another text, because a file may quote such
words."""

_BREAK = re.compile(r"\n|\\n")
_POINTER = re.compile(
    r"unchanged|(?:has|have|was|were) not (?:been )?(?:changed|modified)|no changes? since"
    r"|still current|refer to|(?:see|shown|given|provided|returned|as) (?:the )?(?:above|earlier"
    r"|before|previous(?:ly)?)|same as|already (?:read|seen|shown|provided|in (?:the )?context)"
    r"|(?:output|content|result|text|file)s? (?:was |were |is |are )?(?:\w+ )?(?:removed|omitted"
    r"|cleared|elided|left out|truncated|hidden|cached|superseded)"
    r"|\[(?:old tool result|omitted|cleared|removed|truncated|superseded|duplicate)",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"\s*(?:<?\w*error|exception|traceback|fail(?:ed|ure)|cannot|could not|unable)\b", re.IGNORECASE
)


def content(texts: Iterable[str]) -> Mapping[str, str]:
    """Distinct lines, without line numbers of read tools and outer spaces → the original lines.

    Lines of a JSON string count as lines too.
    """
    line_by_text: dict[str, str] = {}
    for text in texts:
        for line in _BREAK.split(text):
            if bare := unnumbered(line).strip():
                line_by_text.setdefault(bare, line)
    return line_by_text


def lacking(older: Mapping[str, str], newer: Mapping[str, str]) -> tuple[str, ...] | None:
    """The original lines of ``older`` that ``newer`` lacks; None if they are too many for ``newer``
    to replace it, or if ``older`` is empty."""
    only = [line for line in older if line not in newer]
    if not older or sum(map(len, only)) > (1.0 - HELD_SHARE) * sum(map(len, older)):
        return None
    return tuple(older[line] for line in only)


def says_nothing_itself(texts: Iterable[str]) -> bool:
    """Whether a result is empty, an error, or only points to content elsewhere.

    >>> says_nothing_itself(["File unchanged since last read. Refer to that result."])
    True
    """
    text = "\n".join(texts)
    if not text.strip():
        return True
    if len(text) > POINTER_CHARS:
        return False
    return bool(_FAILS.match(text) or _POINTER.search(text))
