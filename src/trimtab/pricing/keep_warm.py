"""Whether a request that only reads a cached prefix pays: shortly before it expires, while idle.

A ping costs one read of the prefix and starts its lifetime again.  It pays where the conversation
goes on within that time: then the prefix is read, not written anew.  How likely that is follows
from gaps that were seen before: of the same agent at the same hour, conversations that never went
on included.  The arithmetic is that of a lost cache (``economics``): tokens × (write − read).
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from trimtab.pricing import models

MARGIN = 30.0
"""Seconds before expiry at which a ping is sent: it takes a while to arrive."""
LEAST_GAPS = 20
"""Longer gaps than the present one that must have been seen; with fewer nothing is sent."""
MOST_GAPS = 2_000
"""Newest gaps that are kept of one agent and hour."""
DOLLARS_A_DAY = 1.0
PINGS_A_SESSION = 12
"""Caps where none are given.  Eleven pings of a prefix at 0.1 and 1.25 cost what they save."""


@dataclass(frozen=True, slots=True)
class PrefixPrices:
    """A cached prefix: US dollars a token to read and to write, and seconds that it lives."""

    read: float
    write: float
    lifetime: float

    def ping(self, tokens: int) -> float:
        """US dollars of one ping."""
        return tokens * self.read

    def lost(self, tokens: int) -> float:
        """US dollars that an expired prefix costs more than a warm one."""
        return tokens * (self.write - self.read)


def prices_for(model: str, *, hour: bool) -> PrefixPrices | None:
    """Of a model's breakpoints, of five minutes or an hour; None where the table has no price for
    writing, or nothing says how long a prefix lives."""
    priced = models.find(model)
    if priced is None or priced.input_price is None or priced.read is None:
        return None
    write = priced.write_1h if hour else priced.write
    # Only explicit breakpoints have a known lifetime.
    if write is None or priced.min_cached is None:
        return None
    dollars = priced.input_price / 1e6
    return PrefixPrices(priced.read * dollars, write * dollars, 3600.0 if hour else 300.0)


@dataclass(frozen=True, slots=True)
class PingPlan:
    """How many pings pay best from now on (0: none), and what they bring on average, in dollars."""

    pings: int
    dollars: float


def plan_pings(
    gaps: Sequence[float], idle: float, prices: PrefixPrices, tokens: int, most: int,
    read: int | None = None,
) -> PingPlan:  # fmt: skip
    """Plan pings for a conversation that has been idle so long and whose prefix expires ``MARGIN``
    seconds from now.

    ``gaps``: seconds, ascending; ``inf`` where a conversation never went on.  ``most``: pings that
    are left to it.  ``read``: so many of the tokens the next request will read, where a batch of
    edits is due with it that writes the rest anew.

    >>> warm = PrefixPrices(read=0.1e-6, write=1.25e-6, lifetime=300)
    >>> plan_pings([400.0] * 30, 270, warm, 100_000, 12).pings
    1
    >>> plan_pings([inf] * 30, 270, warm, 100_000, 12).pings
    0
    """
    behind = gaps[bisect_right(gaps, idle) :]
    if len(behind) < LEAST_GAPS:
        return PingPlan(0, 0.0)
    kept = tokens if read is None else min(read, tokens)
    count = len(behind) + 1  # one more that never goes on: what was seen is not all there is
    best, value, best_value = 0, 0.0, 0.0
    expires, ping = idle + MARGIN, idle
    for number in range(1, most + 1):
        away = count - bisect_right(behind, ping)
        later = ping + prices.lifetime
        saved = bisect_right(behind, later) - bisect_right(behind, expires)
        value += (saved * prices.lost(kept) - away * prices.ping(tokens)) / count
        if value > best_value:
            best, best_value = number, value
        expires, ping = later, later - MARGIN
    return PingPlan(best, best_value)


@dataclass
class LearnedGaps:
    """Seconds between requests by agent and hour of day (UTC), newest kept."""

    by_hour: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    by_agent: dict[str, list[float]] = field(default_factory=dict)

    def add(self, agent: str, when: float, gap: float) -> None:
        """A gap that began at a time (seconds since the epoch); ``inf``: the conversation ended."""
        for kept in (
            self.by_hour.setdefault((agent, _hour(when)), []),
            self.by_agent.setdefault(agent, []),
        ):
            insort(kept, gap)
            if len(kept) > MOST_GAPS:
                del kept[len(kept) // 2]  # from the middle: the tails are what decides

    def take(self, other: LearnedGaps) -> None:
        """Gaps that were learned elsewhere."""
        for (agent, hour), gaps in other.by_hour.items():
            for gap in gaps:
                self.add(agent, hour * 3600.0, gap)

    def of(self, agent: str, when: float, idle: float) -> Sequence[float]:
        """Gaps to decide by: of this hour, of the agent where these are too few."""
        hourly = self.by_hour.get((agent, _hour(when)), [])
        if len(hourly) - bisect_right(hourly, idle) >= LEAST_GAPS:
            return hourly
        return self.by_agent.get(agent, [])

    def as_dict(self) -> dict[str, Any]:
        """JSON-able (−1 where a conversation never went on)."""
        return {
            f"{agent}\t{hour}": [-1.0 if gap == inf else round(gap, 1) for gap in gaps]
            for (agent, hour), gaps in self.by_hour.items()
        }

    @classmethod
    def from_dict(cls, rows: Mapping[str, Sequence[float]]) -> LearnedGaps:
        """What ``as_dict`` gave."""
        learned = cls()
        for key, gaps in rows.items():
            agent, _, hour = key.partition("\t")
            for gap in gaps:
                learned.add(agent, int(hour) * 3600.0, inf if gap < 0 else gap)
        return learned


def _hour(when: float) -> int:
    return int(when // 3600) % 24
