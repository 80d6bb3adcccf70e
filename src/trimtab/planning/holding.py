"""Whether a later text holds what an earlier one says: by content, never by the count of lines.

A stub ("unchanged since last read"), an error and a text that was cut short hold little of it, and
stand for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from trimtab.reducers.content.base import unnumbered

HELD_SHARE = 0.8
"""A later text that lacks more of an earlier one (by characters of its distinct lines) does not
stand for it; what it lacks below that stays in the marker."""

POINTER_CHARS = 2_000
"""A text that only points elsewhere is short; a file may quote such words."""

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
    """Distinct lines, without the numbers of reading tools and outer spaces → as they stand.

    Lines of a JSON string count as lines too.
    """
    line_by_text: dict[str, str] = {}
    for text in texts:
        for line in _BREAK.split(text):
            if bare := unnumbered(line).strip():
                line_by_text.setdefault(bare, line)
    return line_by_text


def lacking(older: Mapping[str, str], newer: Mapping[str, str]) -> tuple[str, ...] | None:
    """The lines of ``older`` that ``newer`` lacks, as they stand; None where that is too much of
    it for ``newer`` to stand for it, or nothing is known of ``older``."""
    only = [line for line in older if line not in newer]
    if not older or sum(map(len, only)) > (1.0 - HELD_SHARE) * sum(map(len, older)):
        return None
    return tuple(older[line] for line in only)


def says_nothing_itself(texts: Iterable[str]) -> bool:
    """Whether a result is empty, an error, or only points to something that stands elsewhere.

    >>> says_nothing_itself(["File unchanged since last read. Refer to that result."])
    True
    """
    text = "\n".join(texts)
    if not text.strip():
        return True
    if len(text) > POINTER_CHARS:
        return False
    return bool(_FAILS.match(text) or _POINTER.search(text))
