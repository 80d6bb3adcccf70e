"""What a batch of edits does to the bill: whether it pays, when it is free, what it comes to.

Knows a price table, sizes and how a batch moves a cached prefix.  Does not know any provider or
clock: how long the cache lay idle is told.  Money is in plain input tokens; a price makes it
currency.

Within one batch only its earliest edit costs: what stands behind it is written again instead of
read.  So money alone would always cut deeper; how deep is the target's business, which weighs what
is lost.  What money decides is *when*: at the trigger, or as soon as the cache is cold, when all is
written again anyway; and *whether*: not for less than the next turn brings.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any

from trimtab.model import Edit, Transcript
from trimtab.money.forecast import growth
from trimtab.money.prices import Prices
from trimtab.planning.plan import Bounds, Planner
from trimtab.reading.usage import Usage

COLD_SECONDS = 3600
"""Without a price table: the longest that any provider in our tables keeps a prefix by default."""
COLD_SHARE = 0.5
"""A cold batch needs so much of the way from the target to the trigger."""

LEAST_SHARE = 0.03
"""Of what may be sent: a batch that saves so much is worth a lost cache whatever comes next."""


@dataclass(frozen=True)
class Batch:
    """What one batch changes.  ``rewritten``: tokens behind its earliest edit, as they are sent;
    ``saved``: tokens that each request from now on is smaller by; ``cold``: whether the prefix had
    expired."""

    rewritten: int
    saved: int
    cold: bool = False


@dataclass(frozen=True)
class Money:
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


def once(prices: Prices, batch: Batch) -> float:
    """What the request that brings a batch costs more than it would have without.

    >>> from trimtab.money.prices import TABLES
    >>> round(once(TABLES["claude-5m"], Batch(rewritten=10_000, saved=5_000)))
    11000
    """
    read, write = prices.read, prices.write
    if batch.cold or read >= 1.0:
        return -batch.saved * (write if batch.cold else 1.0)
    return batch.rewritten * (write - read) - batch.saved * read


def break_even(prices: Prices, batch: Batch) -> float:
    """After how many later requests a batch has paid: 0 where at once, ``inf`` where never."""
    cost, each = once(prices, batch), batch.saved * prices.read
    return 0.0 if cost <= 0 else inf if each <= 0 else cost / each


def money(prices: Prices, batch: Batch, requests: int, dollars_per_million: float | None) -> Money:
    """A batch under a table, over so many requests to come."""
    cost, each, even = once(prices, batch), batch.saved * prices.read, break_even(prices, batch)
    gain = requests * each - cost
    dollars = None if dollars_per_million is None else round(gain * dollars_per_million / 1e6, 6)
    return Money(
        prices.name, batch.rewritten, batch.saved, batch.cold, round(cost), round(each),
        None if even == inf else -int(-even // 1), requests, round(gain), dollars,
    )  # fmt: skip


def requests_left(transcript: Transcript) -> int:
    """How many requests are still to come: about as many as there were, which is what a session of
    unknown length comes to on average."""
    return max(1, sum(1 for message in transcript.messages if message.role == "assistant"))


def cold(idle_seconds: float | None, prices: Prices | None) -> bool:
    """Whether the cached prefix has expired."""
    lives = COLD_SECONDS if prices is None else prices.ttl_seconds
    return idle_seconds is not None and lives is not None and idle_seconds > lives


def when_cold(bounds: Bounds) -> Bounds:
    """Bounds for a request whose cache has expired: a batch that would come soon comes now, when
    it costs nothing to write again."""
    share = bounds.target + COLD_SHARE * (1.0 - bounds.target)
    return replace(bounds, trigger=min(bounds.trigger, int(bounds.trigger * share)))


def worth(transcript: Transcript, usage: Usage, capacity: int, saved: int) -> bool:
    """Whether a batch that is not forced saves as much as the next turn will bring, or a share of
    what may be sent: else the cache is lost again at once, and again at the turn after."""
    return saved > min(growth(transcript, usage, 1) or 0, int(capacity * LEAST_SHARE))


def batch_of(plan: Planner, new: tuple[Edit, ...], before: int, after: int, cold: bool) -> Batch:
    """What the new edits change: ``before`` and ``after`` in tokens of the whole request."""
    refs = plan.transcript.refs
    numbers = [refs[ref].message for edit in new for ref in edit.targets if ref in refs]
    return Batch(max(0, after - _until(plan, min(numbers, default=0))), before - after, cold)


def _until(plan: Planner, number: int) -> int:
    """Tokens that stand before a message, as they are sent."""
    transcript, usage, board = plan.transcript, plan.usage, plan.board
    tokens = usage.head(transcript)
    for index in range(max(0, number)):
        places = [place for place in transcript.places_in(index) if not board.gone(place)]
        if places:
            tokens += usage.overhead(transcript.messages[index])
            tokens += sum(board.cost(place) for place in places)
    notes = [run for run in board.runs if transcript.groups[run.first].first < number]
    return tokens + sum(usage.counter(run.note) for run in notes)
