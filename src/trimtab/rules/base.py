"""What a rule is, and the engine that checks and mends by a table of rules.

Knows rows, findings and how repairs are applied in turn.  Does not know any provider's rules
(one data file per format) nor where a format keeps its values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from trimtab import paths
from trimtab.formats.base import Format, Views, read
from trimtab.model import Facts, Path, Transcript
from trimtab.paths import Delete, PathOp


class Finding(NamedTuple):
    """One place where a rule is broken: the rule's name, the path, and what is wrong there."""

    rule: str
    path: Path
    detail: str
    data: Any = None


class Violation(NamedTuple):
    """A reason for which the provider would refuse this request."""

    rule: str
    path: Path
    message: str


class Mend(NamedTuple):
    """One repair: operations on the tree, and the parts whose originals must be kept."""

    path: Path
    message: str
    ops: tuple[PathOp, ...]
    taken: tuple[Path, ...] = ()


Scan = Callable[[Transcript, bool], Iterable[Finding]]
"""(transcript, open_tail) → findings, in order of place."""
MendAll = Callable[[Transcript, Any, Sequence[Finding]], Iterable[Mend]]
"""(transcript, tree, all findings of one row) → repairs, all in coordinates of this tree."""


@dataclass(frozen=True)
class Rule:
    """One row: what the provider demands, in its own words, and how a breach is mended.

    ``sure``: "refused" (a quoted refusal), "accepted" (recorded with 200) or "inferred".  Only
    refused rows are violations; each of them has a repair.  ``dialects``: whose rule it is, None
    for everyone who speaks the format; ``spares``: who does not have it.
    """

    name: str
    says: str
    source: str
    mend: MendAll
    sure: Literal["refused", "accepted", "inferred"] = "refused"
    dialects: frozenset[str] | None = None
    spares: frozenset[str] = frozenset()
    does: str = ""
    """The repair in one line; "" where the first line of ``mend``'s docstring says it."""

    @property
    def repair(self) -> str:
        """What a repair does, in one line."""
        return self.does or (self.mend.__doc__ or "").strip().partition("\n\n")[0]

    def concerns(self, dialect: str) -> bool:
        """Whether this row is about this provider at all."""
        return (self.dialects is None or dialect in self.dialects) and dialect not in self.spares

    def holds(self, dialect: str) -> bool:
        """Whether this provider refuses it."""
        return self.sure == "refused" and self.concerns(dialect)


@dataclass(frozen=True)
class Cap:
    """A hard limit that not everybody who speaks the format has.

    ``limit``: request_bytes or images; ``model``: a pattern of the names it is for, "" for all.
    """

    limit: str
    most: int
    says: str
    source: str
    dialects: frozenset[str]
    model: str = ""

    def holds(self, facts: Facts) -> bool:
        """Whether it is for this request."""
        ours = facts.dialect in self.dialects
        return ours and re.search(self.model, str(facts.model or "").lower()) is not None


@dataclass(frozen=True)
class Table:
    """The rules of one format: rows in the order in which they are mended, and their scans."""

    rows: tuple[Rule, ...]
    scans: tuple[Scan, ...]
    may_drop_reasoning: Callable[[Transcript, int], bool]
    """Whether the reasoning of a message may be left out while the message stays."""
    limits: dict[str, int] = field(default_factory=dict)
    """Hard limits of the provider by name: request_bytes, images."""
    caps: tuple[Cap, ...] = ()
    """Those of single dialects or models."""
    by_turn: bool = True
    """Whether a result answers a call of the model's turn before it, and no other."""


@dataclass
class Repaired:
    """A request after repair: the new tree, what was done, and the operations of each pass."""

    tree: Any
    transcript: Transcript
    mends: list[tuple[str, Mend]]
    at: list[int]
    """For each mend, after how many passes its paths hold."""
    passes: list[tuple[PathOp, ...]]
    taken: list[tuple[int, Path, Any]]
    """(index into ``mends``, path at the time, original value) of what was taken out."""


def gives(*rules: str) -> Callable[[Scan], Scan]:
    """Says which rows a scan looks for: where none of them concerns a dialect, it is spared."""

    def marked(scan: Scan) -> Scan:
        scan.gives = frozenset(rules)  # type: ignore[attr-defined]
        return scan

    return marked


def resumes(at: Callable[[Transcript, int], int]) -> Callable[[Callable[..., Any]], Any]:
    """Says that a scan, which takes the message to begin at as a third argument, need not read
    messages again of which a sound transcript consisted.

    ``at(transcript, known)``: where to begin, when the first ``known`` messages, with the same
    facts, are those that a transcript in which this scan found nothing began with.
    """

    def marked(scan: Callable[..., Any]) -> Any:
        def behind(transcript: Transcript, open_tail: bool, known: int) -> Iterable[Finding]:
            found: Iterable[Finding] = scan(transcript, open_tail, at(transcript, known))
            return found

        scan.behind = behind  # type: ignore[attr-defined]
        return scan

    return marked


def new_alone(transcript: Transcript, known: int) -> int:
    """For scans that look at one message at a time."""
    return known


def find(
    table: Table,
    transcript: Transcript,
    open_tail: bool,
    failures: list[str] | None = None,
    known: int = 0,
) -> list[Finding]:
    """Every finding, whether it is a violation or a warning.

    A scan that raises is left out and named in ``failures`` (law 10); without it, it raises.
    ``known``: see ``resumes``.
    """
    found: list[Finding] = []
    wanted = {row.name for row in table.rows if row.concerns(transcript.facts.dialect)}
    for scan in table.scans:
        if not wanted & getattr(scan, "gives", wanted):
            continue
        try:
            behind = getattr(scan, "behind", None) if known else None
            found += behind(transcript, open_tail, known) if behind else scan(transcript, open_tail)
        except Exception as error:
            _failed(failures, getattr(scan, "__name__", "scan"), error)
    return found


def _failed(failures: list[str] | None, name: str, error: Exception) -> None:
    if failures is None:
        raise error
    failures.append(f"rule skipped: {name}: {type(error).__name__}: {error}")


def warnings(table: Table, transcript: Transcript, open_tail: bool) -> tuple[Violation, ...]:
    """The findings that are known or said to trouble somebody, but not sure to be refused."""
    dialect = transcript.facts.dialect
    rows = {row.name: row for row in table.rows if row.sure == "inferred" and
            row.concerns(dialect)}  # fmt: skip
    return tuple(
        Violation(found.rule, found.path, f"{found.detail}: {rows[found.rule].says}")
        for found in find(table, transcript, open_tail)
        if found.rule in rows
    )


def violations(
    table: Table,
    transcript: Transcript,
    open_tail: bool,
    failures: list[str] | None = None,
    known: int = 0,
) -> tuple[Violation, ...]:
    """The findings of rows that are sure to be refused."""
    rows = {row.name: row for row in table.rows if row.holds(transcript.facts.dialect)}
    return tuple(
        Violation(found.rule, found.path, f"{found.detail}: {rows[found.rule].says}")
        for found in find(table, transcript, open_tail, failures, known)
        if found.rule in rows
    )


MAX_PASSES = 24
"""Rounds over all rows; a row needs more than one only where its repairs touch each other."""


def repair(
    table: Table,
    tree: Any,
    format: Format,
    transcript: Transcript,
    open_tail: bool,
    failures: list[str] | None = None,
) -> Repaired:
    """Mend row by row until nothing is found.  Deterministic; () passes when nothing is wrong.

    A row that raises is left out and named in ``failures``; without it, it raises.
    """
    messages = paths.get(tree, transcript.base) if transcript.messages else []
    views = Views(messages, transcript.messages)
    done = Repaired(tree, transcript, [], [], [], [])
    seen: tuple[Transcript | None, list[Finding]] = (None, [])
    for _ in range(MAX_PASSES):
        before = len(done.passes)
        for row in table.rows:
            if not row.holds(done.transcript.facts.dialect):
                continue
            for _ in range(MAX_PASSES):  # what was put off is mended before the rows behind it
                if seen[0] is not done.transcript:  # else there is nothing new to see
                    seen = done.transcript, find(table, done.transcript, open_tail, failures)
                found = [finding for finding in seen[1] if finding.rule == row.name]
                try:
                    put_off = bool(found) and _mend(done, row, found, format, views)
                except Exception as error:
                    _failed(failures, row.name, error)
                    break
                if not put_off:
                    break
        if len(done.passes) == before:
            break
    return done


def _compatible(mends: Iterable[Mend]) -> list[Mend]:
    """Those of these repairs that do not touch what another takes out; the rest are put off."""
    taken, touched, kept = set[Path](), set[Path](), list[Mend]()
    for mend in mends:
        own = {op.path for op in mend.ops if isinstance(op, Delete)}
        prefixes = {op.path[:end] for op in mend.ops for end in range(len(op.path))}
        if taken.isdisjoint(prefixes) and own.isdisjoint(touched):
            kept.append(mend)
            taken |= own
            touched |= prefixes
    return kept


def _mend(
    done: Repaired, row: Rule, found: Sequence[Finding], format: Format, views: Views
) -> bool:
    """Mend what one row found; whether some of it was put off."""
    wanted = list(row.mend(done.transcript, done.tree, found))
    mends = _compatible(wanted)
    ops = tuple(op for mend in mends for op in mend.ops)
    if not ops:
        return False
    tree = paths.apply(done.tree, ops)  # a row that raises here leaves nothing behind
    transcript = read(tree, format, model=done.transcript.facts.model, memo=views)
    first = len(done.mends)
    taken = [(first + at, path) for at, mend in enumerate(mends) for path in mend.taken]
    done.taken += [(at, path, paths.get(done.tree, path)) for at, path in taken]
    done.mends += [(row.name, mend) for mend in mends]
    done.at += [len(done.passes)] * len(mends)
    done.passes.append(ops)
    done.tree, done.transcript = tree, transcript
    return len(mends) < len(wanted)
