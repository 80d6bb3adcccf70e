"""Ticks of a chart's axis, and short numbers for them."""

from __future__ import annotations

from math import floor, log10


def axis_ticks(low: float, high: float) -> list[float]:
    """About five round values between two."""
    span = max(high - low, 1e-9)
    step = 10 ** floor(log10(span / 4))
    step *= next(m for m in (1, 2, 5, 10) if span / (step * m) <= 6)
    first = int(low / step) * step
    ticks = [first + n * step for n in range(12)]
    return [tick for tick in ticks if low - 1e-9 <= tick <= high + 1e-9]


def short_number(number: float) -> str:
    """``12_345`` → ``12.3k``."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size:
            return f"{number / size:.3g}{unit}"
    return f"{number:.3g}"
