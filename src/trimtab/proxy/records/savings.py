"""Estimates what the edits of a conversation saved in money, turn by turn, under a price table.

The estimate compares two costs at list prices: of each request as the client sent it, with all of
the earlier request cached, and of the request that was sent.  It is not what a provider charged.
"""

from __future__ import annotations

from dataclasses import dataclass

from trimtab.pricing import models
from trimtab.pricing.prices import Prices, named
from trimtab.proxy.records.request_record import RequestRecord


@dataclass(frozen=True, slots=True)
class SavingsEstimator:
    """Estimates savings under one price table."""

    prices: Prices

    @classmethod
    def of(cls, name: str | None) -> SavingsEstimator | None:
        """An estimator for the named table; None without a name.  Raises InvalidSetting."""
        return None if name is None else cls(named(name))

    def saved(self, model: str, before: RequestRecord | None, now: RequestRecord) -> float:
        """US dollars that one request cost less; 0 for a model without a known price, and for a
        session's first request, as the state of the cache is unknown then."""
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
