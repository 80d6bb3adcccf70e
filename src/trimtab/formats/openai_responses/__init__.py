"""OpenAI Responses: how it is read, what it refuses, how that is repaired."""

from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.base import Format
from trimtab.formats.openai_responses import answers, format, item_rules, parts, rules
from trimtab.formats.repair.id_case import with_id_case

FORMAT = Format(
    "openai-responses",
    aliases=("openai", "gpt", "chatgpt", "responses", "codex", "azure"),
    provider="openai",
    api_paths=(ApiPath("/responses"), ApiPath("/responses/(compact|input_tokens)", fitted=False)),
    headers={"openai-": ""},
    state_keys=("previous_response_id", "conversation", "prompt"),
    is_own=format.is_own,
    system_key="instructions",
    detect=format.detect,
    head_keys=format.HEAD_KEYS,
    read_head=format.read_head,
    read_facts=format.read_facts,
    read_message=format.read_message,
    groups=format.groups,
    table=parts.PARTS,
    rewriter=answers.OpenAIResponsesRewriter,
    dependent_paths=format.dependent_paths,
    text_part=format.text_part,
    text_message=format.text_message,
    mark_of=format.mark_of,
    result_parts=format.result_parts,
    call_alone=format.call_alone,
    answered=format.answered,
    may_anchor=format.may_anchor,
    text_results=format.TEXT_RESULTS,
    reasoners=frozenset({item_rules.STRICT_ORDER}),
    rules=with_id_case(rules.TABLE),
    shape=rules.SHAPE,
)
