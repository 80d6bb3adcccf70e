"""Which rules a refusal names.  ``pipeline.prepare`` repairs what breaks them, whatever our tables
say of this provider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab import rules, wire
from trimtab.errors import InvalidRequest, InvalidSetting
from trimtab.jsontext import paths
from trimtab.retry.refusals import Refusal
from trimtab.rules.named_rules import (
    DIALECT,
    ITEM_ID,
    OUTPUT,
    REASONING,
    field_rule,
    kind_of,
    places_of_field,
)
from trimtab.wire.base import Format
from trimtab.wire.body import RequestBody
from trimtab.wire.detect import CHAT
from trimtab.wire.dialects import DIALECTS

_EMPTY = (
    *("no_messages", "null_content", "empty_parts", "no_content", "empty_text", "blank_text"),
    *("empty_result_text", "blank_result_text", "empty_marked", "empty_result"),
    *("empty_error_result", "empty_system", "no_parts", "empty_part", "empty_beside_response"),
    *("empty_answer", "trailing_space"),
)
_ORDER = (
    *("roles_alternate", "first_not_user", "mixed_turn", "user_after_result", "two_answers_last"),
    *("last_not_user", "no_user", "call_order", "mixed_response", "calls_apart"),
    *("content_and_calls", "result_late", "repeated_call_id", "text_after_calls"),
    *("file_beside_result", "calls_interleaved"),
)
_SYSTEM = (
    *("system_late", "system_not_first", "system_first", "system_place", "system_in_a_row"),
    "system_unsupported",
)
ROWS = {
    "orphan_result": ("result_id_case", "orphan_result", "extra_result"),
    "server_orphan": ("server_orphan",),
    "server_unanswered": ("server_unanswered",),
    "container_missing": ("container_missing",),
    "tool_reference_unknown": ("tool_reference_unknown",),
    "missing_result": ("result_id_case", "call_unanswered", "result_late"),
    "duplicate_id": ("duplicate_call", "repeated_call_id", "duplicate_result", "extra_result"),
    "bad_order": (*_ORDER, *_SYSTEM),
    "system_order": _SYSTEM,
    "empty_content": _EMPTY,
    "id_format": (
        *("id_format", "id_too_long", "item_id_chars", "item_id_too_long", "item_id_prefix"),
        "call_id_too_long",
    ),
    "name_format": ("name_format",),
    "bad_arguments": (
        *("arguments_not_string", "arguments_not_object", "arguments_not_json"),
        *("input_not_object", "arguments_cut"),
    ),
    "toolconfig_missing": ("toolconfig_missing", "toolconfig_empty"),
    "prefill": ("last_not_user",),
    "cache_control": ("too_many_marks", "mark_order", "nested_mark", "stray_mark"),
    "thinking_missing": ("thinking_missing", "reasoning_missing", "signature_missing"),
    "lone_surrogate": ("unreadable_text",),
    "compaction_block_misplaced": ("compaction_misplaced", "compaction_behind"),
    "compaction_block_ambiguous": ("compaction_ambiguous", "compaction_behind"),
    "compaction_incomplete_turn": ("call_unanswered", "result_late"),
    "array_too_long": ("too_many_calls", "too_many_tools"),
    "thinking_signature": (REASONING,),
    "thinking_binding": (REASONING,),
    "thinking_modified": (REASONING,),
    "reasoning_item": (REASONING,),
    "item_without_reasoning": (ITEM_ID,),
}
"""A refusal's rule → the rules that repair what it names."""


def rules_named(refusal: Refusal, request: Any, format: str | None = None) -> tuple[str, ...]:
    """The rules that ``refusal`` names and that ``request`` breaks; () if there are none.

    All rules of a kind at once: a provider names the first fault that it meets.
    """
    try:
        source = RequestBody.of(request)
        detected, _ = wire.find(source.tree, format)
    except (InvalidRequest, InvalidSetting):
        return ()
    return tuple(dict.fromkeys(_named(refusal, source.tree, detected)))


def _named(refusal: Refusal, tree: Any, format: Format) -> Iterator[str]:
    if refusal.rule == "field_refused":
        yield from _fields(refusal.fields, tree, format)
    elif refusal.rule == "output_limit" and refusal.limit:
        yield from _broken(tree, format, (f"{OUTPUT}{refusal.limit}",))
    elif names := ROWS.get(refusal.rule):
        if broken := _broken(tree, format, names):
            yield from broken
        elif format.name == CHAT:
            yield from _of_a_dialect(tree, names)


def _broken(tree: Any, format: Format, names: Sequence[str]) -> list[str]:
    """Those of these rules by which something is repaired."""
    transcript = wire.read(tree, format)
    refused = dict.fromkeys(names)
    made = rules.repair(tree, format, transcript, failures=[], refused=refused)
    return [rule for rule, _ in made.found if rule in refused]


def _of_a_dialect(tree: Any, names: Sequence[str]) -> Iterator[str]:
    """The dialect of chat whose own rules say what is wrong, where those of ours find nothing."""
    for dialect in DIALECTS:
        spoken = wire.find(tree, f"{CHAT}:{dialect}")[0]
        if broken := _broken(tree, spoken, names):
            yield f"{DIALECT}{dialect}"
            yield from broken
            return


def _fields(fields: Sequence[str], tree: Any, format: Format) -> Iterator[str]:
    """A rule for each field that the refusal names and a message or a part of one has.

    ``fields``: paths as providers write them: ``input[1].action``, ``messages.3.citations``,
    ``body.messages.3.assistant.reasoning_content``.
    """
    base = wire.read(tree, format).base
    messages = paths.get(tree, base)
    for field in fields:
        steps = [step for step in field.replace("[", ".").replace("]", "").split(".") if step]
        if not steps or steps[-1].isdigit():
            continue
        key, kind = steps[-1], _kind_at(messages, steps)
        if kind is None:
            continue
        if next(places_of_field(messages, base, key, kind), None) is not None:
            yield field_rule(key, kind)


def _kind_at(messages: Any, steps: Sequence[str]) -> str | None:
    """The type or role of the object that a path names; "" if it names none, None if the path
    names a place that lacks the field."""
    value, held = messages, None
    indices = [number for number, step in enumerate(steps) if step.isdigit()]
    for step in steps[indices[0] : -1] if indices else ():
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        if isinstance(value, dict) and steps[-1] in value:
            held = value
    if not indices:
        return ""
    return None if held is None else kind_of(held)
