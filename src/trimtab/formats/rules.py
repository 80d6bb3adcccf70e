"""Checks whether a provider would accept a request, and repairs it where it would not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trimtab.formats.anthropic import rules as anthropic
from trimtab.formats.bedrock import rules as bedrock
from trimtab.formats.engine.base import Format
from trimtab.formats.gemini import rules as gemini
from trimtab.formats.gemini_interactions import rules as gemini_interactions
from trimtab.formats.openai_chat import rules as openai_chat
from trimtab.formats.openai_chat.reasoning_rules import REASONERS
from trimtab.formats.openai_responses import rules as openai_responses
from trimtab.formats.repair.base import (
    Finding,
    Repair,
    Repaired,
    Rule,
    RuleTable,
    Violation,
    with_refused,
)
from trimtab.formats.repair.base import repair as _repair
from trimtab.formats.repair.base import violations as _violations
from trimtab.formats.repair.id_case import with_id_case
from trimtab.formats.repair.ignored import with_ignored
from trimtab.formats.repair.named_rules import with_named_rules
from trimtab.formats.repair.shape import with_shape
from trimtab.jsontext.paths import PathOp
from trimtab.transcript.model import Facts
from trimtab.transcript.transcript import Transcript

_MODULES = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "bedrock": bedrock,
    "gemini": gemini,
    "gemini-interactions": gemini_interactions,
}
TABLES: dict[str, RuleTable] = {
    name: with_id_case(module.TABLE) for name, module in _MODULES.items()
}

WANT_REASONING = REASONERS
"""Dialects that require the reasoning of messages with calls to be sent back."""

_BINDS = {"anthropic": anthropic.binds_thinking, "bedrock": bedrock.binds_thinking}
"""Format → whether the request's model refuses reasoning after anything before it has changed."""

_DROP_BLOCK = {"anthropic": anthropic.drop_block_ops, "bedrock": bedrock.drop_block_ops}
"""Format → operations that ask the API to drop reasoning whose prefix has changed."""


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
    table, named = TABLES[transcript.format.name], with_refused(transcript, refused)
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
    table = TABLES[format.name]
    if leave_out_ignored:
        table = with_ignored(table)
    where = refused if isinstance(refused, Mapping) else dict.fromkeys(refused)
    table = with_named_rules(table, where)
    named = with_refused(transcript, frozenset(where))
    only = {name: digests for name, digests in where.items() if digests is not None}
    return _repair(table, tree, format, named, open_tail, failures, doubtful=doubtful, only=only)


def hard_limits(transcript: Transcript) -> dict[str, int]:
    """The provider's limits other than tokens: request_bytes, images."""
    table = TABLES[transcript.format.name]
    own = {cap.limit: cap.most for cap in table.dialect_limits if cap.applies_to(transcript.facts)}
    return {**table.limits, **own} if own else table.limits


def binds_reasoning(format: str, facts: Facts) -> bool:
    """Whether reasoning is refused once anything before it has changed."""
    return format in _BINDS and _BINDS[format](facts)


def drop_block_ops(format: str, tree: Any) -> tuple[PathOp, ...]:
    """Operations that ask the API to drop reasoning which no longer fits what precedes it."""
    return _DROP_BLOCK[format](tree) if format in _DROP_BLOCK else ()


def takes_words_beside_calls(transcript: Transcript) -> bool:
    """Whether a message of the model may have both text and a call."""
    facts, rows = transcript.facts, TABLES[transcript.format.name].rows
    refused = any(r.name == "content_and_calls" and r.is_refused_by(facts) for r in rows)
    return not (facts.apart or refused)


def may_drop_reasoning(transcript: Transcript, number: int) -> bool:
    """Whether the reasoning of this message may be left out while the message stays."""
    return TABLES[transcript.format.name].may_drop_reasoning(transcript, number)


__all__ = [
    "TABLES",
    "WANT_REASONING",
    "Finding",
    "Repair",
    "Repaired",
    "Rule",
    "RuleTable",
    "Violation",
    "binds_reasoning",
    "check",
    "drop_block_ops",
    "hard_limits",
    "may_drop_reasoning",
    "repair",
    "takes_words_beside_calls",
    "with_shape",
]
