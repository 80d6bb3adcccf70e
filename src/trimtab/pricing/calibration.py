"""Compares our token count of a model with what the provider billed, learned from answers.

Two things are learned: the slope of visible text and that of hidden thinking, which some models
bill behind a signature; and how far single answers were above the line.  The mean decides when to
act, the worst case what must fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

KEPT = 32
"""Newest samples that are kept of a model."""
LEAST_TOKENS = 1_000
"""Smaller requests say more about fixed costs than about texts."""
SLOPES_APART = 0.02
"""From this share of independent movement on the two slopes are estimated separately."""
LEAST_SHARE = 0.4
"""Of our count: what is billed below is no count of the same text, but of what was not cached, or
of what a server left.  (Our factors go up to 1.5, and tokenizers differ by less than that.)"""
MARGIN = 0.05
"""Added to the worst of one sample; it shrinks with the root of their number."""


class UsageSample(NamedTuple):
    """One answer: our tokens of what was sent, of visible parts and behind signatures; billed."""

    visible: int
    signed: int
    billed: int


@dataclass(frozen=True)
class Factors:
    """Billed tokens for one of ours: on average, and at the worst; of how many answers."""

    mean: float
    worst: float
    answers: int


@dataclass(frozen=True)
class Calibration:
    """The newest samples of one model under one counter, oldest first."""

    samples: tuple[UsageSample, ...] = ()

    def add(self, sample: UsageSample) -> Calibration:
        """With one more answer; itself where that tells nothing, or is too low to be true."""
        if sample.visible + sample.signed < LEAST_TOKENS or sample.billed <= 0:
            return self
        if sample.billed < LEAST_SHARE * sample.visible:
            return self
        return Calibration((*self.samples, sample)[-KEPT:])

    def factors(self, visible: int, signed: int, capacity: int) -> Factors | None:
        """What holds for a request of these sizes (our tokens); None before the first answer.

        That our count is too high is believed only where an answer reached a quarter of the
        capacity: before, the fixed parts of a request may be all there was to compare.
        """
        if not self.samples or visible + signed <= 0:
            return None
        largest = max(s.visible + s.signed for s in self.samples)
        near = [s for s in self.samples if 2 * (s.visible + s.signed) >= largest]
        text, thought = _slopes(near)
        residues = [s.billed / (text * s.visible + thought * s.signed) for s in near]
        here = (text * visible + thought * signed) / (visible + signed)
        mean = here * sum(residues) / len(residues)
        worst = here * max(residues) * (1 + MARGIN / sqrt(len(near)))
        if 4 * largest < capacity:
            mean, worst = max(mean, 1.0), max(worst, 1.0)
        return Factors(round(mean, 4), round(max(mean, worst), 4), len(self.samples))

    def as_list(self) -> list[list[int]]:
        """JSON-able, for a store."""
        return [list(sample) for sample in self.samples]

    @classmethod
    def from_list(cls, rows: Any) -> Calibration:
        """What ``as_list`` gave; empty for anything else: it is learned anew."""
        try:
            samples = tuple(UsageSample(*(int(number) for number in row)) for row in rows)
        except (TypeError, ValueError):
            return cls()
        sound = (s for s in samples if s.visible + s.signed > 0 and min(s) >= 0 and s.billed)
        return cls(tuple(sound)[-KEPT:])


def _slopes(samples: list[UsageSample]) -> tuple[float, float]:
    """Billed tokens for one of ours, of visible parts and behind signatures (least squares)."""
    vv = float(sum(s.visible * s.visible for s in samples))
    ss = float(sum(s.signed * s.signed for s in samples))
    vs = float(sum(s.visible * s.signed for s in samples))
    vb = float(sum(s.visible * s.billed for s in samples))
    sb = float(sum(s.signed * s.billed for s in samples))
    apart = vv * ss - vs * vs
    if ss and apart > SLOPES_APART * vv * ss:
        text, thought = (vb * ss - sb * vs) / apart, (sb * vv - vb * vs) / apart
        if text > 0 and thought >= 0:
            return text, thought
    both = sum(s.billed for s in samples) / sum(s.visible + s.signed for s in samples)
    return both, both
