"""Geometry of a session's chart: one bar per turn, with the tokens sent and the tokens left out.

The template ``chart.html`` draws it.  Coordinates are units of its view box, as text with one
decimal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.proxy.activity_log import TurnRecord
from trimtab.reporting.axis import axis_ticks, short_number

WIDTH, HEIGHT = 1_060, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 14, 28
MOST_BARS = 160
MOST_NUMBERS = 12


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
    """One turn.  ``again``: sent more than once; ``numbered``: its number stands below the bar."""

    number: int
    parts: tuple[BarPart, ...]
    middle: str
    label_x: str
    again: bool
    numbered: bool
    tooltip: str


@dataclass(frozen=True, slots=True)
class Polyline:
    """The window or the trigger as a line over the turns."""

    kind: str
    points: str


@dataclass(frozen=True, slots=True)
class Chart:
    """All shapes of the chart and its size."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    lines: tuple[Polyline, ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    mark_y: int = TOP - 6
    label_y: int = HEIGHT - 10


def context(turns: Sequence[TurnRecord]) -> Chart:
    """The chart of these turns.  Above ``MOST_BARS`` turns, every n-th turn is drawn."""
    shown = _thinned(turns)
    tops = [max(turn.sent, min(turn.arrived, 4 * (turn.window or turn.arrived))) for turn in shown]
    window = max((turn.window for turn in shown if turn.window), default=0)
    most = max([*tops, int(window * 1.06), 1])
    step = (WIDTH - LEFT - RIGHT) / max(len(shown), 12)
    scale = (HEIGHT - TOP - BOTTOM) / most
    every = max(1, round(len(shown) / MOST_NUMBERS))
    bars = tuple(
        _bar(turn, LEFT + n * step, step, scale, most, n % every == 0)
        for n, turn in enumerate(shown)
    )
    return Chart(bars, tuple(_ticks(most, scale)), tuple(_lines(shown, step, scale)))


def _thinned(turns: Sequence[TurnRecord]) -> list[TurnRecord]:
    every = -(-len(turns) // MOST_BARS) or 1
    kept = [turn for n, turn in enumerate(reversed(turns)) if n % every == 0]
    return kept[::-1]


def _ticks(most: float, scale: float) -> list[Tick]:
    found = []
    for tick in axis_ticks(0, most):
        y = HEIGHT - BOTTOM - tick * scale
        found.append(Tick(short_number(tick), _text(y), _text(y + 4)))
    return found


def _bar(turn: TurnRecord, x: float, step: float, scale: float, most: float, numbered: bool) -> Bar:
    width = max(step * 0.82, 0.8)
    sizes = (
        ("kept", turn.kept),
        ("reduced", max(turn.sent - turn.kept, 0)),
        ("gone", min(turn.arrived, most) - turn.sent),
    )
    parts, at = [], 0.0
    for kind, size in sizes:
        if size > 0:
            parts.append(_part(kind, x, at, width, size * scale))
            at += size * scale
    if turn.cached:
        high = min(turn.cached, turn.sent) * scale
        parts.append(_part("cached", x + width * 0.36, 0.0, width * 0.28, high))
    return Bar(
        turn.number, tuple(parts), _text(x + width / 2), _text(x + step * 0.41), turn.sends > 1,
        numbered, _tooltip(turn),
    )  # fmt: skip


def _part(kind: str, x: float, above: float, width: float, height: float) -> BarPart:
    y = HEIGHT - BOTTOM - above - height
    return BarPart(kind, _text(x), _text(y), _text(width), _text(height))


def _tooltip(turn: TurnRecord) -> str:
    said = f"turn {turn.number}: {turn.sent:,} tokens sent of {turn.arrived:,}"
    if turn.prompt:
        said += f"; the provider counted {turn.prompt:,}, {turn.cached:,} of them cached"
    if turn.new:
        said += f"; {turn.new} new edit(s)"
    if turn.sends > 1:
        said += f"; sent {turn.sends} times"
    return said


def _lines(shown: Sequence[TurnRecord], step: float, scale: float) -> list[Polyline]:
    found = []
    for kind in ("window", "trigger"):
        points: list[tuple[float, float]] = []
        for number, turn in enumerate(shown):
            size = getattr(turn, kind)
            if size:
                x = LEFT + number * step
                y = HEIGHT - BOTTOM - size * scale
                points += [(x, y), (x + step, y)]
        if points:
            points.append((max(points[-1][0], WIDTH - RIGHT), points[-1][1]))
            text = " ".join(f"{_text(x)},{_text(y)}" for x, y in points)
            found.append(Polyline(kind, text))
    return found


def _text(value: float) -> str:
    return f"{value:.1f}"
