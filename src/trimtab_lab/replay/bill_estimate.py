"""Estimates what requests would be billed: their tokens, and how many come from the cache.

Two things are learned from billed calls.  One is a line from our count to the provider's; its
intercept covers system text and tools, which no log contains.  The other is the share of a repeated
prefix that is read from the cache, by the time since the last request.

The method's error is measured on what was really sent, by comparing the estimate with the bill.
The calls are split into two halves and each half is estimated from the other, so no call takes part
in its own estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.pricing.call_usage import CallUsage

MIN_POINTS = 6
"""A conversation with fewer calls uses the line of all conversations of its agent and model."""
SLOPES = (0.3, 6.0)
"""The range of billed tokens per one of ours in all logs that we have seen."""
SOON = 60.0
"""Seconds within which no cached prefix expires."""
HOUR, FIVE_MINUTES = 3600.0, 300.0
GUESS = {"first": 0.0, "soon": 1.0, "live": 1.0, "late": 0.0, "gone": 0.0}
"""Shares read from the cache if there are no billed calls to learn them from."""


class SizedCall(NamedTuple):
    """The size of a request in our tokens: ``own`` is the whole, ``shared`` the prefix that the
    previous request had too.

    ``gap``: seconds since the previous request, −1 if unknown; ``first``: there was none.
    """

    own: int
    shared: int
    gap: float
    first: bool


class TokenLine(NamedTuple):
    """Billed tokens of a prompt: ``head + slope × ours``."""

    head: float
    slope: float

    def tokens(self, own: float) -> float:
        """``own`` (our tokens) in the provider's tokens."""
        return max(0.0, self.head + self.slope * own)


@dataclass
class CacheShares:
    """Sums for three shares: ``read``, of repeated tokens, those read from the cache, by age;
    ``plain``, of all others, those billed as plain input; ``hour``, of those written to the cache,
    those written for an hour."""

    read: dict[str, list[float]] = field(default_factory=dict)
    plain: list[float] = field(default_factory=lambda: [0.0, 0.0])
    hour: list[float] = field(default_factory=lambda: [0.0, 0.0])

    def add(self, age: str, shared: float, usage: CallUsage) -> None:
        """Learn from one billed call."""
        sums = self.read.setdefault(age, [0.0, 0.0])
        sums[0] += usage.read
        sums[1] += shared
        self.plain[0] += usage.uncached
        self.plain[1] += usage.prompt - usage.read
        self.hour[0] += usage.written_1h
        self.hour[1] += usage.written + usage.written_1h

    def share(self, age: str) -> float:
        """The share of a repeated prefix of this age that is read from the cache, 0 to 1."""
        read, shared = self.read.get(age, (0.0, 0.0))
        return read / shared if shared else GUESS[age]

    def usage(self, model: str, prompt: float, shared: float, age: str) -> CallUsage:
        """The estimated usage of a prompt of ``prompt`` tokens with a repeated prefix of
        ``shared``."""
        read = min(self.share(age) * shared, prompt)
        rest = prompt - read
        plain = rest * (self.plain[0] / self.plain[1] if self.plain[1] else 1.0)
        hour = (rest - plain) * (self.hour[0] / self.hour[1] if self.hour[1] else 0.0)
        return CallUsage(model, round(plain), round(read), round(rest - plain - hour), round(hour))


def age_of(call: SizedCall, lifetime: float) -> str:
    """The age of the cached prefix: first | soon | live | late | gone."""
    if call.first:
        return "first"
    if call.gap <= SOON:
        return "soon"
    if call.gap <= lifetime:
        return "live"
    return "late" if call.gap <= max(HOUR, lifetime) else "gone"


def lifetime_of(usages: Iterable[CallUsage]) -> float:
    """The lifetime of a prefix in seconds: an hour if most tokens are written for an hour."""
    hour = five = 0
    for usage in usages:
        hour, five = hour + usage.written_1h, five + usage.written
    return HOUR if hour > five else FIVE_MINUTES


def fitted_line(points: Sequence[tuple[int, int]]) -> TokenLine | None:
    """The least-squares line over (ours, billed); None if the points don't determine one."""
    count = len(points)
    if count < MIN_POINTS:
        return None
    x, y = sum(p[0] for p in points) / count, sum(p[1] for p in points) / count
    spread = sum((p[0] - x) ** 2 for p in points)
    if not spread:
        return None
    slope = sum((p[0] - x) * (p[1] - y) for p in points) / spread
    return TokenLine(y - slope * x, slope) if SLOPES[0] <= slope <= SLOPES[1] else None


def ratio_line(points: Sequence[tuple[int, int]]) -> TokenLine | None:
    """The line through zero; None without points."""
    own = sum(p[0] for p in points)
    return TokenLine(0.0, sum(p[1] for p in points) / own) if own else None


Point = tuple[SizedCall, CallUsage]


@dataclass
class Method:
    """Lines and cache shares learned from many conversations.

    ``lines`` by conversation, ``pooled`` by group of conversations (agent and model), ``shares``
    by group and lifetime.
    """

    lines: dict[str, TokenLine] = field(default_factory=dict)
    pooled: dict[str, TokenLine] = field(default_factory=dict)
    shares: dict[tuple[str, float], CacheShares] = field(default_factory=dict)
    lifetimes: dict[str, float] = field(default_factory=dict)

    @classmethod
    def learn(
        cls,
        calls: Mapping[str, Sequence[Point]],
        groups: Mapping[str, str],
        half: int | None = None,
    ) -> Method:
        """Learn from ``calls``, those of each conversation in order.

        ``groups``: the group of each conversation; ``half``: the half of the calls to learn from;
        None: all."""
        own = cls()
        kept = {
            name: [p for n, p in enumerate(points) if half is None or half_of(order, n) == half]
            for order, (name, points) in enumerate(calls.items())
        }
        by_group: dict[str, list[tuple[int, int]]] = {}
        for name, points in kept.items():
            pairs = [(size.own, usage.prompt) for size, usage in points]
            by_group.setdefault(groups[name], []).extend(pairs)
            if line := fitted_line(pairs):
                own.lines[name] = line
        for group, pairs in by_group.items():
            if line := fitted_line(pairs) or ratio_line(pairs):
                own.pooled[group] = line
        for name, every in calls.items():
            own.lifetimes[name] = lifetime_of(usage for _, usage in every)
            key = groups[name], own.lifetimes[name]
            shares = own.shares.setdefault(key, CacheShares())
            if (line := own.line(name, groups[name])) is None:
                continue
            for size, usage in kept[name]:
                shared = line.tokens(size.shared)
                shares.add(age_of(size, own.lifetimes[name]), shared, usage)
        return own

    def line(self, name: str, group: str) -> TokenLine | None:
        """The line of a conversation, or of its group if it has none of its own."""
        return self.lines.get(name) or self.pooled.get(group)

    def estimate(self, name: str, group: str, size: SizedCall, model: str) -> CallUsage | None:
        """The estimated usage of a request; None if no line was learned for it."""
        line = self.line(name, group)
        if line is None:
            return None
        lifetime = self.lifetimes[name]
        prompt = line.tokens(size.own)
        shared = min(line.tokens(size.shared), prompt)
        shares = self.shares[group, lifetime]
        return shares.usage(model, prompt, shared, age_of(size, lifetime))


def half_of(conversation: int, call: int) -> int:
    """The half that a call belongs to; alternating by conversation, so both have first calls."""
    return (conversation + call) % 2


def halves(
    calls: Mapping[str, Sequence[Point]], groups: Mapping[str, str]
) -> tuple[Method, Method]:
    """(method for calls of half 0, learned from half 1; method for half 1, learned from 0)."""
    return Method.learn(calls, groups, 1), Method.learn(calls, groups, 0)
