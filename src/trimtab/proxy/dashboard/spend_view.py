"""The page *Spend*: what was paid, what was saved, how sure that is, and what trimtab itself cost.

Dollars are list prices of the usage that providers reported.  Without a measurement there is no
figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.amounts import many
from trimtab.pricing.arms import Savings, arms_of
from trimtab.pricing.conversation_usage import WARMER, read_facts
from trimtab.pricing.paid import Paid, calls_of, grouped, total
from trimtab.proxy.callers.tenants import HOLDER, LOCAL
from trimtab.proxy.dashboard.format import dollars, share
from trimtab.proxy.dashboard.page import LIVE_SECONDS, SPEND, page
from trimtab.proxy.records.activity_log import ActivityLog
from trimtab.proxy.records.session_record import SessionRecord
from trimtab.reporting.axis import short_number

GROUPS = {
    "day": "day", "agent": "agent", "model": "model", "tenant": "tenant", "session": "session",
}  # fmt: skip
"""What spend can be grouped by → its label."""
SHOWN = 100
_KEYS = {LOCAL: "one user", HOLDER: "the proxy's token", "unknown": "not recorded"}


@dataclass(frozen=True)
class Spend:
    """Sums of the agents' own calls, by group, of our pings, and of the calls in which the model
    read what it looked up (in ``paid`` too).  ``reduced``: dollars of the prompts in the
    experiment's treated arm; ``unread``: stored facts that could not be read."""

    paid: Paid
    groups: list[Paid]
    pings: Paid
    look_ups: Paid
    savings: Savings | None
    reduced: float = 0.0
    unread: int = 0

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "paid": self.paid.as_dict(), "groups": [paid.as_dict() for paid in self.groups],
            "trimtab": self.pings.as_dict(), "look_ups": self.look_ups.as_dict(),
            "savings": None if self.savings is None else self.savings.as_dict(),
            "unread_facts": self.unread,
        }  # fmt: skip


def spend(facts: Mapping[str, Any], by: str) -> Spend:
    """Spend from the facts of what conversations were billed."""
    conversations, unread = read_facts(facts.values())
    calls = calls_of(conversations)
    pings = [call for call in calls if call.agent == WARMER]
    agents_calls = [call for call in calls if call.agent != WARMER]
    treated = (conversation for conversation in conversations if conversation.arm == "treated")
    return Spend(
        total(agents_calls), grouped(agents_calls, by), total(pings),
        total([call for call in calls if call.look_up]), arms_of(conversations),
        total(calls_of(treated)).cost.prompt, unread,
    )  # fmt: skip


def spend_page(
    spend: Spend, by: str, activity: ActivityLog, sessions: Mapping[str, SessionRecord],
    *, summarizes: bool = False,
) -> bytes:  # fmt: skip
    """The page, grouped by one of ``GROUPS``.  ``summarizes``: whether a summarizer is configured,
    whose calls are not in these figures."""
    rows = spend.groups if by != "day" else spend.groups[::-1]
    most = max((paid.cost.total for paid in rows), default=0.0)
    return page(
        "spend.html", "Spend", section=SPEND, live=LIVE_SECONDS, by=by, groups=GROUPS,
        any=bool(spend.paid.calls), answers=_answers(spend, activity, summarizes), address=SPEND,
        rows=[_row(paid, by, sessions, most) for paid in rows[:SHOWN]], more=len(rows) - SHOWN,
        notes=_notes(spend, summarizes) if spend.paid.calls else [],
    )  # fmt: skip


def _answers(
    spend: Spend, activity: ActivityLog, summarizes: bool = False
) -> list[tuple[str, str, str]]:
    """Those of the questions that have an answer: (question, figure, how it was found)."""
    paid, savings = spend.paid, spend.savings
    days = paid.first_day
    if paid.last_day != paid.first_day:
        days = f"{paid.first_day} to {paid.last_day}"
    about = f"{many(paid.calls, 'call')}, {days}, at list prices of the usage that was reported"
    rows = [("Paid", _money(paid), about)]
    if savings and not (savings.saved is None or savings.low is None or savings.high is None):
        low, mid, high = (
            dollars(spend.reduced * share / (1 - share))
            for share in (savings.low, savings.saved, savings.high)
        )
        rows += [
            ("Saved", f"{savings.saved:.1%}", f"of what prompts would have cost: {mid} in the "
             f"{many(savings.treated, 'conversation')} that were reduced, against the "
             f"{savings.control:,} that were left alone"),
            ("How sure", f"{savings.low:.1%} to {savings.high:.1%}",
             f"at 95 % confidence: between {low} and {high}"),
        ]  # fmt: skip
    if activity.money and activity.prices is not None:
        rows.append(("Estimated", activity.money,
                     f"than with everything sent, since the proxy was started, by "
                     f"{activity.prices.name}: an estimate, no measurement"))  # fmt: skip
    if spend.look_ups.calls:
        about = f"{many(spend.look_ups.calls, 'call')} in which the model read what it looked up"
        rows.append(("Look-ups", _money(spend.look_ups), f"of what was paid: {about}"))
    pings = many(spend.pings.calls, "ping") + " that keep caches warm" if spend.pings.calls else ""
    if pings and activity.warm.hits:
        pings += f" (since the proxy was started they saved about {dollars(activity.warm.saved)})"
    if pings or not summarizes:
        about = pings or "it called no model itself"
        rows.append(("trimtab itself", _money(spend.pings) if pings else dollars(0),
                     f"{about}; cache that its cuts broke is in what was paid"))  # fmt: skip
    return rows


def _money(paid: Paid) -> str:
    return dollars(paid.cost.total) if paid.calls > paid.unpriced.total() else "no price known"


def _row(paid: Paid, by: str, sessions: Mapping[str, SessionRecord], most: float) -> dict[str, Any]:
    prompt = sum(tokens for kind, tokens in paid.tokens.items() if kind != "output")
    name, link = paid.name, ""
    if by == "tenant":
        name = _KEYS.get(paid.name, f"key {paid.name[:8]}")
    elif by == "session" and (session := sessions.get(paid.name.rpartition("/")[2])):
        name, link = session.title, session.id
    part = round(100 * paid.cost.total / most) if most else 0
    return {
        "name": name, "link": link, "part": part,
        "numbers": (
            _money(paid), f"{paid.calls:,}", short_number(prompt),
            share(paid.tokens["read"], prompt), short_number(paid.tokens["output"]),
        ),
    }  # fmt: skip


def _notes(spend: Spend, summarizes: bool) -> list[str]:
    notes = []
    if spend.savings is None:
        notes.append("What trimtab saves is measured against conversations that are left alone: "
                     "start with --control 0.2.")  # fmt: skip
    elif spend.savings.saved is None:
        notes.append(f"What trimtab saves: {spend.savings}")
    if summarizes:
        notes.append("What your summarizer costs is not in these figures.")
    notes += [
        f"{many(count, 'call')} of {model}: no price in our table, so not in these sums"
        for model, count in spend.paid.unpriced.most_common()
    ]
    if spend.unread:
        notes.append(f"{spend.unread:,} facts of the store cannot be read")
    return notes
