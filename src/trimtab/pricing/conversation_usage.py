"""The billed tokens of a conversation, kept in a store: counts by day and model, no text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trimtab.errors import TrimtabError
from trimtab.pricing.call_usage import KINDS, CallUsage, is_above_tier
from trimtab.stores.tenant import OURS

TENANT = OURS + "usage"
"""The part of a store that holds the usage of all tenants' conversations."""
PREFIX = "usage/"
WARMER = "trimtab keep-warm"
"""The agent under which a bill shows what the pings of keep-warm cost."""


class UsageRow(NamedTuple):
    """The calls of one day to one model: ``usage`` is as billed, ``arrived`` the prompts' size as
    the client sent them, in the provider's tokens.  ``above_tier``: whether the prompts are above
    the model's tier; ``look_up``: whether these calls read the result of a tool of ours."""

    day: str
    above_tier: bool
    calls: int
    arrived: int
    usage: CallUsage
    look_up: bool = False


@dataclass
class ConversationUsage:
    """One conversation.  ``arm``: its arm of an experiment, see ``sessions.control``; ``tenant``:
    its tenant, "" in records of earlier releases."""

    id: str
    agent: str = ""
    upstream: str = ""
    arm: str = ""
    rows: dict[str, list[int]] = field(default_factory=dict)
    tenant: str = ""

    def add(self, day: str, arrived: int, usage: CallUsage, *, look_up: bool = False) -> None:
        """Add one call."""
        marks = ("dear" if is_above_tier(usage) else "", "look-up" if look_up else "")
        key = "\t".join((day, usage.model, " ".join(filter(None, marks))))
        row = self.rows.setdefault(key, [0] * (2 + len(KINDS)))
        added = [1, arrived, *(getattr(usage, kind) for kind in KINDS)]
        row[:] = [total + more for total, more in zip(row, added, strict=True)]

    def __iter__(self) -> Iterator[UsageRow]:
        for key, (calls, arrived, *tokens) in self.rows.items():
            day, model, marks = key.split("\t")
            uncached, read, written, written_1h, output = tokens
            usage = CallUsage(model, uncached, read, written, written_1h, output)
            yield UsageRow(day, "dear" in marks, calls, arrived, usage, "look-up" in marks)

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "id": self.id, "agent": self.agent, "upstream": self.upstream, "arm": self.arm,
            "tenant": self.tenant, "rows": self.rows,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> ConversationUsage:
        """Read the value of ``as_dict``."""
        return cls(row["id"], row["agent"], row["upstream"], row["arm"], dict(row["rows"]),
                   row.get("tenant", ""))  # fmt: skip


def read_facts(facts: Iterable[Mapping[str, Any]]) -> tuple[list[ConversationUsage], int]:
    """The conversations in a store's facts, and how many facts could not be read."""
    conversations, unread = list[ConversationUsage](), 0
    for fact in facts:
        try:
            conversations.append(ConversationUsage.from_dict(fact))
        except (KeyError, TypeError, ValueError, TrimtabError):
            unread += 1
    return conversations, unread
