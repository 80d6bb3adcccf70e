"""What fills a request: the size of every block, for people who ask why it is so large.

Knows how to list; decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trimtab import formats
from trimtab.formats import Memo
from trimtab.model import TRIGGER, Path
from trimtab.reading.source import Source
from trimtab.reading.usage import Usage
from trimtab.settings import trigger_for
from trimtab.tokens import Counter, counter_for


@dataclass(frozen=True)
class MeasuredBlock:
    """One block: where, what, and how many tokens and chars.  ``ref`` can be pinned."""

    path: Path
    role: str
    kind: str
    tool: str | None
    tokens: int
    chars: int
    ref: str


@dataclass(frozen=True)
class Measured:
    """Sizes of one request; ``total`` includes the fixed cost of messages, calls and results."""

    format: str
    reason: str
    counter: str
    total: int
    rows: tuple[MeasuredBlock, ...]
    trigger: float = TRIGGER
    """Share of the window, less the output reserve, above which ``fit`` would do something."""


def measure(
    request: Any,
    *,
    format: str | None = None,
    model: str | None = None,
    counter: str | Callable[[str], int] | Counter | None = None,
) -> Measured:
    """Measure every block.  Raises InvalidRequest, InvalidSetting."""
    source = Source.of(request)
    found, reason = formats.find(source.tree, format)
    transcript = formats.read(source.tree, found, model=model, memo=Memo())
    chosen = counter_for(counter, model=transcript.facts.model, format=found.name)
    usage = Usage(chosen)
    total = usage.measure(transcript)
    rows = tuple(
        MeasuredBlock(
            transcript.where(place),
            "head" if place.message < 0 else transcript.messages[place.message].role,
            place.block.kind, transcript.tool(place), usage.block(transcript, place),
            len(place.block.text) + place.block.payload_bytes, transcript.ref(place),
        )
        for place in transcript.places()
    )  # fmt: skip
    trigger = trigger_for(chosen)
    return Measured(found.name, reason, chosen.name, total, rows, trigger)
