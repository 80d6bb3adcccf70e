"""Compares pings with asking for a cache of an hour, on logs with times and usage.

    python bench/hour_cache.py LOGS…

Three ways to keep the prefix of an idle conversation: pings, as the proxy sends them; breakpoints
of an hour, where the learned gaps say that their dearer writes pay; both, whichever is expected to
cost less.  Every session is played as if its client had asked for five minutes.  An hour is asked
for only while nothing is cached, so at the start of a conversation and after an expiry: what is
cached already would stay cached for five minutes.  Gaps are learned from the other sources.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isfinite

from trimtab.logs import log_files
from trimtab.pricing.keep_warm import (
    DOLLARS_A_DAY,
    MARGIN,
    MIN_GAPS,
    PINGS_A_SESSION,
    LearnedGaps,
    PrefixPrices,
    plan_pings,
    prices_for,
)
from trimtab_lab.replay.bill.conversations import BilledConversation, conversations
from trimtab_lab.replay.bill.keep_warm import WarmCall, WarmSession, held_out, interval

IDLE = 300.0 - MARGIN
WAYS = ("pings", "hour", "both")


@dataclass
class Played:
    """Dollars and counts over all sessions."""

    pings: int = 0
    asked: int = 0
    """Prefixes written for an hour."""
    cost: float = 0.0
    saved: float = 0.0
    nets: list[float] = field(default_factory=list)
    spent: dict[int, float] = field(default_factory=dict)

    def pays(self, when: float, dollars: float, cap: float) -> bool:
        """Spend, unless that is above the cap of the day."""
        day = int(when // 86_400)
        if self.spent.get(day, 0.0) + dollars > cap:
            return False
        self.spent[day] = self.spent.get(day, 0.0) + dollars
        self.cost += dollars
        self.nets[-1] -= dollars
        return True


def cost_of_token(gaps: Sequence[float], prices: PrefixPrices, pings: int) -> float:
    """The expected dollars of one token from its write to the end of its conversation: the write,
    the writes after each expiry, less what pings save.  ``gaps``: ascending, ``inf`` for an end."""
    idle = prices.lifetime - MARGIN
    finite = sum(1 for gap in gaps if isfinite(gap))
    ends = len(gaps) - finite + 1
    expired = finite - bisect_right(gaps, prices.lifetime, hi=finite)
    due = len(gaps) - bisect_right(gaps, idle)
    bought = plan_pings(gaps, idle, prices, 1, pings).dollars
    return prices.write + (expired * prices.lost(1) - due * bought) / ends


def session_of(one: BilledConversation) -> WarmSession | None:
    """The conversation as if its breakpoints were of five minutes."""
    calls = []
    for call in one.counted:
        kept = call.usage.read + call.usage.written + call.usage.written_1h
        prices = prices_for(call.usage.model, hour=False)
        hour = prices_for(call.usage.model, hour=True)
        if call.when is not None and prices and hour and hour.lifetime > prices.lifetime and kept:
            calls.append(WarmCall(call.when, kept, prices))
    calls.sort(key=lambda call: call.when)
    return WarmSession(one.id, one.agent, one.source, tuple(calls)) if calls else None


def _mostly_for_an_hour(one: BilledConversation) -> bool:
    hour = sum(call.usage.written_1h for call in one.calls)
    return hour > sum(call.usage.written for call in one.calls)


def hour_prices(prices: PrefixPrices) -> PrefixPrices:
    """The same model's breakpoints of an hour: twice the input price instead of 1.25 times."""
    return PrefixPrices(prices.read, prices.write * 2.0 / 1.25, 3600.0)


def play(sessions: Sequence[WarmSession], way: str, cap: float) -> Played:
    """All sessions, kept warm in one way."""
    played = Played()
    for group, gaps in held_out(sessions):
        for one in sorted(group, key=lambda one: one.calls[0].when):
            played.nets.append(0.0)
            _play_session(one, gaps, way, cap, played)
    return played


def _play_session(
    one: WarmSession, gaps: LearnedGaps, way: str, cap: float, played: Played
) -> None:
    left = 0 if way == "hour" else PINGS_A_SESSION
    asked, warm, before = False, False, 0
    for call, gap in one.gaps:
        five, hour = call.prices, hour_prices(call.prices)
        if not warm:
            known = gaps.of(one.agent, call.when, IDLE)
            enough = len(known) - bisect_right(known, IDLE) >= MIN_GAPS
            asked = way != "pings" and enough and (
                cost_of_token(known, hour, left) < cost_of_token(known, five, left)
            )  # fmt: skip
        written = max(call.tokens - before, 0) if warm else call.tokens
        if asked:
            asked = played.pays(call.when, written * (hour.write - five.write), cap)
            played.asked += asked and not warm
        prices = hour if asked else five
        idle = prices.lifetime - MARGIN
        while gap > idle and left > 0:
            plan = plan_pings(gaps.of(one.agent, call.when, idle), idle, prices, call.tokens, left)
            if not plan.pings or not played.pays(call.when + idle, prices.ping(call.tokens), cap):
                break
            played.pings, left, idle = played.pings + 1, left - 1, idle + prices.lifetime - MARGIN
        warm, before = gap <= idle + MARGIN, call.tokens
        if warm and gap > five.lifetime:
            played.saved += five.lost(call.tokens)
            played.nets[-1] += five.lost(call.tokens)


def main(names: Sequence[str]) -> None:
    """Print a line for each way and cap, of all sessions and of those of five minutes."""
    billed = conversations(log_files.read(list(names)).recordings)
    short = {one.id for one in billed if not _mostly_for_an_hour(one)}
    sessions = [one for one in map(session_of, billed) if one is not None]
    print("sessions\tcap a day\tway\tpings\tfor an hour\tcost\tsaved\tnet\t95 % of net")
    of_five = [one for one in sessions if one.id in short]
    for name, those in (("all", sessions), ("of five minutes", of_five)):
        for cap in (DOLLARS_A_DAY, inf):
            for way in WAYS:
                one = play(those, way, cap)
                low, high = interval(one.nets)
                print(
                    f"{len(those)} {name}\t{cap:g}\t{way}\t{one.pings}\t{one.asked}\t{one.cost:.2f}"
                    f"\t{one.saved:.2f}\t{sum(one.nets):+.2f}\t{low:+.2f} … {high:+.2f}"
                )


if __name__ == "__main__":
    main(sys.argv[1:])
