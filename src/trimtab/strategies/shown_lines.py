"""Whole lines of a text in their order, within a budget, and notes on how many stood between.

Knows weights of lines, and what a note costs.  Does not know what makes a line weigh, nor which
budgets there are.
"""

from __future__ import annotations

from itertools import pairwise

from trimtab.strategies.base import Config
from trimtab.strategies.content.base import MANDATORY
from trimtab.strategies.excerpt import cut_plain
from trimtab.strategies.line_weights import Reading

_GAP_CHARS = 24
"""What a note costs, and so what a line standing alone costs beside itself."""
_LONG_CHARS = 400
_MISFITS = 40
"""Lines in a row that no longer fit before a level counts as full."""
_TRIES = 4


class Shown:
    """Which lines are shown at the level looked at last; mutable, one per block."""

    def __init__(self, reading: Reading, advice: str) -> None:
        self.lines, self.advice = reading.lines, advice
        self.picked: list[int] = []
        weights = reading.weights
        self._worth = [min(weight, MANDATORY / 4) for weight in weights]
        self._all = sum(self._worth) or 1.0
        self._shapes = reading.shapes
        self._rank = sorted(
            (n for n, weight in enumerate(weights) if weight > 0),
            key=lambda n: _order(weights[n], len(self.lines[n]), n),
        )

    @property
    def loss(self) -> float:
        """Loss by weight: 0 if all is shown, 0.9 if nothing is."""
        return 0.9 * (1 - sum(self._worth[number] for number in self.picked) / self._all)

    def within(self, tokens: int, total: int, config: Config) -> str | None:
        """The text of at most so many tokens; None if there is no room for any line."""
        chars = tokens * sum(len(line) + 1 for line in self.lines) // total
        for _ in range(_TRIES):
            self.picked = self._pick(chars)
            new = self._text(chars)
            used = config.count(new)
            if used <= tokens:
                return new if self.picked else None
            chars = min(chars - 8, chars * tokens * 49 // (50 * used))
            if chars < 2 * _GAP_CHARS:
                break
        return None

    def _pick(self, chars: int) -> list[int]:
        """Lines in order of rank while there is room, gaps paid for; then gaps filled."""
        long = _long(chars)
        chosen: set[int] = set()
        used, misfits = _GAP_CHARS + len(self.advice) + 2, 0
        for number in self._rank:
            beside = (number - 1 in chosen) + (number + 1 in chosen)
            cost = min(len(self.lines[number]), long) + 1 + _GAP_CHARS * (1 - beside)
            if used + cost > chars:
                misfits += 1
                if misfits > _MISFITS:
                    break
                continue
            used += cost
            chosen.add(number)
        return self._filled(sorted(chosen))

    def _filled(self, chosen: list[int]) -> list[int]:
        """With the lines of gaps that take no more room than their note."""
        out: list[int] = []
        for number in [*chosen, len(self.lines)]:
            after = out[-1] + 1 if out else 0
            if number - after <= _GAP_CHARS and out:
                gap = self.lines[after:number]
                if sum(map(len, gap)) + len(gap) <= _GAP_CHARS:
                    out += range(after, number)
            if number < len(self.lines):
                out.append(number)
        return out

    def _text(self, chars: int) -> str:
        long, out, after = _long(chars), list[str](), 0
        gaps = [(a + 1, b) for a, b in pairwise([-1, *self.picked, len(self.lines)]) if b > a + 1]
        longest = max(gaps, key=lambda gap: gap[1] - gap[0], default=None)
        for number in [*self.picked, len(self.lines)]:
            if number > after:
                out.append(self._note(after, number, (after, number) == longest))
            if number < len(self.lines):
                line = self.lines[number]
                out.append(line if len(line) <= long else cut_plain(line, long))
            after = number + 1
        return "\n".join(out)

    def _note(self, first: int, end: int, advise: bool) -> str:
        """``[214 lines left out, 180 like the one above; run the tool again to see them]``"""
        gone = end - first
        like = self._shapes[first:end].count(self._shapes[first - 1]) if first else 0
        alike = f", {like:,} like the one above" if 2 * like > gone and like > 2 else ""
        advice = f"; {self.advice}" if advise else ""
        return f"[{gone:,} line{'s' * (gone > 1)} left out{alike}{advice}]"


def _long(chars: int) -> int:
    return max(_LONG_CHARS, chars // 4)


def _order(weight: float, chars: int, number: int) -> tuple[float, float, int]:
    """Mandatory lines by tier, then weight per character."""
    if weight >= MANDATORY:
        return -weight, 0.0, number
    return 0.0, -weight / (chars + 8), number
