"""The four lines on top of a bill: what was paid, what trimtab saves, how sure that is, and what
trimtab itself cost.

In words, so that nobody has to know what the sign of a figure means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from trimtab.amounts import many
from trimtab.pricing.arms import Savings
from trimtab.pricing.conversation_usage import WARMER
from trimtab.pricing.paid import Paid, PaidCall, total
from trimtab_lab.replay.bill.policies import COMPACTION, EVERYTHING, OURS, MethodError, PolicyBill

NO_DIFFERENCE = 0.0005
"""Differences that would be shown as 0.0 %."""
NONE = "no difference"


class Difference(NamedTuple):
    """trimtab against another policy, over the conversations that both have a figure for: more
    (above 0) or less, as a share of the other."""

    other: str
    share: float
    conversations: int


def money(dollars: float) -> str:
    """Two digits, four below a dollar."""
    return f"{dollars:,.2f}" if abs(dollars) >= 1 or not dollars else f"{dollars:,.4f}"


def in_words(share: float) -> str:
    """``2.3 % dearer``, ``0.9 % cheaper``."""
    if abs(share) < NO_DIFFERENCE:
        return NONE
    return f"{100 * abs(share):.1f} % {'dearer' if share > 0 else 'cheaper'}"


def _compared(difference: Difference) -> str:
    """``0.9 % cheaper than X``, ``no difference to X``."""
    words = in_words(difference.share)
    return f"{words} {'to' if words == NONE else 'than'} {difference.other}"


def differences(policies: Sequence[PolicyBill]) -> list[Difference]:
    """What trimtab would have cost beside the agent's own compaction and beside everything."""
    by_name = {bill.name: bill.estimates for bill in policies}
    ours, against_others = by_name.get(OURS, {}), list[Difference]()
    for name in (COMPACTION, EVERYTHING):
        shared = ours.keys() & by_name.get(name, {}).keys()
        theirs = sum(by_name[name][number] for number in shared)
        if theirs > 0:
            share = sum(ours[number] for number in shared) / theirs - 1
            against_others.append(Difference(name, share, len(shared)))
    return against_others


def of_logs(
    calls: Sequence[PaidCall], policies: Sequence[PolicyBill], error: MethodError | None
) -> list[tuple[str, str]]:
    """(question, answer) for the logs of agents."""
    against_others = differences(policies)
    saved = "; ".join(
        f"{_compared(difference)} ({many(difference.conversations, 'conversation')})"
        for difference in against_others
    )
    why = "there is no estimate of it" if policies else "policies were left out"
    return [
        ("Paid", _paid(total(calls), calls)),
        ("With trimtab", f"prompts: {saved}" if saved else f"not measured: {why}"),
        ("How sure", _sure(against_others, error)),
        ("trimtab itself", "calls no model for this. Cache that its cuts break is in the estimate; "
         "the calls of a summarizer, if you name one, are not"),
    ]  # fmt: skip


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
        cost = f"{money(pings.cost.total)} of it, for {sent} that keep caches warm."
    if (read := total([call for call in calls if call.look_up])).calls:
        cost += f" {money(read.cost.total)} of it, for {many(read.calls, 'look-up')} of the model."
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
    return f"{money(paid.cost.total)} US dollars at list prices: {what}"


def _sure(against_others: Sequence[Difference], error: MethodError | None) -> str:
    if not against_others or error is None or error.in_sum is None:
        return "not measured"
    off = abs(error.in_sum)
    comparisons = [
        f"the difference to {other} is {'' if abs(share) > off else 'not '}larger"
        for other, share, _ in against_others
    ]
    return f"the method's error in sum is {100 * off:.1f} %: {'; '.join(comparisons)}"
