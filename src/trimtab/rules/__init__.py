"""Validity, and nothing else owns it: check a transcript, mend a request.

Knows which table belongs to which format.  Does not know sizes or limits in tokens.
"""

from __future__ import annotations

from typing import Any

from trimtab.formats.base import Format
from trimtab.model import Facts, Transcript
from trimtab.paths import PathOp
from trimtab.rules import anthropic, bedrock, gemini, openai_chat, openai_responses
from trimtab.rules.base import Finding, Mend, Repaired, Rule, Table, Violation
from trimtab.rules.base import repair as _repair
from trimtab.rules.base import violations as _violations

TABLES: dict[str, Table] = {
    "openai-chat": openai_chat.TABLE,
    "openai-responses": openai_responses.TABLE,
    "anthropic": anthropic.TABLE,
    "bedrock": bedrock.TABLE,
    "gemini": gemini.TABLE,
}

_BINDS = {"anthropic": anthropic.binds_thinking, "bedrock": bedrock.binds_thinking}
"""Formats whose models bind reasoning to what stands before it, and for which facts."""

_DROP_BLOCK = {"anthropic": anthropic.drop_block_ops, "bedrock": bedrock.drop_block_ops}
"""How their APIs are asked to drop what no longer fits."""


def check(
    transcript: Transcript,
    *,
    open_tail: bool = False,
    failures: list[str] | None = None,
    known: int = 0,
) -> tuple[Violation, ...]:
    """What the provider would refuse; ``()`` means acceptable.

    With ``failures`` a rule that raises is left out and named there.  ``known``: how many messages
    at the beginning are those of a transcript that was acceptable; what is said then may leave
    violations out, unless it is that there are none.
    """
    return _violations(TABLES[transcript.format.name], transcript, open_tail, failures, known)


def repair(
    tree: Any,
    format: Format,
    transcript: Transcript,
    *,
    open_tail: bool = False,
    failures: list[str] | None = None,
) -> Repaired:
    """Mend what the provider would refuse."""
    return _repair(TABLES[format.name], tree, format, transcript, open_tail, failures)


def hard_limits(transcript: Transcript) -> dict[str, int]:
    """The provider's limits other than tokens: request_bytes, images."""
    table = TABLES[transcript.format.name]
    own = {cap.limit: cap.most for cap in table.caps if cap.holds(transcript.facts)}
    return {**table.limits, **own} if own else table.limits


def binds_reasoning(format: str, facts: Facts) -> bool:
    """Whether reasoning is refused once anything before it has changed."""
    return format in _BINDS and _BINDS[format](facts)


def drop_block_ops(format: str, tree: Any) -> tuple[PathOp, ...]:
    """Operations that ask the API to drop reasoning which no longer fits what precedes it."""
    return _DROP_BLOCK[format](tree) if format in _DROP_BLOCK else ()


def may_drop_reasoning(transcript: Transcript, number: int) -> bool:
    """Whether the reasoning of this message may be left out, the message itself staying."""
    return TABLES[transcript.format.name].may_drop_reasoning(transcript, number)


__all__ = [
    "TABLES",
    "Finding",
    "Mend",
    "Repaired",
    "Rule",
    "Table",
    "Violation",
    "binds_reasoning",
    "check",
    "drop_block_ops",
    "hard_limits",
    "may_drop_reasoning",
    "repair",
]
