"""Estimates what the same conversations would have cost with everything sent, with the agent's own
compaction, and with trimtab.

The cost of a policy is what was paid plus a difference: the estimate of the policy's prompts minus
the estimate of what was really sent.  So a policy that sends the same has exactly the paid cost.
The agent's output is taken as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from trimtab.errors import TrimtabError
from trimtab.pricing import models
from trimtab.pricing.call_usage import price_of
from trimtab_lab.replay.bill.conversations import BilledConversation
from trimtab_lab.replay.bill.sizes import SizedRow, as_sent, under
from trimtab_lab.replay.bill_estimate import Method, Point, SizedCall, TokenLine, half_of, halves
from trimtab_lab.replay.policies import find

EVERYTHING, COMPACTION, OURS = "everything sent", "the agent's own compaction", "trimtab"
POLICIES = (EVERYTHING, COMPACTION, OURS)
NOTHING_TO_DO = 0.7
"""Share of the window: trimtab sends a session below it whole (its earliest trigger is higher), so
the session need not be replayed."""
USUAL_WINDOW = 200_000
"""The window that Claude Code uses of models with a million tokens, unless it asks for more."""


@dataclass
class PolicyBill:
    """The prompts of all measured conversations in US dollars: ``paid``, and as estimated under a
    policy.  ``not_measured``: reason → number of conversations without a figure."""

    name: str
    conversations: int = 0
    calls: int = 0
    paid: float = 0.0
    estimate: float = 0.0
    compacted: int = 0
    """Conversations that the policy cuts or compacts."""
    requests: int = 0
    """Of all conversations that could be played."""
    refused: int = 0
    """Those of them that are larger than the window."""
    not_measured: dict[str, int] = field(default_factory=dict)
    estimates: dict[int, float] = field(default_factory=dict)
    """By number of the conversation: policies are compared over those that both have."""

    def without(self, reason: str) -> None:
        """Count a conversation that has no figure."""
        self.not_measured[reason] = self.not_measured.get(reason, 0) + 1

    def as_dict(self) -> dict[str, Any]:
        """JSON-able; the figures are None if nothing could be measured."""
        known = self.conversations > 0
        return {
            "policy": self.name, "conversations": self.conversations, "calls": self.calls,
            "paid_dollars": round(self.paid, 6) if known else None,
            "estimated_dollars": round(self.estimate, 6) if known else None,
            "cut_or_compacted": self.compacted, "requests": self.requests,
            "refused": self.refused, "not_measured": dict(self.not_measured),
        }  # fmt: skip


@dataclass
class MethodError:
    """The method's estimate of what was really sent, against the bill: prompts in US dollars."""

    calls: int = 0
    paid: float = 0.0
    estimate: float = 0.0
    tokens: int = 0
    estimated_tokens: int = 0
    by_conversation: list[tuple[str, float, float]] = field(default_factory=list)
    """(conversation, paid, estimate)."""

    @property
    def in_sum(self) -> float | None:
        """Relative error of the sum; None if nothing was billed."""
        return self.estimate / self.paid - 1 if self.paid else None

    @property
    def errors(self) -> list[float]:
        """Relative error of each conversation, ascending."""
        return sorted(estimate / paid - 1 for _, paid, estimate in self.by_conversation if paid)

    def quantile(self, share: float) -> float | None:
        """A quantile of the errors by conversation; None without any."""
        errors = self.errors
        return errors[min(len(errors) - 1, int(share * len(errors)))] if errors else None

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "calls": self.calls, "conversations": len(self.by_conversation),
            "paid_dollars": round(self.paid, 6), "estimated_dollars": round(self.estimate, 6),
            "error_in_sum": self.in_sum,
            "error_of_tokens": self.estimated_tokens / self.tokens - 1 if self.tokens else None,
            "error_by_conversation": {
                f"q{round(100 * share):02d}": self.quantile(share)
                for share in (0.05, 0.25, 0.5, 0.75, 0.95)
            },
        }  # fmt: skip


@dataclass
class SizedConversation:
    """A conversation with the sizes of its requests as sent."""

    conversation: BilledConversation
    group: str
    rows: list[SizedRow]


class Comparison:
    """All conversations of some logs under each policy."""

    def __init__(self, billed: Iterable[BilledConversation]) -> None:
        self.sized = [
            SizedConversation(one, f"{one.agent} {one.model}", list(as_sent(one)))
            for one in billed
            if one.calls
        ]
        calls: dict[str, Sequence[Point]] = {
            str(n): [(size, call.usage) for call, size in one.rows]
            for n, one in enumerate(self.sized)
        }
        groups = {str(n): one.group for n, one in enumerate(self.sized)}
        self._halves, self._whole = halves(calls, groups), Method.learn(calls, groups)

    def error(self) -> MethodError:
        """The method's error on what was really sent."""
        error = MethodError()
        for order, sized in enumerate(self.sized):
            paid = estimate = 0.0
            for number, (call, size) in enumerate(sized.rows):
                method = self._halves[half_of(order, number)]
                estimated = method.estimate(str(order), sized.group, size, call.usage.model)
                was, now = price_of(call.usage), estimated and price_of(estimated)
                if call.again or estimated is None or was is None or not now:
                    continue
                paid, estimate = paid + was.prompt, estimate + now.prompt
                error.calls += 1
                error.tokens += call.usage.prompt
                error.estimated_tokens += estimated.prompt
            if paid:
                error.paid, error.estimate = error.paid + paid, error.estimate + estimate
                error.by_conversation.append((sized.conversation.id, paid, estimate))
        return error

    def policies(
        self, window: int | None = None, progress: Callable[[int, int], None] | None = None
    ) -> list[PolicyBill]:
        """Each policy over all conversations.  ``window``: the window of all of them, in the
        provider's tokens; None: the window that each had."""
        bills = {name: PolicyBill(name) for name in POLICIES}
        habits = compaction_habits(self.sized)
        for order, sized in enumerate(self.sized):
            if progress:
                progress(order, len(self.sized))
            self._compare(order, sized, window, habits, bills)
        if progress:
            progress(len(self.sized), len(self.sized))
        return list(bills.values())

    def _compare(
        self, order: int, sized: SizedConversation, window: int | None, habits: dict[str, Habit],
        bills: dict[str, PolicyBill],
    ) -> None:  # fmt: skip
        conversation = sized.conversation
        line = self._whole.line(str(order), sized.group)
        limit = window or window_of(conversation)
        priced = [call for call in conversation.counted if price_of(call.usage)]
        reason = (
            "no price of the model in our table" if not priced
            else "too few calls to learn how the provider counts" if line is None
            else "no window of the model in our table" if limit is None else ""
        )  # fmt: skip
        if reason or line is None or limit is None:
            for bill in bills.values():
                bill.without(reason)
            return
        try:
            whole = list(under(conversation, find("none"), limit))
        except TrimtabError as error:  # a log that no request can be made of
            for bill in bills.values():
                bill.without(f"the log cannot be played: {type(error).__name__}")
            return
        most = max(line.tokens(size.own) for _, size in whole)
        refused = sum(line.tokens(size.own) > limit for _, size in whole)
        for name in (EVERYTHING, OURS):
            bills[name].requests += len(whole)
        bills[EVERYTHING].refused += refused
        if most > limit:
            bills[EVERYTHING].without("its prompts outgrow the window: the provider refuses them")
        else:
            self._book(bills[EVERYTHING], order, sized, whole)
        self._compaction(
            bills[COMPACTION], order, sized, whole, window, habits.get(conversation.agent)
        )
        if most <= NOTHING_TO_DO * limit:
            self._book(bills[OURS], order, sized, whole)
            return
        room = int((limit - line.head) / line.slope)
        if room <= 0:
            bills[OURS].refused += refused
            bills[OURS].without("system text and tools alone fill the window")
            return
        try:
            ours = list(under(conversation, find("trimtab"), room))
        except TrimtabError as error:
            bills[OURS].refused += refused
            bills[OURS].without(f"no request that fits: {type(error).__name__}")
            return
        bills[OURS].refused += sum(line.tokens(size.own) > limit for _, size in ours)
        bills[OURS].compacted += any(a != b for (_, a), (_, b) in zip(ours, whole, strict=True))
        self._book(bills[OURS], order, sized, ours)

    def _compaction(
        self, bill: PolicyBill, order: int, sized: SizedConversation, whole: Sequence[SizedRow],
        window: int | None, habit: Habit | None,
    ) -> None:  # fmt: skip
        parts = len(sized.conversation.parts)
        if window is None:
            bill.compacted += parts > 1
            self._book(bill, order, sized, sized.rows)
            return
        line = self._whole.line(str(order), sized.group)
        assert line is not None  # _compare has checked it
        if habit is None:
            bill.without("no compaction of this agent in the logs to learn its size from")
            return
        rows = list(compacted(whole, line, habit, window))
        bill.compacted += any(a.own != b.own for (_, a), (_, b) in zip(rows, whole, strict=True))
        self._book(bill, order, sized, rows)

    def _book(
        self,
        bill: PolicyBill,
        order: int,
        conversation: SizedConversation,
        rows: Sequence[SizedRow],
    ) -> None:
        """Add a conversation: what was paid, plus the estimated difference."""
        sent = dict(conversation.rows)
        bill.conversations += 1
        before = bill.estimate
        for call, size in rows:
            was = price_of(call.usage)
            if call.again or was is None or call not in sent:
                continue
            bill.calls += 1
            bill.paid += was.prompt
            bill.estimate += was.prompt
            for sized, sign in ((size, 1), (sent[call], -1)):
                estimated = self._whole.estimate(
                    str(order), conversation.group, sized, call.usage.model
                )
                cost = estimated and price_of(estimated)
                bill.estimate += sign * cost.prompt if cost else 0.0
        bill.estimates[order] = bill.estimate - before


def window_of(conversation: BilledConversation) -> int | None:
    """The window a conversation had, in the provider's tokens; None if unknown."""
    if logged := max(part.window for part in conversation.parts):
        return logged
    model = models.find(conversation.model)
    most = max(call.usage.prompt for call in conversation.calls)
    if conversation.agent == "claude-code" and most <= USUAL_WINDOW:
        return USUAL_WINDOW
    return None if model is None else model.window


# --- the agent's own compaction ------------------------------------------------------------------


@dataclass(frozen=True)
class Habit:
    """How an agent compacts: ``share`` of the window at which it does, ``after``: size in our
    tokens afterwards."""

    share: float
    after: int


def compaction_habits(sized: Iterable[SizedConversation]) -> dict[str, Habit]:
    """The medians of the compactions in the logs, by agent; only agents that have any."""
    shares: dict[str, list[float]] = {}
    after: dict[str, list[int]] = {}
    for one in sized:
        conversation, rows = one.conversation, one.rows
        limit, agent = window_of(conversation), conversation.agent
        for (before, _), (call, size) in pairwise(rows):
            if call.part > before.part and limit:
                shares.setdefault(agent, []).append(before.usage.prompt / limit)
                after.setdefault(agent, []).append(size.own)
    return {agent: Habit(median(shares[agent]), int(median(after[agent]))) for agent in shares}


def compacted(
    whole: Iterable[SizedRow], line: TokenLine, habit: Habit, window: int
) -> Iterator[SizedRow]:
    """The requests of a whole history if the agent compacts as ``habit`` says.

    The cost of the compaction's own call is not included, as no log has it.
    """
    gone, before = 0, 0
    for call, size in whole:
        own, shared = size.own - gone, before
        if line.tokens(own) > habit.share * window and own > habit.after:
            gone, shared = size.own - habit.after, 0
            own = habit.after
        yield call, SizedCall(own, 0 if size.first else shared, size.gap, size.first)
        before = own
