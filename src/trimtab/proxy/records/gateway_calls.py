"""What gateways asked of this proxy since it started, for the dashboard."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from trimtab.amounts import many

SHORTENED, UNCHANGED, RETRIEVED = "shortened", "unchanged", "retrieved"


@dataclass(slots=True)
class GatewayCalls:
    """``outcomes`` counts calls: shortened, unchanged (nothing was due), retrieved, or why not;
    ``rows`` and ``tokens`` came with those of the first two kinds."""

    outcomes: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    rows_shortened: int = 0
    tokens: int = 0
    tokens_kept: int = 0

    def __str__(self) -> str:
        """``3 calls of gateways: 9 of 20 rows shortened, 1,200 of 3,000 tokens kept; 1 look-up``;
        "" before the first call."""
        counts = self.outcomes
        if not counts:
            return ""
        calls = counts.total() - counts[RETRIEVED]
        rows = f"{self.rows_shortened:,} of {many(self.rows, 'row')} shortened"
        parts = [f"{many(calls, 'call')} of gateways: {rows}, {self.tokens_kept:,} of "
                 f"{many(self.tokens, 'token')} kept"]  # fmt: skip
        if counts[RETRIEVED]:
            parts.append(many(counts[RETRIEVED], "look-up"))
        usual = (SHORTENED, UNCHANGED, RETRIEVED)
        parts += [f"{why}: {n:,}" for why, n in sorted(counts.items()) if why not in usual]
        return "; ".join(parts)
