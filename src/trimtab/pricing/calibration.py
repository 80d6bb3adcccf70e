"""Learns from answers how a provider's billed tokens relate to our token count of a model.

Two things are learned: the slopes (billed tokens per one of ours) of visible text and of hidden
thinking, which some models bill behind a signature; and how far single answers were above the
line.  The mean factor decides when to act, the worst one what must fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

KEPT = 32
"""How many samples are kept of a model: the newest."""
MIN_TOKENS = 1_000
"""Smaller requests are not sampled: their fixed parts outweigh their texts."""
SLOPES_APART = 0.02
"""The two slopes are estimated separately if the two sizes vary independently by this share."""
MIN_SHARE = 0.4
"""Share of our count: a lower billed count is not of the same text, but leaves out cached tokens or
text that a server truncated.  (Our factors go up to 1.5, and tokenizers differ by less than
that.)"""
OUTLIER = 1.25
"""An answer that bills more than this times what every other one does, or less than the inverse, is
left out: one false count must not change what all conversations of a model send."""
ALONE = 1.5
"""Billed tokens per one of ours: the only answer so far is not believed above this, or below its
inverse; tokenizers differ by less, and the next answer tells."""
MARGIN = 0.05
"""Safety margin on the worst factor of one sample; it shrinks with the root of their number."""


class UsageSample(NamedTuple):
    """One answer: our tokens of the visible and the signed parts sent, and the tokens billed."""

    visible: int
    signed: int
    billed: int


@dataclass(frozen=True)
class Factors:
    """Billed tokens per one of ours: the mean, the worst, and the number of answers."""

    mean: float
    worst: float
    answers: int


@dataclass(frozen=True)
class Calibration:
    """The newest samples of one model under one counter, oldest first."""

    samples: tuple[UsageSample, ...] = ()

    def add(self, sample: UsageSample) -> Calibration:
        """A calibration with one more sample; ``self`` if it is too small or billed too low."""
        if sample.visible + sample.signed < MIN_TOKENS or sample.billed <= 0:
            return self
        if sample.billed < MIN_SHARE * sample.visible:
            return self
        return Calibration((*self.samples, sample)[-KEPT:])

    def factors(self, visible: int, signed: int, capacity: int) -> Factors | None:
        """The factors for a request of these sizes (our tokens); None before the first answer.

        Factors below 1 are used only if a sample reached a quarter of ``capacity``: smaller ones
        may consist mostly of the fixed parts of a request.
        """
        if not self.samples or visible + signed <= 0:
            return None
        largest = max(s.visible + s.signed for s in self.samples)
        large_samples = [s for s in self.samples if 2 * (s.visible + s.signed) >= largest]
        large_samples = _without_outliers(large_samples)
        if not large_samples:
            return None
        text, thought = _slopes(large_samples)
        residues = _residues(large_samples)
        here = (text * visible + thought * signed) / (visible + signed)
        mean = here * sum(residues) / len(residues)
        worst = here * max(residues) * (1 + MARGIN / sqrt(len(large_samples)))
        if 4 * largest < capacity:
            mean, worst = max(mean, 1.0), max(worst, 1.0)
        return Factors(round(mean, 4), round(max(mean, worst), 4), len(self.samples))

    def as_list(self) -> list[list[int]]:
        """JSON-able, for a store."""
        return [list(sample) for sample in self.samples]

    @classmethod
    def from_list(cls, rows: Any) -> Calibration:
        """Read the value of ``as_list``; anything else gives an empty calibration."""
        try:
            samples = tuple(UsageSample(*(int(number) for number in row)) for row in rows)
        except (TypeError, ValueError):
            return cls()
        sound = (s for s in samples if s.visible + s.signed > 0 and min(s) >= 0 and s.billed)
        return cls(tuple(sound)[-KEPT:])


def _without_outliers(samples: list[UsageSample]) -> list[UsageSample]:
    """The samples without one that is far above all others, without one that is far below, and
    without the only one if no tokenizer counts like that."""
    if len(samples) == 1:
        (one,) = samples
        ratio = one.billed / (one.visible + one.signed)
        return samples if 1 / ALONE <= ratio <= ALONE else []
    return _without_farthest(_without_farthest(samples, max), min)


def _without_farthest(
    samples: list[UsageSample], extreme: Callable[[Iterable[float]], float]
) -> list[UsageSample]:
    """The samples without the highest (``max``) or lowest (``min``), if that is far from others."""
    residues = _residues(samples)
    number = residues.index(extreme(residues))
    others = samples[:number] + samples[number + 1 :]
    if not others:
        return samples
    text, thought = _slopes(others)
    one = samples[number]
    usual = extreme(_residues(others)) * (text * one.visible + thought * one.signed)
    is_far = max(one.billed / usual, usual / one.billed) > OUTLIER
    return others if is_far else samples


def _residues(samples: list[UsageSample]) -> list[float]:
    """Billed tokens of each sample as a share of what the slopes give."""
    text, thought = _slopes(samples)
    return [s.billed / (text * s.visible + thought * s.signed) for s in samples]


def _slopes(samples: list[UsageSample]) -> tuple[float, float]:
    """Billed tokens per one of ours, of (visible, signed) parts, by least squares."""
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
