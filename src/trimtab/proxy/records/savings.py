"""Estimates what the edits of a conversation saved in money, turn by turn, under a price table.

The estimate compares what each request would have cost as it came, with all that had come before
in the cache, with the cost of what was sent, at list prices.  It is not what a provider charged.
"""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.pricing import models
from trimtab.pricing.prices import Prices, named


@dataclass(frozen=True, slots=True)
class RequestSizes:
    """One request in tokens: as it came, as it was sent, and of that behind the first new edit."""

    when: float
    arrived: int
    sent: int
    rewritten: int = 0


@dataclass(frozen=True, slots=True)
class SavingsEstimator:
    """One price table."""

    prices: Prices

    @classmethod
    def of(cls, name: str | None) -> SavingsEstimator | None:
        """The table with this name; None where none is named.  Raises InvalidSetting."""
        return None if name is None else cls(named(name))

    def saved(self, model: str, before: RequestSizes | None, now: RequestSizes) -> float:
        """US dollars that one request cost less; 0 where its model's price is not known, and for
        the first one: nobody knows what stood in the cache."""
        listed = models.find(model) if model else None
        if before is None or listed is None or listed.input_price is None:
            return 0.0
        gap = now.when - before.when
        standing = min(before.sent, now.sent)
        if now.rewritten:
            standing = min(standing, now.sent - now.rewritten)
        whole = self.prices.prompt(now.arrived, min(before.arrived, now.arrived), gap)
        paid = self.prices.prompt(now.sent, max(standing, 0), gap)
        return (whole - paid) * listed.input_price / 1e6
