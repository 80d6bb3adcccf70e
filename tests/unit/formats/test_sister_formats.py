"""A fault found in one format is asked of all: each kind of rule names the formats that have it,
and says why the others don't."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from trimtab.formats import FORMATS

CHAT, RESPONSES, CLAUDE = "openai-chat", "openai-responses", "anthropic"
BEDROCK, GEMINI, STEPS = "bedrock", "gemini", "gemini-interactions"

NONE = "the format has no such thing"
TAKES = "accepted: recorded, or its documentation says so"
UNQUOTED = "no refusal is quoted"
OTHER = "refused by another row, which is more general"


class Kind(NamedTuple):
    """The rows of one kind in all formats, and for each format without one the reason."""

    rows: str
    lacking: dict[str, str] = {}  # noqa: RUF012 (never changed)


KINDS = {
    "text that cannot be read": Kind("unreadable_text"),
    "ids that differ by case": Kind("result_id_case"),
    "nothing to answer": Kind("no_messages no_input"),
    "a call without a name": Kind(
        "blank_tool_name",
        {RESPONSES: UNQUOTED, BEDROCK: "name_format", GEMINI: UNQUOTED, STEPS: UNQUOTED},
    ),
    "tool names in a form that is refused": Kind("name_format"),
    "arguments of the wrong type": Kind(
        "arguments_not_string arguments_not_object input_not_object"
    ),
    "arguments that are no JSON": Kind(
        "arguments_not_json arguments_cut",
        {CLAUDE: NONE, BEDROCK: NONE, GEMINI: NONE, STEPS: NONE},
    ),
    "a result of the wrong type": Kind(
        "output_type result_not_list json_not_object response_not_object result_missing",
        {CHAT: "a chat result is content: null_content", CLAUDE: TAKES},
    ),
    "content of the wrong type": Kind(
        "null_content content_not_list not_an_item not_a_step part_of_speaker invalid_role",
    ),
    "a text that is too long": Kind(
        "string_too_long",
        {RESPONSES: UNQUOTED, CLAUDE: UNQUOTED, BEDROCK: UNQUOTED, GEMINI: UNQUOTED,
         STEPS: UNQUOTED},
    ),
    "empty content": Kind(
        "empty_parts empty_answer empty_text no_content blank_text no_parts empty_part "
        "empty_beside_response empty_system",
        {RESPONSES: TAKES},
    ),
    "an empty result": Kind(
        "empty_result_text blank_result_text empty_error_result empty_result",
        {CHAT: TAKES, RESPONSES: TAKES, GEMINI: "a response is an object", STEPS: TAKES},
    ),
    "ids in a form that is refused": Kind(
        "id_format id_too_long call_id_too_long call_id_missing",
        {GEMINI: TAKES, STEPS: UNQUOTED},
    ),
    "ids of items": Kind(
        "item_id_chars item_id_too_long item_id_prefix duplicate_item",
        {CHAT: NONE, CLAUDE: NONE, BEDROCK: NONE, GEMINI: NONE, STEPS: UNQUOTED},
    ),
    "one id for two calls": Kind(
        "duplicate_call repeated_call_id", {GEMINI: "calls are matched by name and order"}
    ),
    "a call without a result": Kind("call_unanswered"),
    "a result that is not where it belongs": Kind("result_late calls_interleaved"),
    "a result without a call": Kind("orphan_result extra_result"),
    "two results for a call": Kind("duplicate_result extra_result"),
    "a part in the wrong role": Kind(
        "misplaced_part",
        {CHAT: "calls and results are no parts there", RESPONSES: "items have no role",
         GEMINI: UNQUOTED, STEPS: "steps have no role"},
    ),
    "a result of a server tool without its call": Kind(
        "server_orphan",
        {RESPONSES: "such an item holds its own result", GEMINI: UNQUOTED, STEPS: UNQUOTED},
    ),
    "a server tool that waits": Kind(
        "server_unanswered container_missing",
        {CHAT: UNQUOTED, RESPONSES: TAKES, BEDROCK: UNQUOTED, GEMINI: UNQUOTED, STEPS: UNQUOTED},
    ),
    "a reference to a tool that is gone": Kind(
        "tool_reference_unknown",
        {RESPONSES: "a search returns the tools themselves", BEDROCK: NONE, GEMINI: NONE,
         STEPS: UNQUOTED},
    ),
    "reasoning without its signature": Kind(
        "thinking_signature thinking_blank reasoning_unsigned signature_missing encrypted_content",
        {CHAT: UNQUOTED, STEPS: TAKES},
    ),
    "reasoning that is wanted back": Kind(
        "reasoning_missing reasoning_partly_missing thinking_missing reasoning_alone "
        "reasoning_parted reasoning_unlinked signature_missing",
        {STEPS: UNQUOTED},
    ),
    "roles in the wrong order": Kind(
        "first_not_user roles_alternate call_order system_late user_after_result no_user",
        {RESPONSES: TAKES, STEPS: UNQUOTED},
    ),
    "the model speaks last": Kind(
        "last_not_user two_answers_last trailing_space", {RESPONSES: TAKES, STEPS: UNQUOTED}
    ),
    "words beside calls or results": Kind(
        "content_and_calls mixed_turn file_beside_result document_without_text mixed_response",
        {RESPONSES: "each is an item", CLAUDE: TAKES, STEPS: "each is a step"},
    ),
    "calls of one turn apart": Kind(
        "calls_apart",
        {CHAT: UNQUOTED, RESPONSES: TAKES, CLAUDE: TAKES, BEDROCK: OTHER, STEPS: TAKES},
    ),
    "too many of something": Kind(
        "too_many_calls too_many_tools too_many_marks",
        {GEMINI: UNQUOTED, STEPS: UNQUOTED},
    ),
    "system messages among the others": Kind(
        "system_first system_place system_in_a_row system_unsupported system_not_first",
        {GEMINI: "contents have no such role", STEPS: "steps have no such role"},
    ),
    "what a dated version refuses": Kind(
        "sampling_refused document_of_model citations_of_user",
        dict.fromkeys((CHAT, RESPONSES, BEDROCK, GEMINI, STEPS), "the API has no dated versions"),
    ),
    "cache breakpoints": Kind(
        "empty_marked too_many_marks stray_mark mark_order nested_mark",
        {CHAT: UNQUOTED, GEMINI: NONE, STEPS: NONE},
    ),
    "compactions": Kind(
        "compaction_empty compaction_ambiguous compaction_misplaced compaction_behind",
        {CHAT: NONE, RESPONSES: "a broken one is encrypted_content", BEDROCK: NONE, GEMINI: NONE,
         STEPS: NONE},
    ),
    "tools that have to be declared": Kind(
        "toolconfig_missing toolconfig_empty",
        {CHAT: TAKES, RESPONSES: TAKES, CLAUDE: "proxies only: the API takes it", GEMINI: TAKES,
         STEPS: TAKES},
    ),
}  # fmt: skip


def have(kind: Kind) -> set[str]:
    rows = set(kind.rows.split())
    return {f for f, format in FORMATS.items() if rows & {row.name for row in format.rules.rows}}


@pytest.mark.parametrize("name", KINDS)
def test_each_format_has_a_row_of_the_kind_or_a_reason(name: str) -> None:
    kind = KINDS[name]
    assert have(kind) | kind.lacking.keys() == FORMATS.keys()
    assert have(kind) & kind.lacking.keys() == set()


def test_each_row_is_of_a_kind() -> None:
    known = {row for kind in KINDS.values() for row in kind.rows.split()}
    assert known == {row.name for format in FORMATS.values() for row in format.rules.rows}
