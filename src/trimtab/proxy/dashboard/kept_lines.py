"""Which lines of an original are still sent, word for word, in what took its place."""

from __future__ import annotations

import re
from collections.abc import Set
from itertools import groupby
from typing import NamedTuple

MIN_CHARS = 4
"""A shorter line is found by accident: a bracket, a number."""
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class LineRun(NamedTuple):
    """Lines in a row that are all still sent, or all are not."""

    kept: bool
    text: str


def sent_lines(text: str) -> Set[str]:
    """The lines of what is sent instead, as ``marked`` compares them."""
    return {bare for line in text.splitlines() if len(bare := _bare(line)) >= MIN_CHARS}


def marked(text: str, sent: Set[str]) -> list[LineRun]:
    """The text in runs of lines; together they are the whole text."""
    lines = text.splitlines(keepends=True)
    return [
        LineRun(kept, "".join(run))
        for kept, run in groupby(lines, lambda line: _bare(line) in sent)
    ]


def _bare(line: str) -> str:
    """A line without colours and indent."""
    return _ESCAPES.sub("", line).strip()
