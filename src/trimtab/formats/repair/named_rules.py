"""Rules that no table has, made from what a refusal names: a field, an output limit, reasoning that
is not this provider's, an id whose reasoning is gone, a dialect.

A rule's name says all of it, so that a journal can keep it: ``field:reasoning_content``,
``field:action@image_generation_call`` (of items of that type or role), ``output:8192`` (tokens),
``reasoning``, ``item_id``, ``dialect:mistral``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from trimtab.formats.engine.rule import Finding, Repair, Rule, RuleTable
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Path, Set
from trimtab.transcript.transcript import Transcript

_SPELLINGS = frozenset({
    "name_format", "id_format", "id_too_long", "call_id_too_long", "item_id_chars",
    "item_id_too_long", "item_id_prefix",
})  # fmt: skip
"""Rules by which names or ids are only respelled."""
FIELD, OUTPUT, DIALECT = "field:", "output:", "dialect:"
REASONING, ITEM_ID = "reasoning", "item_id"

_PAYLOADS = frozenset({
    "args", "arguments", "input", "input_schema", "inputSchema", "json", "parameters", "response",
    "schema", "value",
})  # fmt: skip
"""Keys of what a tool takes or returns: fields in there are the tool's own."""
_STRUCTURE = frozenset({
    "args", "arguments", "call_id", "content", "contents", "data", "encrypted_content", "function",
    "functionCall", "functionDeclarations", "functionResponse", "function_declarations", "id",
    "image_url", "inlineData", "input", "inputSchema", "input_schema", "json", "messages", "name",
    "output", "parameters", "parts", "response", "result", "role", "schema", "source", "summary",
    "text", "thinking", "toolResult", "toolSpec", "toolUse", "toolUseId", "tool_call_id",
    "tool_calls", "tool_use_id", "type",
})  # fmt: skip
"""Keys without which a part means something else: never taken out."""
_OF_A_TYPE = {
    "document": ("source",),
    "function_call": ("call_id", "name", "arguments"),
    "image": ("source",),
    "thinking": ("thinking",),
    "tool_result": ("tool_use_id", "content"),
    "tool_use": ("id", "name", "input"),
}
"""Type → the only keys, beside its type, that it can't do without."""
_OF_A_MESSAGE = frozenset({"id", "name", "type", "thinking", "summary", "result"})
"""Keys that a message with a role can do without (``name``: not that of a tool's result)."""
_OUTPUT_ONLY = {
    "image_generation_call": (
        "action", "background", "output_format", "quality", "revised_prompt", "size",
    ),
}  # fmt: skip
"""Type → fields that its provider writes and does not read.  The provider names one a refusal; if
it names one of these, all of them go (langchain-ai/langchain issue #37431 names two)."""
SYSTEM = ("system", "systemInstruction", "system_instruction")
"""Keys of a system prompt beside the messages."""
_OUTPUT_LIMITS: tuple[Path, ...] = (
    ("max_tokens",),
    ("max_completion_tokens",),
    ("max_output_tokens",),
    ("inferenceConfig", "maxTokens"),
    ("generationConfig", "maxOutputTokens"),
    ("generation_config", "max_output_tokens"),
)
_BUDGET = ("thinking", "budget_tokens")
_MIN_BUDGET = 1_024
"""Tokens: Anthropic's smallest thinking budget, which must be below ``max_tokens``."""
_WITH_ID = ("message", "function_call", "custom_tool_call", "")
"""Types of output items of Responses that can be sent without an id."""


_OF_FORM = frozenset({
    ITEM_ID, "id_format", "mark_order", "name_format", "reasoning_missing", "signature_missing",
    "system_late", "system_not_first", "thinking_missing", "too_many_marks",
})  # fmt: skip
"""Rules whose repair takes nothing away that anybody said and adds no words of ours: a message that
comes later would be refused as well."""


def is_conversation_wide(name: str) -> bool:
    """Whether a rule holds for all that a conversation sends, not only for the blocks that were
    refused: it takes nothing away that anybody said."""
    return name.startswith((FIELD, OUTPUT, DIALECT)) or name in (*_OF_FORM, *_SPELLINGS)


def is_of_endpoint(name: str) -> bool:
    """Whether a rule tells of the endpoint and not of one conversation: a field's name, how it
    spells names and ids, and whose dialect that is."""
    return name.startswith((FIELD, DIALECT)) or name in _SPELLINGS


def with_named_rules(table: RuleTable, names: Iterable[str]) -> RuleTable:
    """The table with a row for each of these names that it lacks."""
    rows = [row for name in sorted(names) if (row := _row(name)) is not None]
    if not rows:
        return table
    scans = tuple(_scan(row.name) for row in rows)
    return replace(table, rows=(*rows, *table.rows), scans=(*scans, *table.scans))


def _row(name: str) -> Rule | None:
    if name.startswith(FIELD):
        return Rule(name, "a field that was refused by its name", "the refusal", _take_field)
    if name.startswith(OUTPUT):
        return Rule(name, "an output limit that was refused", "the refusal", _lower_output)
    if name == REASONING:
        return Rule(name, "reasoning that was refused", "the refusal", _take_reasoning)
    if name == ITEM_ID:
        return Rule(name, "an item's id without its reasoning", "the refusal", _take_ids)
    return None


def _scan(name: str) -> Any:
    def scan(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
        if name == REASONING:
            found = {
                transcript.item(place)
                for place in transcript.places()
                if place.block.kind == "reasoning"
            }
            for path in sorted(found, key=str):
                yield Finding(name, path, "signed reasoning")
        else:
            yield Finding(name, transcript.base, "named by a refusal")

    scan.gives = frozenset({name})  # type: ignore[attr-defined]
    return scan


# --- a field -------------------------------------------------------------------------------------


def field_rule(key: str, kind: str = "") -> str:
    """The name of the rule that takes ``key`` out of all messages, items or parts of one kind."""
    return f"{FIELD}{key}@{kind}" if kind else f"{FIELD}{key}"


def may_be_taken(key: str, holder: dict[str, Any]) -> bool:
    """Whether an object still means what it did without ``key``."""
    if key not in _STRUCTURE:
        return True
    if (needed := _OF_A_TYPE.get(holder.get("type", ""))) is not None:
        return key not in (*needed, "type")
    if "role" not in holder or holder["role"] in ("tool", "function"):
        return False
    return key in _OF_A_MESSAGE


def kind_of(holder: dict[str, Any], key: str | int = "") -> str:
    """The type of an item or part, the role of a message, else the key that it is under."""
    kind = holder.get("type") or holder.get("role") or key
    return kind if isinstance(kind, str) else ""


def roots(tree: Any, base: Path) -> Iterator[Path]:
    """Where fields are looked for: messages, the system prompt and definitions of tools."""
    yield base
    if isinstance(tree, dict):
        yield from ((key,) for key in (*SYSTEM, "tools") if (key,) != base and key in tree)


def places_of_field(tree: Any, base: Path, key: str, kind: str = "") -> Iterator[Path]:
    """The paths of ``key`` in messages and their parts, the system prompt and definitions of tools,
    not in what tools take or return."""
    stack: list[tuple[Path, Any]] = [(path, paths.get(tree, path)) for path in roots(tree, base)]
    while stack:
        at, value = stack.pop()
        if isinstance(value, list):
            stack += [((*at, index), item) for index, item in enumerate(value)]
        elif isinstance(value, dict):
            is_meant = key in value and kind in ("", kind_of(value, at[-1] if at else ""))
            if is_meant and may_be_taken(key, value):
                yield (*at, key)
            stack += [
                ((*at, name), inner)
                for name, inner in value.items()
                if name != key and (name not in _PAYLOADS or isinstance(inner, list))
            ]


def _take_field(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """The field is taken out of all messages, items or parts of its kind; it stays recallable."""
    key, _, kind = findings[0].rule.removeprefix(FIELD).partition("@")
    keys = _OUTPUT_ONLY[kind] if key in _OUTPUT_ONLY.get(kind, ()) else (key,)
    found = (path for one in keys for path in places_of_field(tree, transcript.base, one, kind))
    for path in sorted(found, key=lambda path: [str(step).zfill(9) for step in path]):
        done = f"{path[-1]!r} was taken out: the provider refuses this field"
        yield Repair(path, done, (Delete(path),), (path,))


# --- the rest ------------------------------------------------------------------------------------


def _lower_output(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """The output limit is lowered to what the provider allows."""
    most = int(findings[0].rule.removeprefix(OUTPUT))
    for path in _OUTPUT_LIMITS:
        value = _at(tree, path)
        if type(value) is not int or value <= most:
            continue
        ops = [Set(path, most)]
        budget = _at(tree, _BUDGET)
        if type(budget) is int and budget >= most > _MIN_BUDGET:
            ops.append(Set(_BUDGET, max(_MIN_BUDGET, most // 2)))
        done = f"the output limit was lowered from {value:,} to {most:,} tokens, as refused"
        yield Repair(path, done, tuple(ops), (path,))


def _at(tree: Any, path: Path) -> Any:
    try:
        return paths.get(tree, path)
    except LookupError:
        return None


def _take_reasoning(
    transcript: Transcript, tree: Any, findings: Sequence[Finding]
) -> Iterator[Repair]:
    """Reasoning is taken out; a message that is nothing else goes with it."""
    deep = len(transcript.base) + 1
    found: dict[Path, list[Path]] = {}
    for finding in findings:
        found.setdefault(finding.path[:deep], []).append(finding.path)
    for message, items in found.items():
        number = message[-1]
        assert isinstance(number, int)
        merges, blocks = transcript.format.merges_roles, transcript.messages[number].blocks
        whole = merges and all(block.kind == "reasoning" for block in blocks)
        for path in [message] if whole else items:
            done = "reasoning was taken out: the provider does not take it as its own"
            yield Repair(path, done, (Delete(path),), (path,))


def _take_ids(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """Items whose reasoning is gone are sent without their id; every word of them stays."""
    reasoned = False
    for number, item in enumerate(paths.get(tree, transcript.base)):
        if not isinstance(item, dict):
            continue
        kind = item.get("type", "")
        if kind == "reasoning":
            reasoned = True
        elif item.get("role") == "user" or str(kind).endswith("_output"):
            reasoned = False
        elif not reasoned and kind in _WITH_ID and isinstance(item.get("id"), str):
            path, done = (
                (*transcript.base, number, "id"),
                "sent without its id: its reasoning is gone",
            )
            yield Repair(path, done, (Delete(path),), (path,))
