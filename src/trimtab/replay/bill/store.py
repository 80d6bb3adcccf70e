"""A bill of what a proxy kept in its store, and the arms of an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.errors import TrimtabError
from trimtab.pricing.call_usage import price_of
from trimtab.pricing.conversation_usage import PREFIX, TENANT, ConversationUsage
from trimtab.replay.bill.arms import ArmUnit, Savings, savings
from trimtab.replay.bill.paid import PaidCall
from trimtab.replay.bill.report import Bill
from trimtab.stores import open as open_tenant
from trimtab.stores.base import Store

NO_HISTORY = (
    "what other policies would have cost: a store keeps no requests; bill the agents' own logs"
)


def bill_of_store(store: Store, *, by: str = "session") -> Bill:
    """The bill of all conversations that a store has usage of.  Raises StoreError."""
    return bill_of_facts(open_tenant(store, TENANT).facts(PREFIX).values(), by=by)


def bill_of_facts(facts: Iterable[Mapping[str, Any]], *, by: str = "session") -> Bill:
    """The same, of these facts."""
    kept, unread = list[ConversationUsage](), 0
    for fact in facts:
        try:
            kept.append(ConversationUsage.from_dict(fact))
        except (KeyError, TypeError, ValueError, TrimtabError):
            unread += 1
    calls = [
        PaidCall(one.id, one.agent, one.upstream, row.day, row.usage, True, row.calls, row.dear)
        for one in kept
        for row in one
    ]
    notes = [NO_HISTORY]
    if unread:
        notes.append(f"{unread:,} facts of the store cannot be read")
    if (compared := arms(kept)) is None:
        notes.append("what was saved: no control arm (--control 0.05 of `trimtab proxy`)")
    return Bill(calls, by, savings=compared, notes=tuple(notes))


def arms(kept: Iterable[ConversationUsage]) -> Savings | None:
    """Both arms, by conversation as it was drawn; None where none was."""
    units: dict[str, tuple[str, float, int]] = {}
    for one in kept:
        if not one.arm:
            continue
        arm, dollars, arrived = units.get(one.id, (one.arm, 0.0, 0))
        for row in one:
            if cost := price_of(row.usage, dear=row.dear):
                dollars, arrived = dollars + cost.prompt, arrived + row.arrived
        arm = max(arm, one.arm, key=len)  # "control, outgrown" once it is
        units[one.id] = (arm, dollars, arrived)
    if not units:
        return None
    treated = [ArmUnit(d, a) for arm, d, a in units.values() if arm == "treated"]
    control = [ArmUnit(d, a) for arm, d, a in units.values() if arm != "treated"]
    outgrown = sum(arm == "control, outgrown" for arm, _, _ in units.values())
    return savings(treated, control, outgrown)
