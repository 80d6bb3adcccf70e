"""Gemini Interactions: how it is read, what it refuses, how that is repaired."""

from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.base import Format
from trimtab.formats.engine.grouping import group_turns
from trimtab.formats.gemini_interactions import answers, format, parts, rules
from trimtab.formats.repair.id_case import with_id_case

FORMAT = Format(
    "gemini-interactions",
    # how it is read
    detect=format.detect,
    read_head=format.read_head,
    read_facts=format.read_facts,
    read_message=format.read_message,
    groups=group_turns,
    table=parts.PARTS,
    rewriter=answers.GeminiInteractionsRewriter,
    # how it is written
    text_part=format.text_part,
    text_message=format.text_message,
    result_parts=format.result_parts,
    call_alone=format.call_alone,
    answered=format.answered,
    # what its provider refuses
    rules=with_id_case(rules.TABLE),
    shape=rules.SHAPE,
    # how it is recognised, and what it is called
    aliases=("interactions", "google", "genai", "google-genai"),
    provider="gcp.gemini",
    api_paths=(ApiPath("/interactions"),),
    headers={"x-goog-": ""},
    state_keys=("previous_interaction_id",),
    is_own=format.is_own,
    # where it differs from the others
    system_key="system_instruction",
    system_is_text=True,
    head_keys=format.HEAD_KEYS,
    merges_roles=True,
    thoughts_stay=True,
    text_at=format.text_at,
    why_no_tool=format.why_no_tool,
)
