"""Rows of a tool's output that say whose they are: each can be written again from itself.

``rows(mark, count)`` is one output; a mark is given once in a soak and begins with the name of its
conversation.  Whatever shows a row elsewhere shows it exactly, and to nobody else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from zlib import crc32

from judge_speakers import strings

ROW = re.compile(r"src/module_(\d+)_of_(\d+)\.py:\d+: value_\d+ of ([\w.-]+) changed")


def row(mark: str, number: int, count: int) -> str:
    """The row of this number, from 0."""
    value = crc32(f"{mark} {number}".encode()) % 10_000
    place = f"src/module_{number}_of_{count}.py:{number * 13 % 97}"
    return f"{place}: value_{value} of {mark} changed"


def rows(mark: str, count: int) -> str:
    """So many of them."""
    return "\n".join(row(mark, number, count) for number in range(count))


def marks(text: str) -> set[str]:
    """Of all rows in a text."""
    return {match[3] for match in ROW.finditer(text)}


def wrong_rows(text: str, owner: str) -> Iterator[str]:
    """Rows that nobody gave, or that are of another conversation than ``owner`` ("": of any)."""
    for match in ROW.finditer(text):
        number, count, mark = int(match[1]), int(match[2]), match[3]
        if match[0] != row(mark, number, count):
            yield f"a row that was not given: {match[0]}"
        elif owner and mark.partition(".")[0] != owner:
            yield f"a row of {mark} in {owner}"


def wrong_original(text: str, owner: str) -> Iterator[str]:
    """What of an original is not as it was given: each output in it stands there whole.

    An original may be what a look-up said; that has rows too, but each behind words of ours.
    """
    try:
        texts = strings(json.loads(text))
    except ValueError:
        texts = [text]
    for said in texts:
        yield from wrong_rows(said, owner)
        plain = [match for line in said.split("\n") if (match := ROW.fullmatch(line))]
        if len(plain) > 1 and said != rows(plain[0][3], int(plain[0][2])):
            yield f"an output that is not whole: {said[:120]!r}"
