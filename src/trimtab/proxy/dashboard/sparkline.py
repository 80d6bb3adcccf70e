"""A line of the tokens that a session sent, request by request, below the line of its window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.proxy.dashboard.chart import FAR
from trimtab.reporting.axis import short_number

WIDTH, HEIGHT, MARGIN = 120, 28, 2


@dataclass(frozen=True, slots=True)
class Sparkline:
    """``points`` of the line, ``window``: the height of the window's line ("": none is drawn, as it
    is unknown or far above), and what both say in words."""

    points: str
    window: str
    label: str
    width: int = WIDTH
    height: int = HEIGHT

    @classmethod
    def of(cls, sent: Sequence[int], window: int) -> Sparkline | None:
        """None where nothing was sent."""
        if not sent or max(sent) <= 0:
            return None
        drawn = 0 < window <= FAR * max(sent)
        top = max(*sent, window) if drawn else max(sent)
        scale = (HEIGHT - 2 * MARGIN) / top
        step = WIDTH / max(len(sent) - 1, 1)
        values = sent if len(sent) > 1 else [sent[0], sent[0]]
        points = " ".join(
            f"{number * step:.1f},{HEIGHT - MARGIN - value * scale:.1f}"
            for number, value in enumerate(values)
        )
        label = f"tokens sent: {short_number(sent[0])} to {short_number(sent[-1])}"
        if window:
            label += f", window {short_number(window)}"
        return cls(points, f"{HEIGHT - MARGIN - window * scale:.1f}" if drawn else "", label)
