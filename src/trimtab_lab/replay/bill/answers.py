"""The four lines on top of a bill: what was paid, what trimtab saves, how sure that is, and what
trimtab itself cost.

In words, so that nobody has to know what the sign of a figure means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trimtab.amounts import many
from trimtab.pricing import outcome
from trimtab.pricing.arms import Savings
from trimtab.pricing.conversation_usage import WARMER
from trimtab.pricing.outcome import dollars
from trimtab.pricing.paid import Paid, PaidCall, total
from trimtab_lab.replay.bill.policies import COMPACTION, EVERYTHING, OURS, MethodError, PolicyBill


class Difference(NamedTuple):
    """trimtab against another policy in US dollars, over the conversations that both have a figure
    for."""

    other: str
    ours: float
    theirs: float
    conversations: int

    @property
    def share(self) -> float:
        """More (above 0) or less, as a share of the other."""
        return self.ours / self.theirs - 1

    def __str__(self) -> str:
        """``trimtab costs $3.50 more: $156.85 for the prompts, $153.35 with X.``"""
        count = many(self.conversations, "conversation")
        return outcome.money(self.ours, self.theirs, f"with {self.other} ({count})")


def differences(policies: Sequence[PolicyBill]) -> list[Difference]:
    """What trimtab would have cost beside the agent's own compaction and beside everything."""
    by_name = {bill.name: bill.estimates for bill in policies}
    ours, against_others = by_name.get(OURS, {}), list[Difference]()
    for name in (COMPACTION, EVERYTHING):
        shared = ours.keys() & by_name.get(name, {}).keys()
        theirs = sum(by_name[name][number] for number in shared)
        if theirs > 0:
            spent = sum(ours[number] for number in shared)
            against_others.append(Difference(name, spent, theirs, len(shared)))
    return against_others


def of_logs(
    calls: Sequence[PaidCall], policies: Sequence[PolicyBill], error: MethodError | None
) -> list[tuple[str, str]]:
    """(question, answer) for the logs of agents."""
    against_others = differences(policies)
    saved = " ".join(map(str, against_others))
    why = "there is no estimate of it" if policies else "policies were left out"
    return [
        *_refused(policies),
        ("Paid", _paid(total(calls), calls)),
        ("Money", saved or f"not measured: {why}"),
        ("How sure", _sure(against_others, error)),
        ("trimtab itself", "calls no model for this. Cache that its cuts break is in the estimate; "
         "the calls of a summarizer, if you name one, are not"),
    ]  # fmt: skip


def _refused(policies: Sequence[PolicyBill]) -> list[tuple[str, str]]:
    """What the window would have done to requests with everything sent; nothing if no conversation
    could be played."""
    by_name = {bill.name: bill for bill in policies}
    everything, ours = by_name.get(EVERYTHING), by_name.get(OURS)
    if everything is None or ours is None or not everything.requests:
        return []
    refused, still = everything.refused, ours.refused
    return [("Refused", outcome.refusals(refused, everything.requests, still, played=True))]


def of_store(calls: Sequence[PaidCall], savings: Savings | None) -> list[tuple[str, str]]:
    """(question, answer) for what a proxy kept."""
    saved, sure = "not measured: no control arm (`trimtab proxy --control 0.2`)", "not measured"
    if savings is not None:
        saved = str(savings)
        if savings.low is not None and savings.high is not None:
            sure = "0 % is outside these bounds"
            if savings.low <= 0 <= savings.high:
                sure = "0 % is within these bounds: this may be chance"
    pings = total([call for call in calls if call.agent == WARMER])
    cost = "it sent no pings."
    if pings.calls:
        sent = many(pings.calls, "ping")
        cost = f"{dollars(pings.cost.total)} of it, for {sent} that keep caches warm."
    if (read := total([call for call in calls if call.look_up])).calls:
        cost += (
            f" {dollars(read.cost.total)} of it, for {many(read.calls, 'look-up')} of the model."
        )
    return [
        ("Paid", _paid(total(calls), calls)), ("Saved", saved), ("How sure", sure),
        ("trimtab itself", f"{cost} Cache that its cuts broke is in what was paid; "
         "the calls of a summarizer, if you named one, are not"),
    ]  # fmt: skip


def _paid(paid: Paid, calls: Sequence[PaidCall]) -> str:
    conversations = many(len({call.session for call in calls}), "conversation")
    what = f"{conversations}, {many(paid.calls, 'call')}"
    if paid.calls == paid.unpriced.total():
        return f"no price known: {what}"
    return f"{dollars(paid.cost.total)} at list prices: {what}"


def _sure(against_others: Sequence[Difference], error: MethodError | None) -> str:
    if not against_others or error is None or error.in_sum is None:
        return "not measured"
    off = abs(error.in_sum)
    comparisons = [
        f"the difference to {one.other} is {'' if abs(one.share) > off else 'not '}larger"
        for one in against_others
    ]
    return f"the method's error in sum is {100 * off:.1f} %: {'; '.join(comparisons)}"
