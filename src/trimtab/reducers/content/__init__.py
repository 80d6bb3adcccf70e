"""The kinds of content of a tool result; each weighs its lines by importance.

A kind is detected from a sample of lines.  To add a kind: write a file with a ``Kind``, and put it
before the kinds that it must win against.
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.reducers.content import code, diffs, greps, listings, markup, output
from trimtab.reducers.content.base import CLIP, Kind, LineSample

SAMPLE_LINES = 60
KINDS: tuple[Kind, ...] = (
    diffs.DIFF, markup.HTML, listings.LISTING, greps.GREP, code.CODE, markup.MARKDOWN,
    output.OUTPUT, output.PLAIN,
)  # fmt: skip
"""In order of preference: the first that accepts the sample applies; the last accepts anything."""


def kind_of(lines: Sequence[str], tool: str = "") -> Kind:
    """The kind of these lines, detected from at most 60 of them, evenly spread."""
    filled = [line for line in lines if line and not line.isspace()]
    step = max(1, len(filled) // SAMPLE_LINES)
    picked = [line[:CLIP] for line in filled[: SAMPLE_LINES * step : step]]
    sample = LineSample(tuple(picked), tuple(line[:CLIP] for line in filled[:20]), tool.lower())
    return next(kind for kind in KINDS if kind.takes(sample))
