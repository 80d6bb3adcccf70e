"""Measures savings as an experiment: reduced conversations against a control arm.

The arms are compared by cost per token that the client sent.  No arm changes that size, so long and
short conversations count alike.  The ratio of the two arms is estimated with the jackknife on its
logarithm; the interval uses Student's t with the degrees of freedom of the smaller arm, counted in
effective conversations (``_effective``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

from trimtab.pricing.call_usage import price_of
from trimtab.pricing.conversation_usage import ConversationUsage

MIN = 5
"""The fewest conversations in each arm; with fewer no savings are reported."""
CONFIDENCE = 0.95


class ArmUnit(NamedTuple):
    """One conversation: US dollars paid for its prompts, and tokens that the client sent."""

    dollars: float
    arrived: int


@dataclass(frozen=True)
class Savings:
    """The share of the prompts' cost that was saved, with its interval; None if there are too few
    conversations.  ``outgrown``: conversations of the control arm that no longer fitted and were
    reduced; they stay in their arm, so savings are underestimated."""

    treated: int
    control: int
    outgrown: int = 0
    saved: float | None = None
    low: float | None = None
    high: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        arms = f"{self.treated:,} conversations reduced, {self.control:,} left alone"
        if self.outgrown:
            arms += f" ({self.outgrown:,} of them until they no longer fitted)"
        if self.saved is None or self.low is None or self.high is None:
            return f"not measured: {arms}; it takes {MIN} of each that have a price"
        return (
            f"{100 * self.saved:.1f} % of what prompts would have cost, between "
            f"{100 * self.low:.1f} % and {100 * self.high:.1f} % at 95 % confidence; {arms}"
        )


def savings(treated: Sequence[ArmUnit], control: Sequence[ArmUnit], outgrown: int = 0) -> Savings:
    """Compare two arms."""
    arms = [[unit for unit in arm if unit.arrived > 0] for arm in (treated, control)]
    counts = Savings(len(arms[0]), len(arms[1]), outgrown)
    if min(len(arm) for arm in arms) < MIN or any(_cost(arm) <= 0 for arm in arms):
        return counts
    (ours, our_error), (theirs, their_error) = (_log_ratio(arm) for arm in arms)
    variance = our_error + their_error
    difference = ours - theirs
    if not variance:
        share = 1 - exp(difference)
        return Savings(len(arms[0]), len(arms[1]), outgrown, share, share, share)
    freedom = min(_effective(arm) for arm in arms) - 1
    width = student(0.5 + CONFIDENCE / 2, freedom) * sqrt(variance)
    return Savings(
        len(arms[0]), len(arms[1]), outgrown, 1 - exp(difference), 1 - exp(difference + width),
        1 - exp(difference - width),
    )  # fmt: skip


def arms_of(conversations: Iterable[ConversationUsage]) -> Savings | None:
    """Savings by the arm that each conversation was drawn for; None if none was drawn."""
    units: dict[str, tuple[str, float, int]] = {}
    for conversation in conversations:
        if not conversation.arm:
            continue
        arm, dollars, arrived = units.get(conversation.id, (conversation.arm, 0.0, 0))
        for row in conversation:
            if cost := price_of(row.usage, above_tier=row.above_tier):
                dollars, arrived = dollars + cost.prompt, arrived + row.arrived
        arm = max(arm, conversation.arm, key=len)  # "control, outgrown" once it is
        units[conversation.id] = (arm, dollars, arrived)
    if not units:
        return None
    treated = [ArmUnit(d, a) for arm, d, a in units.values() if arm == "treated"]
    control = [ArmUnit(d, a) for arm, d, a in units.values() if arm != "treated"]
    outgrown = sum(arm == "control, outgrown" for arm, _, _ in units.values())
    return savings(treated, control, outgrown)


def _cost(arm: Sequence[ArmUnit]) -> float:
    return sum(unit.dollars for unit in arm)


def _effective(arm: Sequence[ArmUnit]) -> float:
    """The effective number of conversations (Kish's effective sample size): how many of equal
    length would carry the same information."""
    arrived = sum(unit.arrived for unit in arm)
    return float(arrived**2 / sum(unit.arrived**2 for unit in arm))


def _log_ratio(arm: Sequence[ArmUnit]) -> tuple[float, float]:
    """(logarithm of dollars per token, its variance by the jackknife)."""
    dollars, arrived, count = _cost(arm), sum(unit.arrived for unit in arm), len(arm)
    without = [
        log(max(dollars - unit.dollars, 1e-12) / max(arrived - unit.arrived, 1)) for unit in arm
    ]
    mean = sum(without) / count
    variance = (count - 1) / count * sum((ratio - mean) ** 2 for ratio in without)
    return log(dollars / arrived), variance


def student(share: float, freedom: float) -> float:
    """The quantile of Student's t (Cornish and Fisher's expansion; off by less than 1 % from 3
    degrees of freedom on).

    >>> round(student(0.975, 10), 2)
    2.23
    """
    z, n = NormalDist().inv_cdf(share), max(freedom, 1.0)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / n**power for power, term in enumerate(terms, 1))
