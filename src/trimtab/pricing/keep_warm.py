"""Decides whether a ping pays: a request that only keeps the cached prefix of an idle conversation.

A ping is sent shortly before the prefix expires.  It costs one read of the prefix and restarts its
lifetime.  It pays if the conversation continues within that time, as the prefix is then read, not
written again.  The probability is estimated from earlier gaps of the same agent at the same hour,
including conversations that never continued.  A lost cache costs tokens × (write − read), as in
``economics``.
"""

from __future__ import annotations

import re
from bisect import bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from trimtab.pricing import models

MARGIN = 30.0
"""Seconds before expiry at which a ping is sent: it takes a while to arrive."""
MIN_GAPS = 20
"""How many gaps longer than the present one must be known; with fewer no ping is sent."""
MAX_GAPS = 2_000
"""How many gaps are kept of one agent and hour."""
DOLLARS_A_DAY = 1.0
PINGS_A_SESSION = 12
"""Default caps.  At prices 0.1 (read) and 1.25 (write), eleven pings cost what they save."""


@dataclass(frozen=True, slots=True)
class PrefixPrices:
    """Prices of a cached prefix: US dollars a token to read and write; its lifetime in seconds."""

    read: float
    write: float
    lifetime: float

    def ping(self, tokens: int) -> float:
        """US dollars of one ping."""
        return tokens * self.read

    def lost(self, tokens: int) -> float:
        """The extra cost in US dollars of an expired prefix."""
        return tokens * (self.write - self.read)


_HALF_AN_HOUR = re.compile(r"gpt-(5\.[6-9]|[6-9]|[1-9]\d)\b")
"""OpenAI keeps a prefix at least 30 minutes after its last use "for GPT-5.6 and later" (its page on
prompt caching)."""


def prices_for(model: str, *, hour: bool) -> PrefixPrices | None:
    """The prices of a model's cache: Claude's breakpoints of five minutes, or of an hour; the half
    hour of GPT-5.6 and later.  None if the table has no price for writing, or the lifetime of a
    prefix is unknown."""
    priced = models.find(model)
    if priced is None or priced.input_price is None or priced.read is None:
        return None
    dollars = priced.input_price / 1e6
    if priced.write is not None and _HALF_AN_HOUR.match(models.plain_name(model)):
        return PrefixPrices(priced.read * dollars, priced.write * dollars, 1800.0)
    write = priced.write_1h if hour else priced.write
    # Of the others only explicit breakpoints have a known lifetime.
    if write is None or priced.min_cached is None:
        return None
    return PrefixPrices(priced.read * dollars, write * dollars, 3600.0 if hour else 300.0)


@dataclass(frozen=True, slots=True)
class PingPlan:
    """The number of pings that saves most (0: none), and the expected saving in US dollars."""

    pings: int
    dollars: float


def plan_pings(
    gaps: Sequence[float], idle: float, prices: PrefixPrices, tokens: int, most: int,
    read: int | None = None,
) -> PingPlan:  # fmt: skip
    """Plan pings for a conversation idle for ``idle`` seconds whose prefix expires ``MARGIN``
    seconds from now.

    ``gaps``: seconds, ascending; ``inf`` for a conversation that never continued.  ``most``: the
    pings that its cap still allows.  ``read``: how many of ``tokens`` the next request will read,
    if it comes with a cut that writes the rest again.

    >>> warm = PrefixPrices(read=0.1e-6, write=1.25e-6, lifetime=300)
    >>> plan_pings([400.0] * 30, 270, warm, 100_000, 12).pings
    1
    >>> plan_pings([inf] * 30, 270, warm, 100_000, 12).pings
    0
    """
    behind = gaps[bisect_right(gaps, idle) :]
    if len(behind) < MIN_GAPS:
        return PingPlan(0, 0.0)
    cached = tokens if read is None else min(read, tokens)
    count = len(behind) + 1  # one more that never continues, as the sample is small
    best, value, best_value = 0, 0.0, 0.0
    expires, ping = idle + MARGIN, idle
    for number in range(1, most + 1):
        away = count - bisect_right(behind, ping)
        later = ping + prices.lifetime
        saved = bisect_right(behind, later) - bisect_right(behind, expires)
        value += (saved * prices.lost(cached) - away * prices.ping(tokens)) / count
        if value > best_value:
            best, best_value = number, value
        expires, ping = later, later - MARGIN
    return PingPlan(best, best_value)


@dataclass
class LearnedGaps:
    """Seconds between requests, by agent and hour of day (UTC)."""

    by_hour: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    by_agent: dict[str, list[float]] = field(default_factory=dict)

    def add(self, agent: str, when: float, gap: float) -> None:
        """Add a gap that began at ``when`` (seconds since the epoch); ``inf``: nothing followed."""
        for gaps in (
            self.by_hour.setdefault((agent, _hour(when)), []),
            self.by_agent.setdefault(agent, []),
        ):
            insort(gaps, gap)
            if len(gaps) > MAX_GAPS:
                del gaps[len(gaps) // 2]  # from the middle, because the tails decide

    def take(self, other: LearnedGaps) -> None:
        """Add all gaps of ``other``."""
        for (agent, hour), gaps in other.by_hour.items():
            for gap in gaps:
                self.add(agent, hour * 3600.0, gap)

    def of(self, agent: str, when: float, idle: float) -> Sequence[float]:
        """The gaps to decide by: of this hour, or of the agent's whole day if these are too few."""
        hourly = self.by_hour.get((agent, _hour(when)), [])
        if len(hourly) - bisect_right(hourly, idle) >= MIN_GAPS:
            return hourly
        return self.by_agent.get(agent, [])

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; −1 for a conversation that never continued."""
        return {
            f"{agent}\t{hour}": [-1.0 if gap == inf else round(gap, 1) for gap in gaps]
            for (agent, hour), gaps in self.by_hour.items()
        }

    @classmethod
    def from_dict(cls, rows: Mapping[str, Sequence[float]]) -> LearnedGaps:
        """Read the value of ``as_dict``."""
        learned = cls()
        for key, gaps in rows.items():
            agent, _, hour = key.partition("\t")
            for gap in gaps:
                learned.add(agent, int(hour) * 3600.0, inf if gap < 0 else gap)
        return learned


def _hour(when: float) -> int:
    return int(when // 3600) % 24
