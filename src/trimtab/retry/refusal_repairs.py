"""Repairs a request for the rule that a refusal named, also if our tables don't list that rule for
this provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trimtab import rules, wire
from trimtab.errors import InvalidRequest, InvalidSetting
from trimtab.jsontext.paths import Delete, PathOp
from trimtab.rules.base import RuleTable
from trimtab.rules.base import repair as mend_by
from trimtab.wire.base import Format
from trimtab.wire.body import RequestBody
from trimtab.wire.detect import CHAT
from trimtab.wire.dialects import DIALECTS

_EMPTY = (
    *("no_messages", "null_content", "empty_parts", "no_content", "empty_text", "blank_text"),
    *("empty_result_text", "empty_marked", "empty_result", "empty_error_result", "empty_system"),
    *("no_parts", "empty_part", "empty_beside_response", "empty_answer", "trailing_space"),
)
_ORDER = (
    *("roles_alternate", "first_not_user", "mixed_turn", "user_after_result", "two_answers_last"),
    *("last_not_user", "system_late", "no_user", "call_order", "mixed_response", "calls_apart"),
    *("content_and_calls", "result_late", "repeated_call_id", "server_orphan"),
)
ROWS = {
    "orphan_result": ("result_id_case", "orphan_result", "server_orphan", "extra_result"),
    "missing_result": ("result_id_case", "call_unanswered", "result_late"),
    "duplicate_id": ("duplicate_call", "repeated_call_id", "duplicate_result", "extra_result"),
    "bad_order": _ORDER,
    "empty_content": _EMPTY,
    "id_format": ("id_format", "id_too_long", "name_format"),
    "bad_arguments": (
        *("arguments_not_string", "arguments_not_object", "arguments_not_json"),
        "input_not_object",
    ),
    "toolconfig_missing": ("toolconfig_missing", "toolconfig_empty"),
    "prefill": ("last_not_user",),
    "cache_control": ("too_many_marks",),
    "thinking_missing": ("thinking_missing", "reasoning_missing", "signature_missing"),
    "lone_surrogate": ("unreadable_text",),
    "compaction_block_misplaced": ("compaction_misplaced", "compaction_behind"),
    "compaction_block_ambiguous": ("compaction_ambiguous", "compaction_behind"),
    "compaction_incomplete_turn": ("call_unanswered", "result_late"),
    "array_too_long": ("too_many_calls", "too_many_tools"),
}
"""A refusal's rule → the rows that repair what it names."""
_THINKING = ("thinking_signature", "thinking_binding", "thinking_modified", "reasoning_item")
"""Refusals after which all signed or encrypted reasoning is left out, for this one request."""


def is_lasting(rule: str) -> bool:
    """Whether later requests to this provider get the same repair before they are refused."""
    return rule in ROWS


def repaired_for(request: Any, rule: str, format: str | None = None) -> Any:
    """The request repaired for ``rule`` of a refusal; None if there is nothing to repair.

    ``request`` is not changed; the result has its type.
    """
    try:
        source = RequestBody.of(request)
        detected, _ = wire.find(source.tree, format)
    except (InvalidRequest, InvalidSetting):
        return None
    if rule in _THINKING:
        passes = _without_thinking(source, detected)
    elif rule in ROWS:
        passes = _by_rows(source, detected, ROWS[rule])
    else:
        return None
    return source.after(passes).returned(source) if passes else None


Passes = Sequence[tuple[PathOp, ...]]


def _without_thinking(source: RequestBody, format: Format) -> Passes:
    transcript = wire.read(source.tree, format)
    parts = {transcript.item(p) for p in transcript.places() if p.block.kind == "reasoning"}
    return [tuple(Delete(path) for path in sorted(parts, key=str))] if parts else []


def _by_rows(source: RequestBody, format: Format, names: tuple[str, ...]) -> Passes:
    """Repair by the rows in ``names``, whether or not the detected dialect has them.  If that
    changes nothing, the chat dialects are tried: all rules of the first where these rows repair
    something."""
    table = rules.TABLES[format.name]
    if passes := _repairs(_with_rows(table, names), source, format):
        return passes
    for dialect in DIALECTS if format.name == CHAT else ():
        spoken = wire.find(source.tree, f"{CHAT}:{dialect}")[0]
        if _repairs(_with_rows(table, names), source, spoken):
            return _repairs(table, source, spoken)
    return []


def _repairs(table: RuleTable, source: RequestBody, format: Format) -> Passes:
    transcript = wire.read(source.tree, format)
    return mend_by(table, source.tree, format, transcript, False, []).passes


def _with_rows(table: RuleTable, names: tuple[str, ...]) -> RuleTable:
    """The table with these rows alone, applied to every dialect."""
    rows = tuple(
        replace(row, sure="certain", dialects=None, except_for=frozenset())
        for row in table.rows
        if row.name in names
    )
    return replace(table, rows=rows)
