"""Checks and repairs by a table of rules, and finds the turns that rules look at."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from trimtab import interruption
from trimtab.formats.engine.base import Format, may_answer
from trimtab.formats.engine.reading import SharedMessageReader, read
from trimtab.formats.engine.rule import Finding, Repair, Rule, RuleTable, Violation
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Path, PathOp
from trimtab.transcript.transcript import Transcript


@dataclass
class Repaired:
    """A request after repair: the new tree, what was done, and the operations of each pass."""

    tree: Any
    transcript: Transcript
    repairs: list[tuple[str, Repair]]
    at: list[int]
    """For each repair, the number of passes after which its paths are valid."""
    passes: list[tuple[PathOp, ...]]
    taken: list[tuple[int, Path, Any]]
    """(index into ``repairs``, path at the time, original value) of each removed value."""
    trees: list[Any]
    """The request before each pass, and ``tree``."""
    keys: list[str] = field(default_factory=list)
    """For each repair, what it was made on: a digest and a number among equal ones, oldest first;
    it stays the same when messages before it come or go."""
    found: list[tuple[str, str]] = field(default_factory=list)
    """(rule, digest of what was found) of all findings that were repaired."""


def with_refused(transcript: Transcript, refused: frozenset[str]) -> Transcript:
    """The transcript of a request for which the provider has named these rows: they are true of it,
    whatever dialect it is in, and scans take no other condition than what they see."""
    if refused <= transcript.facts.refused:
        return transcript
    facts = replace(transcript.facts, refused=transcript.facts.refused | refused)
    return replace(transcript, facts=facts)


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
    wanted = {row.name for row in table.rows if row.applies_to(facts.dialect)} | facts.refused
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


def violations(
    table: RuleTable,
    transcript: Transcript,
    open_tail: bool,
    failures: list[str] | None = None,
    *,
    doubtful: bool = False,
) -> tuple[Violation, ...]:
    """The findings of rows that the provider refuses; of certain rows only unless ``doubtful``."""
    facts = transcript.facts
    rows = {r.name: r for r in table.rows if r.is_refused_by(facts, doubtful=doubtful)}
    return tuple(
        Violation(
            finding.rule, finding.path, f"{finding.detail}: {rows[finding.rule].error_text}",
            rows[finding.rule].is_refused_by(facts, doubtful=False),
        )
        for finding in find_all(table, transcript, open_tail, failures)
        if finding.rule in rows
    )  # fmt: skip


MAX_PASSES = 24
"""Rounds over all rows; a row needs more than one only if its repairs overlap."""


def repair(
    table: RuleTable,
    tree: Any,
    format: Format,
    transcript: Transcript,
    open_tail: bool,
    failures: list[str] | None = None,
    *,
    doubtful: bool = False,
    only: Mapping[str, frozenset[str]] | None = None,
) -> Repaired:
    """Repair row by row until nothing is found.  Deterministic; () passes when nothing is wrong.

    Only certain rows and those that ``Facts.refused`` names, unless ``doubtful``; and what these
    repairs break.  A row in ``only`` is repaired just where ``digest_at`` is one of its digests.  A
    row that raises is left out and named in ``failures``; without it, it raises.
    """
    only = {} if only is None else only
    views = SharedMessageReader(tree, transcript)
    done = Repaired(tree, transcript, [], [], [], [], [tree])
    seen = transcript, find_all(table, transcript, open_tail, failures)
    given = Counter(finding.rule for finding in seen[1])
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
            if row.is_refused_by(done.transcript.facts) and found[row.name] > given[row.name]
        }
    return done


def _compatible(repairs: Iterable[Repair]) -> list[Repair]:
    """The repairs that don't touch a part that another one removes; the rest are deferred."""
    taken, touched, kept = set[Path](), set[Path](), list[Repair]()
    for repair in repairs:
        own = {op.path for op in repair.ops if isinstance(op, Delete)}
        prefixes = {op.path[:end] for op in repair.ops for end in range(len(op.path))}
        if taken.isdisjoint(prefixes) and own.isdisjoint(touched):
            kept.append(repair)
            taken |= own
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


def repair_keys(done: Repaired, repairs: Sequence[Repair]) -> list[str]:
    """The key of each of these repairs, which are made on ``done`` as it is."""
    often = Counter(key.partition(".")[0] for key in done.keys)
    keys = []
    for repair in repairs:
        digest = digest_at(done.transcript, done.tree, repair.path)
        keys.append(f"{digest}.{often[digest]}")
        often[digest] += 1
    return keys


def digest_at(transcript: Transcript, tree: Any, path: Path) -> str:
    """A digest of the block at, above or first below a path; of the value if no block is there."""
    depth = len(transcript.base)
    number = path[depth] if len(path) > depth and path[:depth] == transcript.base else None
    if isinstance(number, int) and number < len(transcript.messages):
        for place in transcript.places_in(number):
            item = transcript.item(place)
            if item[: len(path)] == path or path[: len(item)] == item:
                return place.block.digest
    try:
        text = paths.dump(paths.get(tree, path))
    except LookupError:
        text = paths.escape(path)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


# --- where a model turn begins and ends, and how far the results of its calls may reach ---


class TurnRange(NamedTuple):
    """Indices of a model turn: messages[first:end] are the model's, [end:stop] may hold results."""

    first: int
    end: int
    stop: int


def turn_ranges(transcript: Transcript, start: int = 0) -> Iterator[TurnRange]:
    """Every model turn, and every run of results without a model turn before it, from message
    ``start`` on, which must begin a run."""
    messages, merges = transcript.messages, transcript.format.merges_roles
    role = "user" if transcript.format.results_in_user else "tool"
    index, count = start, len(messages)
    while index < count:
        first = index
        while index < count and messages[index].role == "assistant":
            index += 1
            if not merges:
                break
        end = index
        while index < count and may_answer(messages[index], role):
            index += 1
        if index == first:
            index += 1
        else:
            yield TurnRange(first, end, index)


def last_turn_start(transcript: Transcript, known: int) -> int:
    """The first message of the last model turn among the first ``known`` messages.  Everything
    before it belongs to finished turns, whatever follows."""
    messages, merges = transcript.messages, transcript.format.merges_roles
    number = known - 1
    while number > 0:
        opens = messages[number].role == "assistant"
        if opens and not (merges and messages[number - 1].role == "assistant"):
            return number
        number -= 1
    return 0
