"""What a conversation was billed, as facts of a store: counts by day and model, no text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trimtab.pricing.call_usage import KINDS, CallUsage, is_dear
from trimtab.stores.tenant import OURS

TENANT = OURS + "usage"
"""The part of a store that holds them, whoever the conversations belong to."""
PREFIX = "usage/"


class UsageRow(NamedTuple):
    """Calls of one day to one model, in the provider's tokens: as billed, and ``arrived`` as the
    client sent them.  ``dear``: whether their prompts are above the model's tier."""

    day: str
    dear: bool
    calls: int
    arrived: int
    usage: CallUsage


@dataclass
class ConversationUsage:
    """One conversation.  ``arm``: of an experiment, see ``sessions.control``; ``tenant``: whose
    it is, "" in what releases before wrote."""

    id: str
    agent: str = ""
    upstream: str = ""
    arm: str = ""
    rows: dict[str, list[int]] = field(default_factory=dict)
    tenant: str = ""

    def add(self, day: str, arrived: int, usage: CallUsage) -> None:
        """One call."""
        key = "\t".join((day, usage.model, "dear" if is_dear(usage) else ""))
        row = self.rows.setdefault(key, [0] * (2 + len(KINDS)))
        added = [1, arrived, *(getattr(usage, kind) for kind in KINDS)]
        row[:] = [one + more for one, more in zip(row, added, strict=True)]

    def __iter__(self) -> Iterator[UsageRow]:
        for key, (calls, arrived, *tokens) in self.rows.items():
            day, model, dear = key.split("\t")
            uncached, read, written, written_1h, output = tokens
            usage = CallUsage(model, uncached, read, written, written_1h, output)
            yield UsageRow(day, bool(dear), calls, arrived, usage)

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "id": self.id, "agent": self.agent, "upstream": self.upstream, "arm": self.arm,
            "tenant": self.tenant, "rows": self.rows,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> ConversationUsage:
        """What ``as_dict`` gave."""
        return cls(row["id"], row["agent"], row["upstream"], row["arm"], dict(row["rows"]),
                   row.get("tenant", ""))  # fmt: skip
