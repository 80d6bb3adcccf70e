"""Sums of what was paid: reported tokens and dollars at list prices, by session, agent, day …"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from trimtab.pricing.call_usage import KINDS, CallUsage, Cost, price_of
from trimtab.pricing.conversation_usage import ConversationUsage, UsageRow

GroupBy = Literal["session", "agent", "day", "model", "source", "tenant"]
GROUPS: tuple[str, ...] = get_args(GroupBy)
UNKNOWN = "unknown"


@dataclass(frozen=True)
class PaidCall:
    """One billed call with the names it is grouped by; ``day`` is "" if the log has no times.

    Or the sum of several ``calls`` of one day to one model, either all or none of them above the
    model's tier.  ``look_up``: they read the result of a tool that trimtab answered.
    """

    session: str
    agent: str
    source: str
    day: str
    usage: CallUsage
    output_measured: bool = True
    calls: int = 1
    above_tier: bool | None = None
    tenant: str = ""
    look_up: bool = False

    def key(self, by: str) -> str:
        """The name of the call's group."""
        return (self.usage.model if by == "model" else str(getattr(self, by))) or UNKNOWN


def calls_of(conversations: Iterable[ConversationUsage]) -> list[PaidCall]:
    """The calls of these conversations: one sum for each day and model."""
    return [_call(conversation, row) for conversation in conversations for row in conversation]


def _call(conversation: ConversationUsage, row: UsageRow) -> PaidCall:
    return PaidCall(
        conversation.id, conversation.agent, conversation.upstream, row.day, row.usage,
        calls=row.calls, above_tier=row.above_tier, tenant=conversation.tenant, look_up=row.look_up,
    )  # fmt: skip


@dataclass
class Paid:
    """Sums over calls.  ``cost`` leaves out calls of models without a price (``unpriced``, by
    model), and output that was logged before the answer ended (``cut_output`` calls; their output
    is not in ``tokens`` either)."""

    name: str = ""
    calls: int = 0
    tokens: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    cost: Cost = field(default_factory=Cost)
    unpriced: Counter[str] = field(default_factory=Counter)
    cut_output: int = 0
    first_day: str = ""
    last_day: str = ""

    def add(self, call: PaidCall) -> None:
        """Count one call."""
        self.calls += call.calls
        usage = call.usage
        for kind in KINDS:
            if kind != "output" or call.output_measured:
                self.tokens[kind] += getattr(usage, kind)
        self.cut_output += 0 if call.output_measured else call.calls
        if call.day:
            self.first_day = min(self.first_day or call.day, call.day)
            self.last_day = max(self.last_day, call.day)
        cost = price_of(usage, above_tier=call.above_tier)
        if cost is None:
            self.unpriced[usage.model or UNKNOWN] += call.calls
            return
        output = cost.output if call.output_measured else 0.0
        self.cost += Cost(cost.uncached, cost.read, cost.written, cost.written_1h, output)

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; ``dollars`` is None if no call has a price."""
        priced = self.calls > self.unpriced.total()
        return {
            "name": self.name, "calls": self.calls, "tokens": dict(self.tokens),
            "dollars": self.cost.as_dict() if priced else None,
            "calls_without_price": dict(self.unpriced),
            "calls_without_whole_output": self.cut_output,
            "first_day": self.first_day or None, "last_day": self.last_day or None,
        }  # fmt: skip


def total(calls: Iterable[PaidCall]) -> Paid:
    """The sum over all calls."""
    paid = Paid("all")
    for call in calls:
        paid.add(call)
    return paid


def grouped(calls: Sequence[PaidCall], by: str) -> list[Paid]:
    """One sum per group: days in order of time, other groups by cost, the largest first."""
    groups: dict[str, Paid] = {}
    for call in calls:
        name = call.key(by)
        groups.setdefault(name, Paid(name)).add(call)
    if by == "day":
        return [groups[name] for name in sorted(groups)]
    return sorted(groups.values(), key=lambda paid: (-paid.cost.total, -paid.calls, paid.name))
