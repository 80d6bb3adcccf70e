"""A session's context over its turns as SVG: what was sent and taken out, and the window.

Knows turns and shapes.  Labels are numbers, never what anything said.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from trimtab.proxy.dashboard.html import Html, joined, short, tag
from trimtab.proxy.ledger import Turn

WIDTH, HEIGHT = 1_060, 300
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 14, 28
MOST_BARS = 160


def context(turns: Sequence[Turn]) -> Html:
    """One bar a turn; of more than fit, the last of each few."""
    shown = _thinned(turns)
    tops = [max(turn.sent, min(turn.arrived, 4 * (turn.window or turn.arrived))) for turn in shown]
    window = max((turn.window for turn in shown if turn.window), default=0)
    most = max([*tops, int(window * 1.06), 1])
    step = (WIDTH - LEFT - RIGHT) / max(len(shown), 12)
    scale = (HEIGHT - TOP - BOTTOM) / most
    parts = [*_grid(most, scale)]
    for number, turn in enumerate(shown):
        parts.append(_bar(turn, LEFT + number * step, max(step * 0.82, 0.8), scale, most))
    parts += _lines(shown, step, scale)
    parts += [
        tag("text", turn.number, x=_f(LEFT + n * step + step * 0.41), y=HEIGHT - 10,
            text_anchor="middle")
        for n, turn in enumerate(shown) if n % max(1, round(len(shown) / 12)) == 0
    ]  # fmt: skip
    return tag(
        "svg", joined(parts), viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img",
        aria_label="tokens sent on each turn, against the window",
    )  # fmt: skip


def key() -> Html:
    """What the colours mean."""
    rows = (
        ("kept", "sent as it came"), ("reduced", "sent in a shorter form"),
        ("gone", "taken out, recallable"), ("cached", "of what is sent, read from the cache"),
    )  # fmt: skip
    squares = [
        tag("li", tag("svg", tag("rect", width=12, height=12, rx=2, class_=name),
                      viewBox="0 0 12 12", aria_hidden="true"), about)
        for name, about in rows
    ]  # fmt: skip
    dot = tag("svg", tag("circle", cx=6, cy=6, r=3.5, class_="mark"), viewBox="0 0 12 12",
              aria_hidden="true")  # fmt: skip
    squares.append(tag("li", dot, "refused, sent again"))
    lines = [
        tag("li", tag("svg", tag("line", x1=0, x2=12, y1=6, y2=6, class_=name),
                      viewBox="0 0 12 12", aria_hidden="true"), about)
        for name, about in (("window", "room for the prompt, as then known"),
                            ("trigger", "trigger"))
    ]  # fmt: skip
    return tag("ul", joined([*squares, *lines]), class_="key")


def _thinned(turns: Sequence[Turn]) -> list[Turn]:
    every = -(-len(turns) // MOST_BARS) or 1
    kept = [turn for n, turn in enumerate(reversed(turns)) if n % every == 0]
    return kept[::-1]


def _grid(most: float, scale: float) -> list[Html]:
    step = 10 ** floor(log10(max(most / 4, 1)))
    step *= next(m for m in (1, 2, 5, 10) if most / (step * m) <= 6)
    rows = []
    for n in range(int(most // step) + 1):
        y = _f(HEIGHT - BOTTOM - n * step * scale)
        rows.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        rows.append(tag("text", short(n * step), x=LEFT - 6, y=_f(float(y) + 4), text_anchor="end"))
    return rows


def _bar(turn: Turn, x: float, width: float, scale: float, most: float) -> Html:
    reduced = max(turn.sent - turn.kept, 0)
    gone = min(turn.arrived, most) - turn.sent
    rows, at = [], 0.0
    for name, size in (
        ("kept", turn.kept), ("reduced", reduced), ("gone", gone)
    ):  # fmt: skip
        if size > 0:
            high = size * scale
            y = HEIGHT - BOTTOM - at - high
            rows.append(
                tag("rect", x=_f(x), y=_f(y), width=_f(width), height=_f(high), class_=name)
            )
            at += high
    if turn.cached:
        high = min(turn.cached, turn.sent) * scale
        rows.append(
            tag("rect", x=_f(x + width * 0.36), y=_f(HEIGHT - BOTTOM - high),
                width=_f(width * 0.28), height=_f(high), class_="cached")
        )  # fmt: skip
    if turn.sends > 1:
        rows.append(tag("circle", cx=_f(x + width / 2), cy=TOP - 6, r=3.5, class_="mark"))
    return tag("g", tag("title", _told(turn)), joined(rows))


def _told(turn: Turn) -> str:
    said = f"turn {turn.number}: {turn.sent:,} tokens sent of {turn.arrived:,}"
    if turn.prompt:
        said += f"; the provider counted {turn.prompt:,}, {turn.cached:,} of them cached"
    if turn.new:
        said += f"; {turn.new} new edit(s)"
    if turn.sends > 1:
        said += f"; sent {turn.sends} times"
    return said


def _lines(shown: Sequence[Turn], step: float, scale: float) -> list[Html]:
    rows = []
    for name in ("window", "trigger"):
        points: list[tuple[float, float]] = []
        for number, turn in enumerate(shown):
            size = getattr(turn, name)
            if size:
                x = LEFT + number * step
                y = HEIGHT - BOTTOM - size * scale
                points += [(x, y), (x + step, y)]
        if points:
            last = max(points[-1][0], WIDTH - RIGHT)
            points.append((last, points[-1][1]))
            path = " ".join(f"{_f(x)},{_f(y)}" for x, y in points)
            rows.append(tag("polyline", points=path, fill="none", class_=name))
    return rows


def _f(value: float) -> str:
    return f"{value:.1f}"
