"""What a conversation's edits saved in money, turn by turn, under a price table.

Knows a table, sizes and times of turns, and the models' list prices.  An estimate: what each
request would have cost as it came, with all that had come before in the cache, beside what was
sent.  Does not know what a provider really charged.
"""

from __future__ import annotations

from dataclasses import dataclass

from trimtab import models
from trimtab.money.prices import Prices, named


@dataclass(frozen=True, slots=True)
class Sizes:
    """One request in tokens: as it came, as it was sent, and of that behind the first new edit."""

    when: float
    arrived: int
    sent: int
    rewritten: int = 0


@dataclass(frozen=True, slots=True)
class Bill:
    """One price table."""

    prices: Prices

    @classmethod
    def of(cls, name: str | None) -> Bill | None:
        """The table with this name; None where none is named.  Raises InvalidSetting."""
        return None if name is None else cls(named(name))

    def saved(self, model: str, before: Sizes | None, now: Sizes) -> float:
        """US dollars that one request cost less; 0 where its model's price is not known, and for
        the first one: nobody knows what stood in the cache."""
        known = models.find(model) if model else None
        if before is None or known is None or known.input_price is None:
            return 0.0
        gap = now.when - before.when
        standing = min(before.sent, now.sent)
        if now.rewritten:
            standing = min(standing, now.sent - now.rewritten)
        whole = self.prices.prompt(now.arrived, min(before.arrived, now.arrived), gap)
        paid = self.prices.prompt(now.sent, max(standing, 0), gap)
        return (whole - paid) * known.input_price / 1e6
