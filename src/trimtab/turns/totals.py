"""What a conversation's turns came to: counted once, by cause; as facts that add up.

Knows reports.  Does not know prices, nor where it is kept.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trimtab.fitted import Fitted
from trimtab.turns.work import Outcome

PREFIX = "stats/"
"""Names of the facts that hold totals."""


@dataclass
class Totals:
    """``saved``: tokens by cause, each edit once, when it was made; ``kept_out``: tokens that
    were not sent, once for each request they would have been part of."""

    turns: int = 0
    batches: int = 0
    edits: int = 0
    repairs: int = 0
    tokens_arrived: int = 0
    tokens_sent: int = 0
    saved: Tally[str] = field(default_factory=Tally)

    def add(self, outcome: Outcome, done: Fitted) -> None:
        """Count one turn."""
        self.turns += 1
        self.tokens_arrived += outcome.tokens_before
        self.tokens_sent += outcome.tokens_after
        self.repairs += len(outcome.work.new_mends)
        if not outcome.new:
            return
        self.batches += 1
        for edit in done.report.edits:
            if edit.new:
                self.edits += 1
                self.saved[edit.kind] += edit.tokens_saved

    def join(self, other: Totals) -> None:
        """Add what was counted elsewhere."""
        for name in ("turns", "batches", "edits", "repairs", "tokens_arrived", "tokens_sent"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.saved.update(other.saved)

    @property
    def kept_out(self) -> int:
        """Tokens that arrived and were not sent, over all turns."""
        return self.tokens_arrived - self.tokens_sent

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**row, "saved": dict(self.saved.most_common()), "kept_out": self.kept_out}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Totals:
        """What ``as_dict`` gave."""
        own = {name: row[name] for name in cls.__dataclass_fields__}
        return cls(**{**own, "saved": Tally(row["saved"])})
