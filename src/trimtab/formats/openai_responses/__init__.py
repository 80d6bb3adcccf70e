"""OpenAI Responses: how it is read, what it refuses, how that is repaired."""

from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.base import Format
from trimtab.formats.engine.own_tools import LATER, PROMPT, STATE, none_beside
from trimtab.formats.openai_responses import answers, format, item_rules, keep_warm, parts, rules
from trimtab.formats.repair.id_case import with_id_case

FORMAT = Format(
    "openai-responses",
    # how it is read
    detect=format.detect,
    read_head=format.read_head,
    read_facts=format.read_facts,
    read_message=format.read_message,
    groups=format.groups,
    table=parts.PARTS,
    rewriter=answers.OpenAIResponsesRewriter,
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
    aliases=("openai", "gpt", "chatgpt", "responses", "codex", "azure"),
    provider="openai",
    api_paths=(ApiPath("/responses"), ApiPath("/responses/(compact|input_tokens)", fitted=False)),
    headers={"openai-": ""},
    state_keys=("previous_response_id", "conversation", "prompt"),
    is_own=format.is_own,
    # where it differs from the others
    # https://developers.openai.com/api/docs/guides/tools-tool-search
    deferred_tools='"defer_loading": true on each, and {"type": "tool_search"}, from gpt-5.4 on',
    system_key="instructions",
    system_is_text=True,
    head_keys=format.HEAD_KEYS,
    reasoners=frozenset({item_rules.STRICT_ORDER}),
    may_anchor=format.may_anchor,
    text_results=format.TEXT_RESULTS,
    dependent_paths=format.dependent_paths,
    mark_of=format.mark_of,
    why_no_tool=none_beside(conversation=STATE, background=LATER, prompt=PROMPT),
    warm_request=keep_warm.warm_request,
)
