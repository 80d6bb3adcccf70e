"""OpenAI Chat Completions and its dialects: reading, refusals and their repair."""

from trimtab.formats.engine.api_path import ApiPath
from trimtab.formats.engine.base import Format, mark_of, text_message, text_part
from trimtab.formats.engine.grouping import group_turns
from trimtab.formats.engine.own_tools import FUNCTIONS, PREDICTED, none_beside
from trimtab.formats.openai_chat import answers, detection, dialects, format, parts, rules
from trimtab.formats.repair.id_case import with_id_case

FORMAT = Format(
    "openai-chat",
    # how it is read
    detect=detection.detect,
    read_head=format.read_head,
    read_facts=format.read_facts,
    read_message=format.read_message,
    groups=group_turns,
    table=parts.PARTS,
    rewriter=answers.OpenAIChatRewriter,
    # how it is written
    text_part=text_part,
    text_message=text_message,
    result_parts=format.result_parts,
    call_alone=format.call_alone,
    answered=format.answered,
    # what its provider refuses
    rules=with_id_case(rules.TABLE),
    shape=rules.SHAPE,
    # how it is recognised, and what it is called
    aliases=("openai", "gpt", "chatgpt", "chat", "completions", "chat-completions"),
    provider="openai",
    api_paths=(
        ApiPath("/chat/completions"),
        ApiPath("/publishers/mistralai/.*:(streamRawPredict|rawPredict)", fitted=False),
    ),
    headers={"openai-": ""},
    is_own=detection.is_own,
    told_from={"anthropic": detection.not_anthropic},
    dialects=dialects.NAMES,
    dialect_at=dialects.of_host,
    facts_in=dialects.facts_in,
    # where it differs from the others
    head_keys=format.HEAD_KEYS,
    cuts_silently=True,
    reasoners=dialects.REASONERS,
    may_anchor=format.may_anchor,
    mark_of=mark_of,
    why_no_tool=none_beside(functions=FUNCTIONS, prediction=PREDICTED),
)
