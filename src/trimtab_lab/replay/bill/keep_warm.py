"""Simulates pings that keep a prompt cache warm, on recorded conversations with times.

Gaps are learned from other sources than the one simulated (with a single source, from the other
half of its conversations).  The oracle knows when each conversation continues and has no cap.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import ceil, inf
from typing import Any

from trimtab.pricing.keep_warm import (
    MARGIN,
    PINGS_A_SESSION,
    LearnedGaps,
    PrefixPrices,
    plan_pings,
    prices_for,
)
from trimtab.reporting.columns import aligned
from trimtab_lab.replay.bill.conversations import BilledConversation

CAPS = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, inf)
"""The caps, in US dollars a day, for which results are shown."""
MIN_SESSIONS = 20
DRAWS = 1_000


@dataclass(frozen=True)
class WarmCall:
    """One request: its time, and the size of the prefix it leaves in the cache."""

    when: float
    tokens: int
    prices: PrefixPrices


@dataclass(frozen=True)
class WarmSession:
    """One conversation with times."""

    id: str
    agent: str
    source: str
    calls: tuple[WarmCall, ...]

    @property
    def gaps(self) -> list[tuple[WarmCall, float]]:
        """Each request with the seconds until the next one; ``inf`` behind the last."""
        ends = [call.when for call in self.calls[1:]] + [inf]
        return [
            (call, max(0.0, end - call.when)) for call, end in zip(self.calls, ends, strict=True)
        ]


@dataclass
class WarmResult:
    """The result of pings over all sessions, in US dollars."""

    cap: float
    sessions: int = 0
    pings: int = 0
    hits: int = 0
    """Gaps that pings bridged."""
    cost: float = 0.0
    saved: float = 0.0
    oracle: float = 0.0
    by_session: list[float] = field(default_factory=list)
    """Net dollars of each."""
    max_a_day: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @property
    def net(self) -> float:
        """Saved minus spent."""
        return self.saved - self.cost

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "cap_a_day": None if self.cap == inf else self.cap, "sessions": self.sessions,
            "pings": self.pings, "gaps_bridged": self.hits, "cost": round(self.cost, 4),
            "saved": round(self.saved, 4), "net": round(self.net, 4),
            "net_interval": [round(self.low, 4), round(self.high, 4)],
            "oracle": round(self.oracle, 4),
            "of_oracle": round(self.net / self.oracle, 3) if self.oracle else None,
            "max_spent_a_day": round(self.max_a_day, 4),
        }  # fmt: skip


def warm_sessions(billed: Iterable[BilledConversation]) -> list[WarmSession]:
    """The conversations whose log has times and whose prefixes have a known lifetime."""
    sessions = []
    for one in billed:
        hour = sum(c.usage.written_1h for c in one.calls) > sum(c.usage.written for c in one.calls)
        calls = []
        for call in one.counted:
            prices = prices_for(call.usage.model, hour=hour)
            kept = call.usage.read + call.usage.written + call.usage.written_1h
            if call.when is not None and prices is not None and kept:
                calls.append(WarmCall(call.when, kept, prices))
        if calls:
            calls.sort(key=lambda call: call.when)
            sessions.append(WarmSession(one.id, one.agent, one.source, tuple(calls)))
    return sessions


def learn(sessions: Iterable[WarmSession]) -> LearnedGaps:
    """The gaps of these sessions."""
    gaps = LearnedGaps()
    for one in sessions:
        for call, gap in one.gaps:
            gaps.add(one.agent, call.when, gap)
    return gaps


def held_out(sessions: Sequence[WarmSession]) -> list[tuple[list[WarmSession], LearnedGaps]]:
    """(group of sessions, gaps learned from all other groups); a group is a source, or half of a
    single source."""
    groups: dict[str, list[WarmSession]] = {}
    for session in sessions:
        groups.setdefault(session.source, []).append(session)
    if len(groups) < 2:
        groups = {"0": list(sessions[::2]), "1": list(sessions[1::2])}
    return [
        (group, learn(session for name in groups if name != own for session in groups[name]))
        for own, group in groups.items()
    ]


def play(sessions: Sequence[WarmSession], cap: float, pings: int = PINGS_A_SESSION) -> WarmResult:
    """Simulate all sessions, each with gaps learned from other groups.  ``cap``: US dollars a day;
    ``pings``: the most pings in a session."""
    result, spent = WarmResult(cap), dict[int, float]()
    for group, gaps in held_out(sessions):
        for session in sorted(group, key=lambda session: session.calls[0].when):
            _play_session(session, gaps, cap, pings, spent, result)
    result.max_a_day = max(spent.values(), default=0.0)
    result.low, result.high = interval(result.by_session)
    return result


def _play_session(
    session: WarmSession, gaps: LearnedGaps, cap: float, left: int, spent: dict[int, float],
    result: WarmResult,
) -> None:  # fmt: skip
    net = 0.0
    for call, gap in session.gaps:
        prices, tokens = call.prices, call.tokens
        result.oracle += best_of_gap(gap, prices, tokens)
        idle, sent = prices.lifetime - MARGIN, 0
        while gap > idle and left > 0:
            day = int((call.when + idle) // 86_400)
            plan = plan_pings(gaps.of(session.agent, call.when, idle), idle, prices, tokens, left)
            price = prices.ping(tokens)
            if not plan.pings or spent.get(day, 0.0) + price > cap:
                break
            spent[day] = spent.get(day, 0.0) + price
            sent, left = sent + 1, left - 1
            idle += prices.lifetime - MARGIN
        cost = sent * prices.ping(tokens)
        bridged = sent > 0 and prices.lifetime < gap <= idle + MARGIN
        saved = prices.lost(tokens) if bridged else 0.0
        result.pings, result.hits = result.pings + sent, result.hits + bridged
        result.cost, result.saved = result.cost + cost, result.saved + saved
        net += saved - cost
    result.sessions += 1
    result.by_session.append(net)


def best_of_gap(gap: float, prices: PrefixPrices, tokens: int) -> float:
    """The most that pings can save in a gap whose end is known, in US dollars."""
    if gap == inf or gap <= prices.lifetime:
        return 0.0
    needed = ceil((gap - prices.lifetime) / (prices.lifetime - MARGIN))
    return max(0.0, prices.lost(tokens) - needed * prices.ping(tokens))


def interval(nets: Sequence[float]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the sum over sessions."""
    if not nets:
        return 0.0, 0.0
    rng = random.Random(0)
    sums = sorted(sum(rng.choices(nets, k=len(nets))) for _ in range(DRAWS))
    return sums[int(0.025 * DRAWS)], sums[int(0.975 * DRAWS) - 1]


def frontier(sessions: Sequence[WarmSession]) -> list[WarmResult]:
    """The result for each cap."""
    return [play(sessions, cap) for cap in CAPS]


def as_text(sessions: Sequence[WarmSession], results: Sequence[WarmResult]) -> str:
    """The results as text for a terminal."""
    head = ("cap a day", "pings", "bridged", "spent", "saved", "net", "95 % of net", "of oracle")
    rows = [head]
    for result in results:
        share = f"{100 * result.net / result.oracle:.0f} %" if result.oracle else "–"
        rows.append((
            "none" if result.cap == inf else f"{result.cap:g} $",
            f"{result.pings:,}", f"{result.hits:,}",
            f"{result.cost:.2f}", f"{result.saved:.2f}", f"{result.net:+.2f}",
            f"{result.low:+.2f} … {result.high:+.2f}", share,
        ))  # fmt: skip
    lines = [
        f"Keeping the cache warm over {len(sessions):,} sessions with times (US dollars; gaps "
        "learned from other sources, or from the other half of one):",
        "",
        *aligned(rows, left=0),
        "",
        f"The oracle, who knows when each session goes on: {results[0].oracle:.2f} saved.",
    ]
    if len(sessions) < MIN_SESSIONS:
        lines.append(f"Fewer than {MIN_SESSIONS} sessions: too few to go by.")
    return "\n".join(lines)
