"""Which rules a refusal names.  ``pipeline.prepare`` repairs what breaks them, whatever our tables
say of this provider."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from trimtab import formats
from trimtab.errors import InvalidRequest, InvalidSetting
from trimtab.formats import FORMATS, rules
from trimtab.formats.body import RequestBody
from trimtab.formats.engine.base import Format
from trimtab.formats.repair.named_rules import (
    DIALECT,
    ITEM_ID,
    OUTPUT,
    REASONING,
    field_rule,
    kind_of,
    places_of_field,
    roots,
)
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path
from trimtab.retry.refusals import Refusal

_EMPTY = (
    *("no_messages", "null_content", "empty_parts", "no_content", "empty_text", "blank_text"),
    *("empty_result_text", "blank_result_text", "empty_marked", "empty_result"),
    *("empty_error_result", "empty_system", "no_parts", "empty_part", "empty_beside_response"),
    *("empty_answer", "trailing_space", "content_and_calls"),
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
    "missing_result": (
        *("result_id_case", "call_unanswered", "result_late", "file_beside_result"),
        *("calls_interleaved", "extra_result", "calls_apart", "call_order", "mixed_response"),
    ),
    "duplicate_id": (
        *("duplicate_call", "repeated_call_id", "duplicate_result", "duplicate_item"),
        "extra_result",
    ),
    "bad_order": (*_ORDER, *_SYSTEM),
    "system_order": _SYSTEM,
    "empty_content": _EMPTY,
    "id_format": (
        *("id_format", "id_too_long", "call_id_missing", "call_id_too_long", "item_id_chars"),
        *("item_id_too_long", "item_id_prefix"),
    ),
    "name_format": ("name_format",),
    "bad_arguments": (
        *("arguments_not_string", "arguments_not_object", "arguments_not_json"),
        *("input_not_object", "arguments_cut"),
    ),
    "toolconfig_missing": ("toolconfig_missing", "toolconfig_empty"),
    "prefill": ("last_not_user",),
    "part_type": ("part_of_speaker", "misplaced_part"),
    "cache_control": ("too_many_marks", "mark_order", "nested_mark", "stray_mark"),
    "thinking_missing": (
        *("thinking_missing", "reasoning_missing", "signature_missing", "calls_apart"),
        "reasoning_partly_missing",
    ),
    "lone_surrogate": ("unreadable_text",),
    "compaction_block_misplaced": ("compaction_misplaced", "compaction_behind"),
    "compaction_block_ambiguous": ("compaction_ambiguous", "compaction_behind"),
    "compaction_incomplete_turn": ("call_unanswered", "result_late"),
    "document_of_model": ("document_of_model",),
    "citations_of_user": ("citations_of_user",),
    "array_too_long": ("too_many_calls", "too_many_tools"),
    "thinking_signature": (REASONING, "encrypted_content", "reasoning_unsigned"),
    "thinking_binding": (REASONING,),
    "thinking_modified": (REASONING,),
    "thinking_refused": (REASONING,),
    "reasoning_item": ("reasoning_alone", "reasoning_parted", "reasoning_unlinked"),
    "item_without_reasoning": (ITEM_ID, "reasoning_missing"),
}
"""A refusal's rule → the rules that repair what it names."""
_ELSE = {
    "bad_order": ("result_id_case", "call_unanswered", "orphan_result"),
    "orphan_result": ("server_orphan",),
    "reasoning_item": (REASONING,),
}
"""A refusal's rule → what it may mean where none of its other rules finds anything."""


def rules_named(refusal: Refusal, request: Any, format: str | None = None) -> tuple[str, ...]:
    """The rules that ``refusal`` names and that ``request`` breaks; () if there are none.

    All rules of a kind at once: a provider names the first fault that it meets.
    """
    try:
        source = RequestBody.of(request)
        detected, _ = formats.find(source.tree, format)
    except (InvalidRequest, InvalidSetting):
        return ()
    return tuple(dict.fromkeys(_named(refusal, source.tree, detected)))


def _named(refusal: Refusal, tree: Any, format: Format) -> Iterator[str]:
    if refusal.rule == "field_refused":
        yield from _fields(refusal.fields, tree, format)
    elif refusal.rule == "output_limit" and refusal.limit:
        yield from _broken(tree, format, (f"{OUTPUT}{refusal.limit}",))
    elif names := ROWS.get(refusal.rule):
        broken = _broken(tree, format, names)
        if broken := broken or _broken(tree, format, _ELSE.get(refusal.rule, ())):
            yield from broken
        else:
            yield from _of_a_dialect(tree, format.name, names)


def _broken(tree: Any, format: Format, names: Sequence[str]) -> list[str]:
    """Those of these rules by which something is repaired."""
    transcript = formats.read(tree, format)
    refused = dict.fromkeys(names)
    made = rules.repair(tree, format, transcript, failures=[], refused=refused)
    return [rule for rule, _ in made.found if rule in refused]


def _of_a_dialect(tree: Any, format: str, names: Sequence[str]) -> Iterator[str]:
    """The dialect of the format whose own rules say what is wrong, where those of ours find
    nothing."""
    for dialect in FORMATS[format].dialects:
        spoken = formats.find(tree, f"{format}:{dialect}")[0]
        if broken := _broken(tree, spoken, names):
            yield f"{DIALECT}{dialect}"
            yield from broken
            return


def _fields(fields: Sequence[str], tree: Any, format: Format) -> Iterator[str]:
    """A rule for each field that the refusal names and a message, a part of one or the definition
    of a tool has.

    ``fields``: paths as providers write them: ``input[1].action``, ``messages.3.citations``,
    ``body.messages.3.assistant.reasoning_content``.  A gateway may count messages otherwise: a path
    that leads nowhere counts by its last key.
    """
    base = formats.read(tree, format).base
    found = dict[str, list[str]]()
    for field in fields:
        steps = [step for step in field.replace("[", ".").replace("]", "").split(".") if step]
        if not steps or steps[-1].isdigit():
            continue
        key = steps[-1]
        kind = _kind_at(_root(tree, base, steps), steps)
        if kind is None and key in found:
            continue  # another path has led to it
        if next(places_of_field(tree, base, key, kind or ""), None) is not None:
            found.setdefault(key, []).append(field_rule(key, kind or ""))
    for rules_of_key in found.values():
        yield from rules_of_key


def _root(tree: Any, base: Path, steps: Sequence[str]) -> Any:
    """What the first index of a path counts in."""
    named = next((path for path in roots(tree, base) if path and path[0] in steps), base)
    return paths.get(tree, named)


def _kind_at(root: Any, steps: Sequence[str]) -> str | None:
    """The kind of the object with the field that a path names; None if it leads to none."""
    value, under = root, ""
    kind: str | None = None
    first = next((number for number, step in enumerate(steps) if step.isdigit()), len(steps))
    for step in steps[first:-1]:
        if isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value, under = value[int(step)], ""
        elif isinstance(value, dict):
            under = next((name for name in value if _plain(name) == _plain(step)), "")
            value = value[under] if under else value
        if isinstance(value, dict):
            kind = kind_of(value, under) if steps[-1] in value else None
    return kind


def _plain(key: str) -> str:
    """A key in one spelling: ``functionCall`` and ``function_call`` are one."""
    return key.replace("_", "").lower()
