"""A bill from the usage that a proxy kept in its store, with the arms of an experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.pricing.arms import arms_of
from trimtab.pricing.conversation_usage import PREFIX, TENANT, read_facts
from trimtab.pricing.paid import calls_of
from trimtab.stores import open as open_tenant
from trimtab.stores.base import Store
from trimtab_lab.replay.bill.report import Bill

NO_HISTORY = (
    "what other policies would have cost: a store keeps no requests; bill the agents' own logs"
)


def bill_of_store(store: Store, *, by: str = "session") -> Bill:
    """The bill of all conversations whose usage a store has.  Raises StoreError."""
    return bill_of_facts(open_tenant(store, TENANT).facts(PREFIX).values(), by=by)


def bill_of_facts(facts: Iterable[Mapping[str, Any]], *, by: str = "session") -> Bill:
    """The bill of conversations given as a store's facts; unreadable ones are counted."""
    conversations, unread = read_facts(facts)
    calls = calls_of(conversations)
    notes = [NO_HISTORY]
    if unread:
        notes.append(f"{unread:,} facts of the store cannot be read")
    if (compared := arms_of(conversations)) is None:
        notes.append("what was saved: no control arm (--control 0.2 of `trimtab proxy`)")
    return Bill(calls, by, savings=compared, of_store=True, notes=tuple(notes))
