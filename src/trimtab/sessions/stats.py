"""Statistics of a conversation: edits and tokens by cause, over its turns and processes."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trimtab.reducers.redundant import failure_of
from trimtab.request.fitted import Fitted, facts_of
from trimtab.request.pipeline import FitResult

PREFIX = "stats/"
"""Prefix of the names of facts that hold totals."""


@dataclass
class ConversationStats:
    """``saved``: tokens by cause, each counted once, also where a newer edit takes the place of an
    older one; ``kept_out``: tokens that were not sent,
    counted for each request that would have contained them; ``failed``: number of failed calls
    whose inputs were removed, by the category of their error; ``sent_minute``: when the last turn
    was, in minutes of the session's clock."""

    turns: int = 0
    batches: int = 0
    edits: int = 0
    repairs: int = 0
    tokens_arrived: int = 0
    tokens_sent: int = 0
    sent_minute: int = 0
    saved: Tally[str] = field(default_factory=Tally)
    failed: Tally[str] = field(default_factory=Tally)

    def add(self, result: FitResult, fitted: Fitted) -> None:
        """Count one turn."""
        self.turns += 1
        self.tokens_arrived += result.tokens_before
        self.tokens_sent += result.tokens_after
        self.repairs += len(result.measured.new_repairs)
        if not result.new:
            return
        self.batches += 1
        for edit in fitted.report.edits:
            if edit.new:
                self.edits += 1
                self.saved[edit.kind] += edit.tokens_saved
                if category := failure_of(edit.why):
                    self.failed[category] += 1
        self.saved.subtract(facts_of(fitted).replaced_tokens)

    def join(self, other: ConversationStats) -> None:
        """Add the statistics of another process."""
        for name in ("turns", "batches", "edits", "repairs", "tokens_arrived", "tokens_sent"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.sent_minute = max(self.sent_minute, other.sent_minute)
        self.saved.update(other.saved)
        self.failed.update(other.failed)

    @property
    def kept_out(self) -> int:
        """Tokens that arrived and were not sent, over all turns."""
        return self.tokens_arrived - self.tokens_sent

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__}
        saved, failed = dict(self.saved.most_common()), dict(self.failed.most_common())
        return {**row, "saved": saved, "failed": failed, "kept_out": self.kept_out}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> ConversationStats:
        """Read what ``as_dict`` of this or an earlier release returned."""
        counts = {name: row[name] for name in cls.__dataclass_fields__ if name in row}
        return cls(**{**counts, "saved": Tally(row["saved"]), "failed": Tally(row.get("failed"))})
