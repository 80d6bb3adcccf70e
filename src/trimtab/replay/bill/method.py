"""Estimates what requests would be billed: their tokens, and how many come from the cache.

Two things are learned from billed calls: a line from our count to the provider's (its intercept is
what no log shows: system text and tools), and how much of a beginning that was sent before is read
from the cache, by the time since.  Applied to what was really sent, the estimate is compared with
the bill: every second call is estimated from the others and the other way round, so that no call
takes part in its own estimate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.pricing.call_usage import CallUsage

LEAST_POINTS = 6
"""With fewer calls a conversation takes the line of all of its agent and model."""
SLOPES = (0.3, 6.0)
"""Billed tokens for one of ours lie between these, in all logs that we have seen."""
SOON = 60.0
"""Seconds in which nothing expires."""
HOUR, FIVE_MINUTES = 3600.0, 300.0
GUESS = {"first": 0.0, "soon": 1.0, "live": 1.0, "late": 0.0, "gone": 0.0}
"""Shares read from the cache where no billed call tells."""


class SizedCall(NamedTuple):
    """A request in our tokens: all of it, and its beginning that the request before it had, too.

    ``gap``: seconds since that one, −1 unknown; ``first``: there was none.
    """

    own: int
    shared: int
    gap: float
    first: bool


@dataclass(frozen=True)
class TokenLine:
    """Billed tokens of a prompt: ``head + slope × ours``."""

    head: float
    slope: float

    def tokens(self, own: float) -> float:
        """In the provider's tokens."""
        return max(0.0, self.head + self.slope * own)


@dataclass
class CacheShares:
    """Of tokens sent before, those that were read from the cache, by the time since; and of the
    rest, those billed as plain input."""

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
        """Read from the cache, 0 to 1."""
        read, shared = self.read.get(age, (0.0, 0.0))
        return read / shared if shared else GUESS[age]

    def usage(self, model: str, prompt: float, shared: float, age: str) -> CallUsage:
        """A prompt of so many tokens as it would be billed."""
        read = min(self.share(age) * shared, prompt)
        rest = prompt - read
        plain = rest * (self.plain[0] / self.plain[1] if self.plain[1] else 1.0)
        hour = (rest - plain) * (self.hour[0] / self.hour[1] if self.hour[1] else 0.0)
        return CallUsage(model, round(plain), round(read), round(rest - plain - hour), round(hour))


def age_of(call: SizedCall, lifetime: float) -> str:
    """How old the cached beginning is: first | soon | live | late | gone."""
    if call.first:
        return "first"
    if call.gap <= SOON:
        return "soon"
    if call.gap <= lifetime:
        return "live"
    return "late" if call.gap <= max(HOUR, lifetime) else "gone"


def lifetime_of(usages: Iterable[CallUsage]) -> float:
    """Seconds that these calls keep a prefix: an hour where most is written for an hour."""
    hour = five = 0
    for usage in usages:
        hour, five = hour + usage.written_1h, five + usage.written
    return HOUR if hour > five else FIVE_MINUTES


def fitted_line(points: Sequence[tuple[int, int]]) -> TokenLine | None:
    """Least squares over (ours, billed); None where these don't tell a line."""
    count = len(points)
    if count < LEAST_POINTS:
        return None
    x, y = sum(p[0] for p in points) / count, sum(p[1] for p in points) / count
    spread = sum((p[0] - x) ** 2 for p in points)
    if not spread:
        return None
    slope = sum((p[0] - x) * (p[1] - y) for p in points) / spread
    return TokenLine(y - slope * x, slope) if SLOPES[0] <= slope <= SLOPES[1] else None


def ratio_line(points: Sequence[tuple[int, int]]) -> TokenLine | None:
    """Through zero; None without points."""
    own = sum(p[0] for p in points)
    return TokenLine(0.0, sum(p[1] for p in points) / own) if own else None


Point = tuple[SizedCall, CallUsage]


@dataclass
class Method:
    """What was learned of many conversations, for the calls of one half or of both.

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
        """``calls``: of each conversation, in order; ``groups``: which each belongs to; ``half``:
        only from calls of this half; None: from all."""
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
        """The line of a conversation, its group's where it has none of its own."""
        return self.lines.get(name) or self.pooled.get(group)

    def estimate(self, name: str, group: str, size: SizedCall, model: str) -> CallUsage | None:
        """What a request would be billed; None where nothing was learned to tell."""
        line = self.line(name, group)
        if line is None:
            return None
        lifetime = self.lifetimes[name]
        prompt = line.tokens(size.own)
        shared = min(line.tokens(size.shared), prompt)
        shares = self.shares[group, lifetime]
        return shares.usage(model, prompt, shared, age_of(size, lifetime))


def half_of(conversation: int, call: int) -> int:
    """Which half a call belongs to; first calls are in both, of one conversation or another."""
    return (conversation + call) % 2


def halves(
    calls: Mapping[str, Sequence[Point]], groups: Mapping[str, str]
) -> tuple[Method, Method]:
    """What estimates calls of half 0 (learned from half 1), and of half 1."""
    return Method.learn(calls, groups, 1), Method.learn(calls, groups, 0)
