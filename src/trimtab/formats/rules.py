"""Checks whether a provider would accept a request, and repairs it where it would not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.formats.engine.base import Format
from trimtab.formats.engine.rule import Finding, Repair, Rule, RuleTable, Violation
from trimtab.formats.repair.base import Repaired, with_refused
from trimtab.formats.repair.base import repair as _repair
from trimtab.formats.repair.base import violations as _violations
from trimtab.formats.repair.ignored import with_ignored
from trimtab.formats.repair.named_rules import with_named_rules
from trimtab.formats.repair.shape import with_shape
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
    table, named = transcript.format.rules, with_refused(transcript, refused)
    return _violations(table, named, open_tail, failures, doubtful=doubtful)


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
    ``base.digest_at`` is one of these digests.  ``doubtful``: rows that are not certain as well,
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
    return _repair(table, tree, format, named, open_tail, failures, doubtful=doubtful, only=only)


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
