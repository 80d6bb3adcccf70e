"""The size of every block of a request, to find out what fills it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from trimtab import formats
from trimtab.amounts import many
from trimtab.formats.body import RequestBody
from trimtab.formats.registry import FORMATS
from trimtab.jsontext.paths import Path, escape
from trimtab.planning.tool_definitions import (
    FEW_TOKENS,
    MAX_SHARE,
    ToolSize,
    definition_name,
    tools_take,
)
from trimtab.pricing import models
from trimtab.request.limits import trigger_for
from trimtab.settings import Settings
from trimtab.transcript.model import TRIGGER
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import Counter, counter_for


@dataclass(frozen=True)
class MeasuredBlock:
    """One block: its path, kind, tokens and chars.  ``tool``: which one is called, answers or is
    defined here.  ``ref`` can be pinned."""

    path: Path
    role: str
    kind: str
    tool: str | None
    tokens: int
    chars: int
    ref: str


SHOWN_BLOCKS = 10
"""Of the largest, how many a printed measurement names."""


@dataclass(frozen=True)
class Measured:
    """Sizes of one request; ``total`` includes the fixed cost of messages, calls and results."""

    format: str
    reason: str
    counter: str
    total: int
    rows: tuple[MeasuredBlock, ...]
    trigger: float = TRIGGER
    """Share of the window, less the output reserve, above which ``fit`` would reduce it."""
    window: int | None = None
    """Tokens that the request's model takes, by our table; None where it is not in it."""

    def __repr__(self) -> str:
        blocks = many(len(self.rows), "block")
        return f"<Measured: {self.total:,} tokens, {blocks} of {self.format}; print it>"

    def __str__(self) -> str:
        """The largest blocks as ``trimtab inspect`` lists them."""
        largest = sorted(self.rows, key=lambda row: -row.tokens)[:SHOWN_BLOCKS]
        lines = [
            f"{self.format} ({self.reason})",
            f"{self.total:,} tokens, counted by {self.counter}",
        ]
        if self.window:
            lines.append(f"{self.total / self.window:.0%} of a window of {self.window:,}")
        for row in largest:
            share = f"{row.tokens / max(self.total, 1):.0%}"
            what = f"{row.tool or row.role} {row.kind}, {row.chars:,} chars"
            lines.append(f"{row.tokens:>9,} {share:>5}  {escape(row.path)}  {what}")
        rest = self.rows[SHOWN_BLOCKS:]
        return "\n".join([*lines, *([f"and {many(len(rest), 'smaller block')}"] if rest else [])])

    @property
    def tools(self) -> list[MeasuredBlock]:
        """The definitions of tools, largest first."""
        rows = (row for row in self.rows if row.kind == "tools" and row.tool and row.tokens)
        return sorted(rows, key=lambda row: -row.tokens)

    def tools_advice(self, window: int | None = None) -> str:
        """What to do about the definitions of tools; "" where they are few, or less than half of
        the request and of the window."""
        tools = [ToolSize(row.tool or "", row.tokens) for row in self.tools]
        room = min(self.total, window or self.window or self.total)
        if sum(tool.size for tool in tools) <= max(MAX_SHARE * room, FEW_TOKENS):
            return ""
        return tools_take(tools, f"{self.total:,} tokens", FORMATS[self.format])


def measure(
    request: Any,
    *,
    format: str | None = None,
    model: str | None = None,
    counter: str | Callable[[str], int] | Counter | None = None,
) -> Measured:
    """Measure every block.  Raises InvalidRequest, InvalidSetting."""
    Settings(format=cast(Any, format), model=model, counter=counter)  # checked as those of fit are
    source = RequestBody.of(request)
    detected, reason = formats.find(source.tree, format)
    transcript = formats.read(source.tree, detected, model=model)
    chosen = counter_for(counter, model=transcript.facts.model, format=detected.name)
    usage = TokenSizes(chosen)
    total = usage.measure(transcript)
    rows = tuple(
        MeasuredBlock(
            transcript.where(place),
            "head" if place.message < 0 else transcript.messages[place.message].role,
            place.block.kind,
            transcript.tool(place) or definition_name(place.block) or None,
            usage.block(transcript, place),
            len(place.block.text) + place.block.payload_bytes, transcript.ref(place),
        )
        for place in transcript.places()
    )  # fmt: skip
    trigger = trigger_for(chosen)
    listed = models.find(transcript.facts.model) if transcript.facts.model else None
    window = listed.window if listed else None
    return Measured(detected.name, reason, chosen.name, total, rows, trigger, window)
