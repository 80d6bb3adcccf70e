"""OpenAI Chat Completions and its dialects: reading, refusals and their repair."""

from trimtab.formats.engine.base import Format, mark_of, text_message, text_part
from trimtab.formats.engine.grouping import group_turns
from trimtab.formats.openai_chat import answers, format, parts, reasoning_rules, rules
from trimtab.formats.repair.id_case import with_id_case

FORMAT = Format(
    "openai-chat",
    detect=format.detect,
    head_keys=format.HEAD_KEYS,
    read_head=format.read_head,
    read_facts=format.read_facts,
    read_message=format.read_message,
    groups=group_turns,
    table=parts.PARTS,
    rewriter=answers.OpenAIChatRewriter,
    text_part=text_part,
    text_message=text_message,
    mark_of=mark_of,
    result_parts=format.result_parts,
    call_alone=format.call_alone,
    answered=format.answered,
    may_anchor=format.may_anchor,
    reasoners=reasoning_rules.REASONERS,
    rules=with_id_case(rules.TABLE),
    shape=rules.SHAPE,
)
