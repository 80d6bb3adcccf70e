"""The scoreboard: for each property how many cases passed, and the first that did not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab_lab.testing.conformance.properties import NAMES, PROPERTIES


@dataclass(frozen=True, slots=True)
class Failure:
    """A violation of a property: the case, its format and turn, and the reason."""

    seed: int
    case: str
    format: str
    turn: int
    reason: str


@dataclass(slots=True)
class CaseTally:
    """The properties judged in one case of one format, with the first failure of each."""

    seed: int
    case: str
    format: str
    judged: dict[str, Failure | None] = field(default_factory=dict)

    def add(self, name: str, reasons: Iterable[str], turn: int) -> None:
        """Add one judgement of a property; it holds if ``reasons`` is empty."""
        reason = next(iter(reasons), None)
        if reason is not None and self.judged.get(name) is None:
            self.judged[name] = Failure(self.seed, self.case, self.format, turn, reason)
        self.judged.setdefault(name, None)


@dataclass(frozen=True, slots=True)
class Row:
    """One property over all cases; ``judged`` is 0 if no case tests it or the target does not offer
    it."""

    name: str
    about: str
    judged: int
    failures: tuple[Failure, ...]

    @property
    def passed(self) -> int:
        """The number of cases in which the property held."""
        return self.judged - len(self.failures)

    @property
    def share(self) -> float | None:
        """The share of cases passed, from 0 to 1; None if nothing was judged."""
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
        rows = []
        for name, about in PROPERTIES:
            judged = [tally.judged[name] for tally in tallies if name in tally.judged]
            failures = tuple(failure for failure in judged if failure is not None)
            rows.append(Row(name, about, len(judged), failures))
        cases = len({tally.seed for tally in tallies})
        return cls(target, window, tuple(formats), cases, tuple(rows))

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not any(row.failures for row in self.rows)

    @property
    def held(self) -> int:
        """The number of properties that held in all cases."""
        return sum(1 for row in self.rows if row.judged and not row.failures)

    @property
    def judged(self) -> int:
        """The number of properties that were judged."""
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
