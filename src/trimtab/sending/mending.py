"""The repair that a refusal asks for: rules that we held not to be this provider's, held once.

Knows which rows of the rule tables a refusal is about.  Does not know what a row does, nor when a
request is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trimtab import formats, rules
from trimtab.errors import InvalidRequest, InvalidSetting
from trimtab.formats.base import Format
from trimtab.formats.detect import CHAT
from trimtab.formats.dialects import DIALECTS
from trimtab.paths import Delete, PathOp
from trimtab.reading.source import Source
from trimtab.rules.base import Table
from trimtab.rules.base import repair as mend_by

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
    "orphan_result": ("orphan_result", "server_orphan", "extra_result"),
    "missing_result": ("call_unanswered", "result_late"),
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
    "array_too_long": ("too_many_calls", "too_many_tools"),
}
"""A refusal's rule → the rows that mend what it says."""
_THINKING = ("thinking_signature", "thinking_binding", "thinking_modified", "reasoning_item")
"""Refusals after which all signed or encrypted reasoning is left out, for this one request."""


def lasts(rule: str) -> bool:
    """Whether later requests to this provider get the same repair before they are refused."""
    return rule in ROWS


def mended(request: Any, rule: str, format: str | None = None, model: str | None = None) -> Any:
    """The request with what this refusal is about mended; None where there is nothing to mend.

    Never changes what it is given; returns the type that came.
    """
    try:
        source = Source.of(request)
        found, _ = formats.find(source.tree, format)
    except (InvalidRequest, InvalidSetting):
        return None
    if rule in _THINKING:
        passes = _without_thinking(source, found, model)
    elif rule in ROWS:
        passes = _by_rows(source, found, model, ROWS[rule])
    else:
        return None
    return source.after(passes).returned(source) if passes else None


Passes = Sequence[tuple[PathOp, ...]]


def _without_thinking(source: Source, format: Format, model: str | None) -> Passes:
    transcript = formats.read(source.tree, format, model=model, memo=formats.Memo())
    parts = {transcript.item(p) for p in transcript.places() if p.block.kind == "reasoning"}
    return [tuple(Delete(path) for path in sorted(parts, key=str))] if parts else []


def _by_rows(source: Source, format: Format, model: str | None, names: tuple[str, ...]) -> Passes:
    """These rows in force for whoever is asked; then whoever else speaks the format and has one
    of them is taken at all of his word."""
    table = rules.TABLES[format.name]
    if passes := _mends(_held(table, names), source, format, model):
        return passes
    for dialect in DIALECTS if format.name == CHAT else ():
        spoken = formats.find(source.tree, f"{CHAT}:{dialect}")[0]
        if _mends(_held(table, names), source, spoken, model):
            return _mends(table, source, spoken, model)
    return []


def _mends(table: Table, source: Source, format: Format, model: str | None) -> Passes:
    transcript = formats.read(source.tree, format, model=model, memo=formats.Memo())
    return mend_by(table, source.tree, format, transcript, False, []).passes


def _held(table: Table, names: tuple[str, ...]) -> Table:
    """The table with these rows alone, in force for whoever is asked."""
    rows = tuple(
        replace(row, sure="refused", dialects=None, spares=frozenset())
        for row in table.rows
        if row.name in names
    )
    return replace(table, rows=rows)
