"""The scoreboard: for each property how many cases passed, and the first that did not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.testing.conformance.properties import NAMES, PROPERTIES


@dataclass(frozen=True, slots=True)
class Failure:
    """Where a property does not hold: the case, its format and turn, and what was seen."""

    seed: int
    case: str
    format: str
    turn: int
    reason: str


@dataclass(slots=True)
class CaseTally:
    """What was judged in one case of one format; the first failure of each property."""

    seed: int
    case: str
    format: str
    judged: dict[str, Failure | None] = field(default_factory=dict)

    def add(self, name: str, reasons: Iterable[str], turn: int) -> None:
        """One judgement; nothing in ``reasons``: it holds."""
        reason = next(iter(reasons), None)
        if reason is not None and self.judged.get(name) is None:
            self.judged[name] = Failure(self.seed, self.case, self.format, turn, reason)
        self.judged.setdefault(name, None)


@dataclass(frozen=True, slots=True)
class Row:
    """One property over all cases; ``judged`` 0: no case asked for it, or it is not offered."""

    name: str
    about: str
    judged: int
    failures: tuple[Failure, ...]

    @property
    def passed(self) -> int:
        """Cases in which it held."""
        return self.judged - len(self.failures)

    @property
    def share(self) -> float | None:
        """From 0 to 1; None where nothing was judged."""
        return self.passed / self.judged if self.judged else None


@dataclass(frozen=True, slots=True)
class Scoreboard:
    """All properties of one target at one window."""

    target: str
    window: int
    formats: tuple[str, ...]
    cases: int
    rows: tuple[Row, ...]

    @classmethod
    def of(
        cls, target: str, window: int, formats: Sequence[str], tallies: Sequence[CaseTally]
    ) -> Scoreboard:
        """The sum of what was judged."""
        rows = []
        for name, about in PROPERTIES:
            judged = [tally.judged[name] for tally in tallies if name in tally.judged]
            failures = tuple(one for one in judged if one is not None)
            rows.append(Row(name, about, len(judged), failures))
        cases = len({tally.seed for tally in tallies})
        return cls(target, window, tuple(formats), cases, tuple(rows))

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not any(row.failures for row in self.rows)

    @property
    def held(self) -> int:
        """Properties that held wherever they were judged."""
        return sum(1 for row in self.rows if row.judged and not row.failures)

    @property
    def asked(self) -> int:
        """Properties that were judged at all."""
        return sum(1 for row in self.rows if row.judged)

    def row(self, name: str) -> Row:
        """The row of one property.  Raises KeyError."""
        if name not in NAMES:
            raise KeyError(name)
        return next(row for row in self.rows if row.name == name)

    def as_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "target": self.target, "window": self.window, "formats": list(self.formats),
            "cases": self.cases, "passed": self.passed,
            "properties": [
                {
                    "name": row.name, "about": row.about, "judged": row.judged,
                    "passed": row.passed, "share": row.share,
                    "failures": [
                        {"seed": f.seed, "case": f.case, "format": f.format, "turn": f.turn,
                         "reason": f.reason}
                        for f in row.failures
                    ],
                }
                for row in self.rows
            ],
        }  # fmt: skip
