"""Geometry of a session's chart: one bar per turn, with the tokens sent and the tokens left out.

The template ``chart.html`` draws it, in a wide and in a narrow form.  Coordinates are units of its
view box, as text with one decimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.amounts import many
from trimtab.proxy.records.prefix_breaks import CLIENT, EXPIRED, OURS, PROVIDER
from trimtab.proxy.records.request_record import RequestRecord
from trimtab.reporting.axis import axis_ticks, short_number

TOP, BOTTOM = 18, 40
FAR = 3
"""The window's line is left out if it is more than so many times the largest bar."""
BREAKS = {OURS: "ours", CLIENT: "client", EXPIRED: "expired", PROVIDER: "provider"}
"""Cause of a break of the prompt cache → class of its mark."""


@dataclass(frozen=True, slots=True)
class Size:
    """A size of the chart, in units of its view box; of more than ``bars`` turns some are left
    out."""

    name: str
    width: int
    height: int
    left: int
    bars: int
    numbers: int
    right: int = 14


WIDE = Size("wide", 1_060, 320, 52, 160, 12)
NARROW = Size("narrow", 360, 280, 40, 60, 6, 8)


@dataclass(frozen=True, slots=True)
class Tick:
    """One horizontal line of the grid, with its label."""

    label: str
    y: str
    text_y: str


@dataclass(frozen=True, slots=True)
class BarPart:
    """One rectangle: ``kind`` is kept, reduced, gone or cached."""

    kind: str
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One turn.  ``again``: sent more than once; ``failed``: not answered; ``lost``: the class of
    its cache break or ""; ``numbered``: its number is shown below the bar."""

    number: int
    parts: tuple[BarPart, ...]
    middle: str
    again: bool
    failed: bool
    lost: str
    numbered: bool
    tooltip: str


@dataclass(frozen=True, slots=True)
class Polyline:
    """The window as a line over the turns."""

    kind: str
    points: str


@dataclass(frozen=True, slots=True)
class Chart:
    """All shapes of the chart and its size."""

    name: str
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    lines: tuple[Polyline, ...]
    width: int
    height: int
    left: int
    right: int
    mark_y: int = TOP - 8

    @property
    def lost_y(self) -> int:
        """The y of the marks of cache breaks, below the axis."""
        return self.height - BOTTOM + 8

    @property
    def label_y(self) -> int:
        """The y of the turns' numbers."""
        return self.height - 10


def context(turns: Sequence[RequestRecord], size: Size = WIDE) -> Chart:
    """The chart of these turns."""
    shown = _thinned(turns, size.bars)
    most = max((max(turn.sent, turn.arrived) for turn in shown), default=0)
    window = max((turn.window for turn in shown), default=0)
    most = max(most, window if window <= FAR * most else 0)
    ticks = axis_ticks(0, max(most, 1))
    if ticks[-1] < most:  # the axis shows the largest bar
        ticks.append(ticks[-1] + ticks[1])
    top = ticks[-1]
    step = (size.width - size.left - size.right) / max(len(shown), 12)
    scale = (size.height - TOP - BOTTOM) / top
    floor = size.height - BOTTOM
    every = max(1, -(-len(shown) // size.numbers))
    bars = tuple(
        _bar(turn, size.left + n * step, step, scale, floor, n % every == 0)
        for n, turn in enumerate(shown)
    )
    grid = tuple(
        Tick(short_number(tick), _text(floor - tick * scale), _text(floor - tick * scale + 4))
        for tick in ticks
    )
    lines = tuple(_lines(shown, size, step, scale, floor, top))
    return Chart(
        size.name, bars, grid, lines, size.width, size.height, size.left, size.width - size.right
    )


def _thinned(turns: Sequence[RequestRecord], most: int) -> list[RequestRecord]:
    """At most ``most`` turns: of each run of turns the most notable one, else the last."""
    every = -(-len(turns) // most) or 1
    newest = list(reversed(turns))
    runs = (newest[start : start + every] for start in range(0, len(newest), every))
    return [max(run, key=_interest) for run in runs][::-1]


def _interest(turn: RequestRecord) -> tuple[bool, bool, bool, int]:
    return not turn.answered, turn.sends > 1, bool(turn.cause), turn.number


def _bar(
    turn: RequestRecord, x: float, step: float, scale: float, floor: int, numbered: bool
) -> Bar:
    width = max(step * 0.82, 0.8)
    sizes = (
        ("kept", turn.kept),
        ("reduced", max(turn.sent - turn.kept, 0)),
        ("gone", turn.arrived - turn.sent),
    )
    parts, at = [], float(floor)
    for kind, size in sizes:
        if size > 0:
            at -= size * scale
            parts.append(_part(kind, x, at, width, size * scale))
    if turn.cached:
        high = min(turn.cached, turn.sent) * scale
        parts.append(_part("cached", x + width * 0.36, floor - high, width * 0.28, high))
    return Bar(
        turn.number, tuple(parts), _text(x + width / 2), turn.sends > 1, not turn.answered,
        BREAKS.get(turn.cause, ""), numbered, _tooltip(turn),
    )  # fmt: skip


def _part(kind: str, x: float, y: float, width: float, height: float) -> BarPart:
    return BarPart(kind, _text(x), _text(y), _text(width), _text(height))


def _tooltip(turn: RequestRecord) -> str:
    text = f"turn {turn.number}: {turn.sent:,} tokens sent of {turn.arrived:,}"
    if turn.prompt:
        text += f"; the provider counted {turn.prompt:,}, {turn.cached:,} of them cached"
    if turn.new:
        text += f"; {many(turn.new, 'new edit')}"
    if turn.cause:
        text += f"; {turn.lost:,} cached tokens lost to {turn.cause}"
    if turn.diagnosis:
        text += f" (the provider reports: {turn.diagnosis.replace('_', ' ')})"
    if turn.sends > 1:
        text += f"; sent {turn.sends} times"
    if not turn.answered:
        text += f"; failed ({turn.status or 'no answer'})"
    return text


def _lines(
    shown: Sequence[RequestRecord], size: Size, step: float, scale: float, floor: int, top: float
) -> list[Polyline]:
    points: list[tuple[float, float]] = []
    for number, turn in enumerate(shown):
        if 0 < turn.window <= top:
            x, y = size.left + number * step, floor - turn.window * scale
            points += [(x, y), (x + step, y)]
    if not points:
        return []
    points.append((max(points[-1][0], size.width - size.right), points[-1][1]))
    return [Polyline("window", " ".join(f"{_text(x)},{_text(y)}" for x, y in points))]


def _text(value: float) -> str:
    return f"{value:.1f}"
