"""Checks whether a provider would accept a request, and repairs it where it would not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trimtab import interruption
from trimtab.formats.engine.base import Format
from trimtab.formats.engine.reading import SharedMessageReader, read
from trimtab.formats.engine.rule import (
    Finding,
    Repair,
    Repaired,
    Rule,
    RuleTable,
    Violation,
    digest_at,
    repair_keys,
    with_refused,
)
from trimtab.formats.repair.ignored import with_ignored
from trimtab.formats.repair.named_rules import with_named_rules
from trimtab.formats.repair.shape import with_shape
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Path
from trimtab.transcript.transcript import Transcript


def check(
    transcript: Transcript,
    *,
    open_tail: bool = False,
    failures: list[str] | None = None,
    doubtful: bool = False,
    refused: frozenset[str] = frozenset(),
) -> tuple[Violation, ...]:
    """All violations for which the provider would refuse the request; ``()`` means acceptable.

    ``doubtful``: also of rows that are not certain, as a request of our own making must keep them.
    ``refused``: names of rows by which this provider has refused it; they count in any case.
    With ``failures``, a rule that raises is skipped and named there.
    """
    named, table = with_refused(transcript, refused), transcript.format.rules
    rows = {r.name: r for r in table.rows if r.is_refused_by(named.facts, doubtful=doubtful)}
    return tuple(
        Violation(
            finding.rule, finding.path, f"{finding.detail}: {rows[finding.rule].error_text}",
            rows[finding.rule].is_refused_by(named.facts, doubtful=False),
        )
        for finding in find_all(table, named, open_tail, failures)
        if finding.rule in rows
    )  # fmt: skip


def repair(
    tree: Any,
    format: Format,
    transcript: Transcript,
    *,
    open_tail: bool = False,
    failures: list[str] | None = None,
    leave_out_ignored: bool = False,
    doubtful: bool = False,
    refused: Mapping[str, frozenset[str] | None] | Iterable[str] = (),
) -> Repaired:
    """Repair what the provider certainly refuses, and what it has refused.

    ``refused``: rules that refusals of this conversation named, those of ``named_rules`` too; they
    are repaired however sure they are and whatever the dialect: everywhere, or only where
    ``digest_at`` is one of these digests.  ``doubtful``: rows that are not certain as well,
    for a request of our own making.  ``leave_out_ignored``: leave out first what the provider
    ignores because it compacted it.
    """
    table = format.rules
    if leave_out_ignored:
        table = with_ignored(table)
    where = refused if isinstance(refused, Mapping) else dict.fromkeys(refused)
    table = with_named_rules(table, where)
    named = with_refused(transcript, frozenset(where))
    only = {name: digests for name, digests in where.items() if digests is not None}
    return _by_rows(table, tree, format, named, open_tail, failures, doubtful=doubtful, only=only)


def hard_limits(transcript: Transcript) -> dict[str, int]:
    """The provider's limits other than tokens: request_bytes, images."""
    table = transcript.format.rules
    own = {cap.limit: cap.most for cap in table.dialect_limits if cap.applies_to(transcript.facts)}
    return {**table.limits, **own} if own else table.limits


def takes_words_beside_calls(transcript: Transcript) -> bool:
    """Whether a message of the model may have both text and a call."""
    facts, rows = transcript.facts, transcript.format.rules.rows
    refused = any(r.name == "content_and_calls" and r.is_refused_by(facts) for r in rows)
    return not (facts.apart or refused)


def may_drop_reasoning(transcript: Transcript, number: int) -> bool:
    """Whether the reasoning of this message may be left out while the message stays."""
    table: RuleTable = transcript.format.rules
    return table.may_drop_reasoning(transcript, number)


# --- checks and repairs by a table ---


def find_all(
    table: RuleTable,
    transcript: Transcript,
    open_tail: bool,
    failures: list[str] | None = None,
) -> list[Finding]:
    """Every finding, whether it is a violation or a warning.

    A scan that raises is left out and named in ``failures``; without it, it raises.
    """
    findings: list[Finding] = []
    facts = transcript.facts
    wanted = {row.name for row in table.rows if row.applies_to(facts)} | facts.refused
    for scan in table.scans:
        interruption.check()
        if not wanted & getattr(scan, "gives", wanted):
            continue
        try:
            findings += scan(transcript, open_tail)
        except Exception as error:
            _failed(failures, getattr(scan, "__name__", "scan"), error)
    return findings


def _failed(failures: list[str] | None, name: str, error: Exception) -> None:
    if failures is None:
        raise error
    failures.append(f"rule skipped: {name}: {type(error).__name__}: {error}")


MAX_PASSES = 24
"""Rounds over all rows; a row needs more than one only if its repairs overlap."""


def _by_rows(
    table: RuleTable,
    tree: Any,
    format: Format,
    transcript: Transcript,
    open_tail: bool,
    failures: list[str] | None,
    *,
    doubtful: bool,
    only: Mapping[str, frozenset[str]],
) -> Repaired:
    """Repair row by row until nothing is found.  Deterministic; () passes when nothing is wrong.

    Only certain rows and those that ``Facts.refused`` names, unless ``doubtful``; and what these
    repairs break.  A row in ``only`` is repaired just where ``digest_at`` is one of its digests.  A
    row that raises is left out and named in ``failures``; without it, it raises.
    """
    views = SharedMessageReader(tree, transcript)
    done = Repaired(tree, transcript, [], [], [], [], [tree])
    seen = transcript, find_all(table, transcript, open_tail, failures)
    found_before = Counter(finding.rule for finding in seen[1])
    ours: set[str] = set()
    """Rows that are broken more often than they were: by our own repairs."""
    for _ in range(MAX_PASSES):
        before = len(done.passes)
        for row in table.rows:
            wanted = row.is_refused_by(done.transcript.facts, doubtful=doubtful)
            if not (wanted or row.name in ours):
                continue
            for _ in range(MAX_PASSES):  # deferred repairs come before the next rows
                if seen[0] is not done.transcript:  # else there is nothing new to see
                    seen = done.transcript, find_all(table, done.transcript, open_tail, failures)
                findings = [finding for finding in seen[1] if finding.rule == row.name]
                if row.name in only:
                    findings = [
                        finding
                        for finding in findings
                        if digest_at(done.transcript, done.tree, finding.path) in only[row.name]
                    ]
                try:
                    put_off = bool(findings) and _repair_row(done, row, findings, format, views)
                except Exception as error:
                    _failed(failures, row.name, error)
                    break
                if not put_off:
                    break
        if len(done.passes) == before:
            break
        if seen[0] is not done.transcript:
            seen = done.transcript, find_all(table, done.transcript, open_tail, failures)
        found = Counter(finding.rule for finding in seen[1])
        ours |= {
            row.name
            for row in table.rows
            if row.is_refused_by(done.transcript.facts) and found[row.name] > found_before[row.name]
        }
    return done


def _compatible(repairs: Iterable[Repair]) -> list[Repair]:
    """The repairs that don't touch a part that another one removes; the rest are deferred."""
    deleted, touched, kept = set[Path](), set[Path](), list[Repair]()
    for repair in repairs:
        own = {op.path for op in repair.ops if isinstance(op, Delete)}
        prefixes = {op.path[:end] for op in repair.ops for end in range(len(op.path))}
        if deleted.isdisjoint(prefixes) and own.isdisjoint(touched):
            kept.append(repair)
            deleted |= own
            touched |= prefixes
    return kept


def _repair_row(
    done: Repaired,
    row: Rule,
    findings: Sequence[Finding],
    format: Format,
    views: SharedMessageReader,
) -> bool:
    """Repair the findings of one row; return whether some repairs were deferred."""
    wanted = list(row.make_repairs(done.transcript, done.tree, findings))
    repairs = _compatible(wanted)
    ops = tuple(op for repair in repairs for op in repair.ops)
    if not ops:
        return False
    tree = paths.apply(done.tree, ops)  # a row that raises here leaves nothing behind
    facts = done.transcript.facts
    transcript = with_refused(read(tree, format, model=facts.model, reader=views), facts.refused)
    done.keys += repair_keys(done, repairs)
    done.found += [
        (row.name, digest_at(done.transcript, done.tree, finding.path)) for finding in findings
    ]
    first = len(done.repairs)
    taken = [(first + at, path) for at, repair in enumerate(repairs) for path in repair.taken]
    done.taken += [(at, path, paths.get(done.tree, path)) for at, path in taken]
    done.repairs += [(row.name, repair) for repair in repairs]
    done.at += [len(done.passes)] * len(repairs)
    done.passes.append(ops)
    done.trees.append(tree)
    done.tree, done.transcript = tree, transcript
    return len(repairs) < len(wanted)


__all__ = [
    "Finding",
    "Repair",
    "Repaired",
    "Rule",
    "RuleTable",
    "Violation",
    "check",
    "hard_limits",
    "may_drop_reasoning",
    "repair",
    "takes_words_beside_calls",
    "with_shape",
]
