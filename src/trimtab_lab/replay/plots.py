"""Positions of the lines, points and bars in the report's plots; ``plots.html`` draws them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import hypot
from typing import NamedTuple

from trimtab.reporting.axis import axis_ticks, short_number
from trimtab_lab.replay.verdict import OURS

COLOURS = (
    "#8a8f98", "#0f9b8e", "#d97a1d", "#4a8fe0", "#c2559d", "#8f7fe8",
    "#b08a1e", "#d04a4a", "#4aa34a", "#5fa8b8", "#b0764f", "#6f7f9f",
)  # fmt: skip
"""Each is readable on white and on black; the first two are for ``none`` and ``trimtab``."""
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 14, 36
DOT, HIDDEN = 17, 10
"""Pixels: a dot and its gap; centres that are nearer than this hide each other's number."""
SIZE = (380, 250)
"""Pixels: as wide as a phone, so that labels are readable there; wider screens enlarge it."""


def colour(number: int) -> str:
    """The colour of the n-th series."""
    return COLOURS[number % len(COLOURS)]


class AxisTick(NamedTuple):
    """A number on an axis, its label, and its position in pixels."""

    number: float
    label: str
    at: float


class Axes:
    """A plot area with two axes: ``size`` in pixels, ranges ``x`` and ``y`` in shown numbers."""

    def __init__(
        self, size: tuple[int, int], x: tuple[float, float], y: tuple[float, float], *,
        title: str, x_name: str, y_name: str,
    ) -> None:  # fmt: skip
        self.width, self.height = size
        self.title, self.x_name, self.y_name = title, x_name, y_name
        self.left, self.right, self.low = LEFT, self.width - RIGHT, self.height - BOTTOM
        self._x, self._y = x, y
        self.x_ticks = [AxisTick(n, short_number(n), self.at(n, y[0])[0]) for n in axis_ticks(*x)]
        self.y_ticks = [AxisTick(n, short_number(n), self.at(x[0], n)[1]) for n in axis_ticks(*y)]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The position of a pair of numbers in pixels."""
        right = _share(x, *self._x) * (self.right - self.left)
        up = _share(y, *self._y) * (self.low - TOP)
        return round(self.left + right, 1), round(self.low - up, 1)

    def path(self, points: Sequence[tuple[float, float]]) -> str:
        """Pairs of numbers as the points of a polyline."""
        return " ".join(f"{x},{y}" for x, y in (self.at(*point) for point in points))


def _share(value: float, low: float, high: float) -> float:
    return (value - low) / max(high - low, 1e-9)


class Series(NamedTuple):
    """One polyline."""

    name: str
    colour: str
    points: str


class LinePlot(Axes):
    """One polyline per series over 0, 1, 2 …, and a line for the limit.

    ``drawn``: the series in the order of drawing.  Ours comes last: where lines coincide it is the
    one that is seen.
    """

    def __init__(
        self, values: Mapping[str, Sequence[float]], *, limit: float, title: str,
        colours: Mapping[str, str],
    ) -> None:  # fmt: skip
        longest = max((len(series) for series in values.values()), default=1)
        highest = max([limit, *(max(series, default=0) for series in values.values())])
        super().__init__(
            SIZE, (0, max(1, longest - 1)), (0, highest * 1.05),
            title=title, x_name="model call", y_name="tokens sent",
        )  # fmt: skip
        self.x_ticks = [tick for tick in self.x_ticks if tick.number == round(tick.number)]
        self.limit, self.limit_name = self.at(0, limit)[1], f"window {short_number(limit)}"
        self.series = [
            Series(name, colours[name], self.path(list(enumerate(series))))
            for name, series in values.items()
        ]
        self.drawn = sorted(self.series, key=lambda one: one.name == OURS)


class Point(NamedTuple):
    """One policy in the scatter plot; ``number`` is its number in the legend.

    ``dot_y``: where its dot is drawn.  It differs from ``y`` if another dot stands there.
    """

    name: str
    number: int
    colour: str
    x: float
    y: float
    dot_y: float


class FrontierPlot(Axes):
    """A scatter plot: cost on the x axis, share kept on the y axis; a line joins the points that no
    other point beats.

    The y axis begins just below the lowest point, because most points are close together.
    """

    def __init__(
        self, figures: Mapping[str, tuple[float, float]], *, title: str, colours: Mapping[str, str]
    ) -> None:
        highest = max([1.0, *(cost for cost, _ in figures.values())])
        least = min(kept for _, kept in figures.values())
        low = max(0.0, 10 * (least // 10) - 5)
        super().__init__(
            SIZE, (0, highest * 1.08), (low, 100 + (100 - low) * 0.08),
            title=title, x_name="cost; sending everything is 1",
            y_name="used again, still there, %",
        )  # fmt: skip
        everywhere = figures.values()
        self.y_ticks = [tick for tick in self.y_ticks if tick.number <= 100]
        self.frontier = self.path(sorted(p for p in everywhere if not _is_beaten(p, everywhere)))
        self.points: list[Point] = []
        for number, (name, pair) in enumerate(figures.items(), 1):
            x, y = self.at(*pair)
            self.points.append(Point(name, number, colours[name], x, y, self._free_y(x, y)))
        self.moved = any(point.dot_y != point.y for point in self.points)

    def _free_y(self, x: float, y: float) -> float:
        """The nearest y, from ``y`` towards the middle, where a dot hides none that is there."""
        step = DOT if y < self.height / 2 else -DOT
        while any(hypot(x - dot.x, y - dot.dot_y) < HIDDEN for dot in self.points):
            y += step
        return y


def _is_beaten(point: tuple[float, float], points: Iterable[tuple[float, float]]) -> bool:
    """Whether another point costs no more and keeps no less."""
    x, y = point
    return any(cost <= x and recall >= y and (cost, recall) != point for cost, recall in points)


class BarRow(NamedTuple):
    """One bar: its name, its length in pixels, its value."""

    name: str
    y: int
    width: float
    value: str


class BarPlot:
    """One horizontal bar per name, the longest first."""

    def __init__(self, values: Mapping[str, float], *, title: str, fill: str) -> None:
        rows = sorted(values.items(), key=lambda item: -item[1])
        highest = max([1.0, *values.values()])
        self.width, self.height = SIZE[0], 18 * len(rows) + 8
        self.title, self.fill = title, fill
        self.rows = [
            BarRow(name, 18 * number + 4, round(150 * value / highest, 1), f"{value:,.0f}")
            for number, (name, value) in enumerate(rows)
        ]
