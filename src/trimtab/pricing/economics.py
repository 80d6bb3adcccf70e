"""What a batch of edits does to the bill: whether it pays, when it is free, what it costs or saves.

Costs are in plain input tokens; a price converts them to currency.  The caller passes in how long
the cache has been idle.

Within one batch only its earliest edit costs: what stands behind it is written again instead of
read.  So cost alone would always cut deeper; how deep is decided by the target, which weighs what
is lost.  Cost decides *when*: at the trigger, or as soon as the cache is cold, when everything is
written again anyway; and *whether*: not for less than the next turn adds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from trimtab.planning.dead_weight import SentTokens
from trimtab.planning.planner import Bounds, Planner
from trimtab.pricing.forecast import growth
from trimtab.pricing.prices import Prices
from trimtab.transcript.model import Edit
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript

COLD_SECONDS = 3600
"""Without a price table: the longest that any provider in our tables keeps a prefix by default."""
COLD_SHARE = 0.5
"""A cold batch needs so much of the way from the target to the trigger."""

LEAST_SHARE = 0.03
"""Of what may be sent: a batch that saves so much is worth a lost cache whatever comes next."""

LEAST_SAVED = 24
"""Tokens: a batch that is not forced saves more, or is none.  A note costs about as much, so that
what was fitted once into its minimum is not fitted again for a shorter note."""


@dataclass(frozen=True)
class EditBatch:
    """What one batch changes.  ``rewritten``: tokens behind its earliest edit, as they are sent;
    ``saved``: tokens that each request from now on is smaller by; ``cold``: whether the prefix had
    expired."""

    rewritten: int
    saved: int
    cold: bool = False


@dataclass(frozen=True)
class BatchCost:
    """A batch under a price table, in plain input tokens.

    ``once``: what the request that brings it costs more (negative: less); ``each``: what every
    later one costs less; ``break_even``: after how many requests it has paid (None: never);
    ``requests`` that are expected still to come; ``gain``: what it brings over these; ``dollars``:
    the same, where the model's price is known.
    """

    prices: str
    rewritten: int
    saved: int
    cold: bool
    once: int
    each: int
    break_even: int | None
    requests: int
    gain: int
    dollars: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)

    def __str__(self) -> str:
        where = "the cache was cold" if self.cold else f"{self.rewritten:,} tokens written again"
        paid = "it never pays" if self.break_even is None else (
            f"it pays after {self.break_even:,} request{'s' * (self.break_even != 1)}"
            if self.break_even else "it pays at once"
        )  # fmt: skip
        worth = f"{self.gain:+,} tokens of plain input"
        if self.dollars is not None:
            worth += f", {self.dollars:+.4f} US dollars"
        return (
            f"{self.prices}: {where}, {self.saved:,} fewer in each request; {paid}; over "
            f"{self.requests:,} more: {worth}"
        )


def extra_cost(prices: Prices, batch: EditBatch) -> float:
    """What the request that brings a batch costs more than it would have without.

    >>> from trimtab.pricing.prices import TABLES
    >>> round(extra_cost(TABLES["claude-5m"], EditBatch(rewritten=10_000, saved=5_000)))
    11000
    """
    read, write = prices.read, prices.write
    if batch.cold or read >= 1.0:
        return -batch.saved * (write if batch.cold else 1.0)
    return batch.rewritten * (write - read) - batch.saved * read


def break_even(prices: Prices, batch: EditBatch) -> float:
    """After how many later requests a batch has paid: 0 where at once, ``inf`` where never."""
    cost, each = extra_cost(prices, batch), batch.saved * prices.read
    return 0.0 if cost <= 0 else inf if each <= 0 else cost / each


def batch_cost(
    prices: Prices, batch: EditBatch, requests: int, dollars_per_million: float | None
) -> BatchCost:
    """A batch under a table, over so many requests to come."""
    cost, each, even = (
        extra_cost(prices, batch),
        batch.saved * prices.read,
        break_even(prices, batch),
    )
    gain = requests * each - cost
    dollars = None if dollars_per_million is None else round(gain * dollars_per_million / 1e6, 6)
    return BatchCost(
        prices.name, batch.rewritten, batch.saved, batch.cold, round(cost), round(each),
        None if even == inf else -int(-even // 1), requests, round(gain), dollars,
    )  # fmt: skip


def requests_left(transcript: Transcript) -> int:
    """How many requests are still to come: about as many as there were, which is what a session of
    unknown length comes to on average."""
    return max(1, sum(1 for message in transcript.messages if message.role == "assistant"))


def is_cache_cold(idle_seconds: float | None, prices: Prices | None) -> bool:
    """Whether the cached prefix has expired."""
    lives = COLD_SECONDS if prices is None else prices.ttl_seconds
    return idle_seconds is not None and lives is not None and idle_seconds > lives


def bounds_for_cold_cache(bounds: Bounds) -> Bounds:
    """Bounds for a request whose cache has expired: a batch that would come soon comes now, when
    it costs nothing to write again."""
    share = bounds.target + COLD_SHARE * (1.0 - bounds.target)
    return replace(bounds, trigger=min(bounds.trigger, int(bounds.trigger * share)))


def is_worthwhile(transcript: Transcript, usage: TokenSizes, capacity: int, saved: int) -> bool:
    """Whether a batch that is not forced saves as much as the next turn will bring, or a share of
    what may be sent: else the cache is lost again at once, and again at the turn after."""
    least = min(growth(transcript, usage, 1) or 0, int(capacity * LEAST_SHARE))
    return saved > max(least, LEAST_SAVED)


def edit_batch(
    plan: Planner, new: tuple[Edit, ...], before: int, after: int, cold: bool
) -> EditBatch:
    """What the new edits change: ``before`` and ``after`` in tokens of the whole request."""
    refs = plan.transcript.refs
    numbers = [refs[ref].message for edit in new for ref in edit.targets if ref in refs]
    return EditBatch(
        max(0, after - SentTokens(plan).before(min(numbers, default=0))), before - after, cold
    )
