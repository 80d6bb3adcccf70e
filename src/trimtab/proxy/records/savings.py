"""Estimates what the edits of a conversation cost or saved, turn by turn, under a price table.

The estimate compares two costs at list prices: of each request as the client sent it, with all of
the earlier request cached, and of the request that was sent.  It is not what a provider charged.
"""

from __future__ import annotations

from trimtab.pricing import models
from trimtab.pricing.prices import Prices
from trimtab.proxy.records.request_record import RequestRecord


def prompt_dollars(
    prices: Prices, model: str, before: RequestRecord | None, now: RequestRecord
) -> tuple[float, float]:
    """US dollars of one prompt: as sent, and unshortened.  Both 0 for a model without a known
    price, and for a session's first request, as the state of the cache is unknown then."""
    listed = models.find(model) if model else None
    if before is None or listed is None or listed.input_price is None:
        return 0.0, 0.0
    gap = now.when - before.when
    cached = min(before.sent, now.sent)
    if now.rewritten:
        cached = min(cached, now.sent - now.rewritten)
    whole = prices.prompt(now.arrived, min(before.arrived, now.arrived), gap)
    sent = prices.prompt(now.sent, max(cached, 0), gap)
    return sent * listed.input_price / 1e6, whole * listed.input_price / 1e6
