"""Plots as SVG text: lines over turns, a scatter with a frontier, bars.

Knows numbers, axes and labels.  Does not know what they mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import floor, log10

COLOURS = (
    "#1f77b4", "#d62728", "#2ca02c", "#ff7f0e", "#9467bd", "#8c564b",
    "#e377c2", "#17becf", "#bcbd22", "#7f7f7f", "#000000", "#aec7e8",
)  # fmt: skip
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 40


def colour(number: int) -> str:
    """The colour of the n-th series."""
    return COLOURS[number % len(COLOURS)]


def _ticks(low: float, high: float) -> list[float]:
    """About five round values between two."""
    span = max(high - low, 1e-9)
    step = 10 ** floor(log10(span / 4))
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= 6)
    first = int(low / step) * step
    found = [first + n * step for n in range(12)]
    return [tick for tick in found if low - 1e-9 <= tick <= high + 1e-9]


def _short(value: float) -> str:
    if abs(value) >= 1_000_000:
        return f"{value / 1_000_000:g}M"
    if abs(value) >= 1_000:
        return f"{value / 1_000:g}k"
    return f"{round(value, 6):g}"


class _Axes:
    """Where a pair of numbers stands on the sheet."""

    def __init__(
        self, size: tuple[int, int], x: tuple[float, float], y: tuple[float, float]
    ) -> None:
        self.width, self.height = size
        self.x0, self.x1 = x
        self.y0, self.y1 = y

    def at(self, x: float, y: float) -> tuple[float, float]:
        right = (x - self.x0) / max(self.x1 - self.x0, 1e-9) * (self.width - LEFT - RIGHT)
        up = (y - self.y0) / max(self.y1 - self.y0, 1e-9) * (self.height - TOP - BOTTOM)
        return round(LEFT + right, 1), round(self.height - BOTTOM - up, 1)

    def drawn(self, x_name: str, y_name: str) -> Iterator[str]:
        low = self.height - BOTTOM
        for tick in _ticks(self.y0, self.y1):
            _, y = self.at(self.x0, tick)
            yield f'<line class="grid" x1="{LEFT}" x2="{self.width - RIGHT}" y1="{y}" y2="{y}"/>'
            yield _text(LEFT - 6, y + 4, _short(tick), anchor="end")
        for tick in _ticks(self.x0, self.x1):
            x, _ = self.at(tick, self.y0)
            yield _text(x, low + 16, _short(tick), anchor="middle")
        middle = (LEFT + self.width - RIGHT) / 2
        yield _text(middle, self.height - 6, x_name, anchor="middle", kind="axis")
        yield (
            f'<text class="axis" transform="translate(14 {self.height / 2}) rotate(-90)" '
            f'text-anchor="middle">{escape(y_name)}</text>'
        )


def _text(x: float, y: float, words: str, *, anchor: str = "start", kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def _sheet(size: tuple[int, int], title: str, parts: Sequence[str]) -> str:
    width, height = size
    return (
        f'<svg role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def lines(
    series: Mapping[str, Sequence[float]], *, limit: float, title: str, colours: Mapping[str, str]
) -> str:
    """One polyline a series over 0, 1, 2 …; ``limit`` as a dashed line."""
    size = (760, 320)
    longest = max((len(values) for values in series.values()), default=1)
    highest = max([limit, *(max(values, default=0) for values in series.values())])
    axes = _Axes(size, (0, max(1, longest - 1)), (0, highest * 1.05))
    parts = list(axes.drawn("model call", "tokens sent"))
    (left, y), (right, _) = axes.at(0, limit), axes.at(axes.x1, limit)
    parts.append(f'<line class="limit" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>')
    for name, values in series.items():
        points = " ".join(f"{x},{y}" for x, y in (axes.at(n, v) for n, v in enumerate(values)))
        parts.append(
            f'<polyline class="series" fill="none" stroke="{colours[name]}" points="{points}">'
            f"<title>{escape(name)}</title></polyline>"
        )
    return _sheet(size, title, parts)


def frontier(
    points: Mapping[str, tuple[float, float]], *, title: str, colours: Mapping[str, str]
) -> str:
    """Cost to the right, grounded recall upwards; what no other point beats is joined."""
    size = (760, 360)
    highest = max([1.0, *(x for x, _ in points.values())])
    axes = _Axes(size, (0, highest * 1.05), (0, 105))
    parts = list(axes.drawn("billed, against sending everything", "g1, %"))
    best = sorted(
        p
        for p in points.values()
        if not any(q[0] <= p[0] and q[1] >= p[1] and q != p for q in points.values())
    )
    path = " ".join(f"{x},{y}" for x, y in (axes.at(*p) for p in best))
    parts.append(f'<polyline class="frontier" fill="none" points="{path}"/>')
    for name, (cost, share) in points.items():
        x, y = axes.at(cost, share)
        end = x > size[0] - 180
        parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{colours[name]}"/>')
        parts.append(
            f'<text class="label" x="{x + (-8 if end else 8)}" y="{y + 4}" '
            f'text-anchor="{"end" if end else "start"}">{escape(name)}</text>'
        )
    return _sheet(size, title, parts)


def bars(values: Mapping[str, float], *, title: str, fill: str) -> str:
    """One horizontal bar a name, the longest first."""
    rows = sorted(values.items(), key=lambda item: -item[1])
    size = (460, 18 * len(rows) + 8)
    highest = max([1.0, *values.values()])
    parts = []
    for number, (name, value) in enumerate(rows):
        y = 18 * number + 4
        width = round(220 * value / highest, 1)
        parts.append(
            f'<text class="tick" x="170" y="{y + 12}" text-anchor="end">{escape(name)}</text>'
        )
        parts.append(f'<rect x="176" y="{y}" width="{width}" height="14" fill="{fill}"/>')
        parts.append(f'<text class="tick" x="{180 + width}" y="{y + 12}">{value:,.0f}</text>')
    return _sheet(size, title, parts)
