"""The rules of Bedrock Converse, as data, by family of models.

Sources: error texts quoted in public issues, recorded requests (accepted), botocore's service
model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trimtab.formats.anthropic import rules as anthropic
from trimtab.formats.bedrock.content_rules import (
    CLAUDE,
    add_document_text,
    declare_tools,
    disable_thinking,
    is_file,
    json_as_text,
    lift_marks,
    make_content_list,
    make_result_list,
    remove_marks,
    remove_value,
    scan_documents,
    scan_head,
    scan_mark_order,
    scan_marks,
    shorten_marks,
)
from trimtab.formats.bedrock.format import APART, ID, TOOL_NAME
from trimtab.formats.engine.rule import DialectLimit, Finding, Rule, RuleTable, Shape
from trimtab.formats.repair import alternation, system_order
from trimtab.formats.repair.content import (
    append_user_message,
    insert_first_user,
    is_earlier_turn,
    make_arguments_object,
    remove_parts,
    respell_ids,
    scan_ends,
    scan_flaws,
    scan_unreadable,
    unreadable_row,
)
from trimtab.formats.repair.orphan_results import remove_orphan_results
from trimtab.formats.repair.pairing import answer_calls, rename_calls, scan_pairing
from trimtab.formats.repair.server_tools import scan_server_results
from trimtab.formats.repair.tool_names import respell_names, scan_tool_names
from trimtab.jsontext.paths import PathOp, Set
from trimtab.transcript.model import Facts
from trimtab.transcript.transcript import Transcript


def binds_thinking(facts: Facts) -> bool:
    """Whether the model binds reasoning to everything before it; among these only Claude does."""
    return facts.dialect in CLAUDE and anthropic.binds_thinking(facts)


def drop_block_ops(tree: Any) -> tuple[PathOp, ...]:
    """The same option as Anthropic's own, under ``additionalModelRequestFields``."""
    key = "additionalModelRequestFields"
    fields = tree.get(key) if isinstance(tree, dict) else None
    if not isinstance(fields, dict):
        (op,) = anthropic.drop_block_ops({})
        assert isinstance(op, Set)
        return (Set((key,), {op.path[0]: op.value}),)
    return tuple(
        Set((key, *op.path), op.value)
        for op in anthropic.drop_block_ops(fields)
        if isinstance(op, Set)
    )


def last_must_be_user(facts: Facts) -> bool:
    """Whether the conversation must end with the user: Claude 4.6 and later, and Llama."""
    if facts.dialect == "bedrock-llama":
        return True
    return facts.dialect in CLAUDE and anthropic.refuses_prefill(facts)


def scan_thinking_first(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """As for Anthropic; models that bind thinking decide themselves whether a turn has any."""
    if not binds_thinking(transcript.facts):
        yield from anthropic.scan_thinking_first(transcript, open_tail)


CONVERSE = (
    "Converse, API reference, Message: \"Each image's size, height, and width must be no more than "
    '3.75 MB, 8000 px, and 8000 px, respectively."'
)

TABLE = RuleTable(
    rows=(
        unreadable_row(
            "'utf-8' codec can't encode character '\\ud83d': surrogates not allowed",
            "NousResearch/hermes-agent PR #102771: no client can write it as UTF-8",
        ),
        Rule(
            "content_not_list",
            "Parameter validation failed: Invalid type for parameter messages[0].content, valid "
            "types: <class 'list'>, <class 'tuple'>",
            "botocore 1.44.5 service model",
            make_content_list,
            sure="certain",
        ),
        Rule(
            "misplaced_part",
            "`tool_result` blocks can only be in `user` messages",
            "tghamm/Anthropic.SDK issue #128; Amazon Bedrock API reference: toolUse is the model's",
            remove_parts,
            sure="certain",
        ),
        Rule(
            "no_messages",
            "A conversation must start with a user message. Try again with a conversation that "
            "starts with a user message.",
            "langgenius/dify issue #12340",
            insert_first_user,
            sure="certain",
        ),
        Rule(
            "arguments_not_object",
            "The format of the value at messages.1.content.0.toolUse.input is invalid. Provide a "
            "json object for the field and try again.",
            "vercel/ai PR #19023",
            make_arguments_object,
            sure="certain",
        ),
        Rule(
            "id_format",
            "Value at 'messages.1.member.content.0.member.toolUse.toolUseId' failed to satisfy "
            "constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_.:-]+",
            "botocore 1.44.5 service model (1 to 64 characters)",
            respell_ids(re.compile(ID.pattern.replace("{1,64}", "+")), 64),
            sure="certain",
        ),
        Rule(
            "name_format",
            "Value at 'messages.73.member.content.2.member.toolUse.name' failed to satisfy "
            "constraint: Member must have length less than or equal to 64; Member must satisfy "
            "regular expression pattern: [a-zA-Z0-9_-]+",
            "openclaw/openclaw issue #12892",
            respell_names,
            sure="certain",
        ),
        Rule(
            "result_not_list",
            'Parameter validation failed: Missing required parameter in toolResult: "content"',
            "botocore 1.44.5 service model",
            make_result_list,
            sure="certain",
        ),
        Rule(
            "json_not_object",
            "The format of the value at messages.3.content.0.toolResult.content.0.json is "
            "invalid. Provide a json object for the field and try again.",
            "aws/aws-sdk-js-v3 issue #7330",
            json_as_text,
            sure="certain",
        ),
        Rule(
            "reasoning_unsigned",
            "User messages cannot contain reasoning content. Please remove the reasoning content "
            "and try again. (Claude since 3.7: thinking.signature.str: Input should be a valid "
            "string)",
            "langchain-ai/langchain-aws issue #401; vercel/ai PR #17591",
            remove_parts,
            sure="certain",
            dialects=frozenset({*CLAUDE, "bedrock-deepseek"}),
        ),
        Rule(
            "stray_mark",
            "There is nothing available to cache. Please remove the invalid cache point and try "
            "again. (behind reasoning: Cache point cannot be inserted after reasoning block.)",
            "strands-agents/harness-sdk PR #3677; anomalyco/opencode issue #36517",
            remove_marks,
            sure="certain",
        ),
        Rule(
            "blank_text",
            "The text field in the ContentBlock object at messages.11.content.0 is blank. Add "
            "text to the text field, and try again.",
            "continuedev/continue issue #9767; boto/botocore issue #3525",
            remove_parts,
            sure="certain",
        ),
        Rule(
            "no_content",
            "The content field in the Message object at messages.2 is empty. Add a ContentBlock "
            "object to the content field and try again.",
            "earendil-works/pi PR #3443",
            make_content_list,
            sure="certain",
        ),
        Rule(
            "roles_alternate",
            "A conversation must alternate between user and assistant roles. Make sure the "
            "conversation alternates between user and assistant roles and try again.",
            "langchain-ai/langchain-aws issue #192",
            alternation.merge_neighbours(lambda facts: facts.dialect in APART),
            sure="certain",
        ),
        Rule(
            "server_orphan",
            "The number of toolResult blocks at messages.2.content exceeds the number of toolUse "
            "blocks of previous turn.",
            "Just-Curieous/Curie issue #16 (server tools: recorded pairs stand in one message)",
            remove_parts,
        ),
        Rule(
            "duplicate_call",
            "The toolUse blocks at messages.1.content contain duplicate Ids",
            "BerriAI/litellm PR #20049",
            rename_calls,
            sure="certain",
        ),
        Rule(
            "call_unanswered",
            "Expected toolResult blocks at messages.2.content for the following Ids: "
            "tooluse_jQ912rboYgzgLULQpRxWot",
            "agno-agi/agno issue #6698",
            answer_calls,
            sure="certain",
        ),
        Rule(
            "result_late",
            "messages.54: Did not find 2 `tool_result` block(s) at the beginning of this message. "
            "Messages following `tool_use` blocks must begin with a matching number of "
            "`tool_result` blocks.",
            "Amazon-Q-Developer/language-servers PR #1235",
            answer_calls,
            sure="certain",
            dialects=CLAUDE,
        ),
        Rule(
            "orphan_result",
            "The number of toolResult blocks at messages.2.content exceeds the number of toolUse "
            "blocks of previous turn.",
            "Just-Curieous/Curie issue #16",
            remove_orphan_results,
            sure="certain",
        ),
        Rule(
            "duplicate_result",
            "The toolResult blocks at messages.2.content contain duplicate Ids: tooluse_abc123",
            "BerriAI/litellm issue #20047",
            remove_orphan_results,
            sure="certain",
        ),
        Rule(
            "empty_error_result",
            "The content field at messages.2.content.0.toolResult cannot be empty when status "
            "value is error.",
            "aws-samples/sample-multi-agent-orchestration-chat-on-agentcore issue #15",
            make_result_list,
            sure="certain",
        ),
        Rule(
            "empty_result",
            "ValidationException for toolResult content [] (words not recorded; Claude takes it)",
            "stdapi.ai issue #226 (Nova); strands-agents/harness-sdk PR #2123 (Nemotron)",
            make_result_list,
            dialects=frozenset({"bedrock-nova", "bedrock-nemotron"}),
        ),
        Rule(
            "file_beside_result",
            "`tool_use` ids were found without `tool_result` blocks immediately after: each "
            "`tool_use` block must have a corresponding `tool_result` block in the next message.",
            "pydantic/pydantic-ai issue #3253, PR #6098 (documents other than PDF, and video)",
            alternation.split_mixed_turns,
            dialects=CLAUDE,
        ),
        Rule(
            "mixed_turn",
            "messages.4.content: Conversation blocks and tool result blocks cannot be provided in "
            "the same turn. (of the model: Conversation blocks and tool use blocks)",
            "strands-agents/harness-sdk issue #1223; quarkiverse/quarkus-langchain4j issue #1983; "
            "langchain-ai/langchain-aws PR #1118",
            alternation.split_mixed_turns,
            sure="certain",
            dialects=APART,
        ),
        Rule(
            "document_without_text",
            "A text block must be included when using documents.",
            "archestra-ai/archestra PR #4220",
            add_document_text,
            sure="certain",
        ),
        Rule(
            "nested_mark",
            "Parameter validation failed: Unknown parameter in messages[0].content[0].toolResult."
            'content[0]: "cachePoint", must be one of: json, text, image, document, video, '
            "searchResult",
            "botocore 1.44.8 service model; langchain-ai/langchain-aws PR #503 (the service itself "
            "took one: Portkey-AI/gateway issue #1762)",
            lift_marks,
        ),
        Rule(
            "mark_order",
            "messages.3.content.0.cache_control.ttl: a ttl='1h' cache_control block must not come "
            "after a ttl='5m' cache_control block. Note that blocks are processed in the following "
            "order: `tools`, `system`, `messages`.",
            "Portkey-AI/gateway issue #1762",
            shorten_marks,
            sure="certain",
            dialects=CLAUDE,
        ),
        Rule(
            "too_many_marks",
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            "tghamm/Anthropic.SDK issue #50 (a cache point becomes one)",
            remove_marks,
            sure="certain",
        ),
        *(replace(row, sure="refused", dialects=CLAUDE) for row in anthropic.SYSTEM_ROWS),
        Rule(
            "first_not_user",
            "A conversation must start with a user message. Try again with a conversation that "
            "starts with a user message.",
            "langgenius/dify issue #12340",
            insert_first_user,
            sure="certain",
        ),
        Rule(
            "thinking_missing",
            "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with "
            "a thinking block.",
            "RooCodeInc/Roo-Code PR #11238",
            disable_thinking,
            dialects=CLAUDE,
        ),
        Rule(
            "last_not_user",
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message. (Llama: The model that you are using requires the last turn in "
            "the conversation to be a user message.)",
            "NousResearch/hermes-agent PR #101401; i-am-bee/beeai-framework issue #753",
            append_user_message,
            sure="certain",
        ),
        Rule(
            "empty_system",
            "Parameter validation failed: Invalid length for parameter system[0].text, value: 0, "
            "valid min length: 1",
            "botocore 1.44.5 service model",
            remove_value,
            sure="certain",
        ),
        Rule(
            "toolconfig_missing",
            "The toolConfig field must be defined when using toolUse and toolResult content "
            "blocks.",
            "langgenius/dify issue #7328; aws-samples/bedrock-access-gateway PR #239",
            declare_tools,
            sure="certain",
        ),
        Rule(
            "toolconfig_empty",
            "Parameter validation failed: Invalid length for parameter toolConfig.tools, value: "
            "0, valid min length: 1",
            "botocore 1.44.5 service model",
            remove_value,
            sure="certain",
        ),
    ),
    scans=(
        scan_unreadable,
        scan_flaws(
            {
                "no-list": "content_not_list",
                "no-parts": "no_content",
                "misplaced": "misplaced_part",
                "empty": "blank_text",
                "arguments": "arguments_not_object",
                "id": "id_format",
                "result-no-list": "result_not_list",
                "json": "json_not_object",
                "empty-error": "empty_error_result",
                "empty-result": "empty_result",
                "signature": "reasoning_unsigned",
            }
        ),
        scan_head,
        scan_tool_names(TOOL_NAME, blank=True),
        alternation.scan_alternation,
        scan_pairing,
        scan_server_results("server tool use"),
        alternation.scan_mixed_turns("mixed_turn", lambda part: True),
        alternation.scan_mixed_turns("file_beside_result", is_file),
        scan_documents,
        scan_marks,
        scan_mark_order,
        system_order.scan_placed,
        scan_thinking_first,
        scan_ends(first_user=True, last_user=last_must_be_user),
    ),
    may_drop_reasoning=is_earlier_turn,
    limits={"images": 20},
    dialect_limits=(
        DialectLimit("image_pixels", 8_000, anthropic.TOO_WIDE, CONVERSE, CLAUDE, "claude"),
        DialectLimit(
            "image_bytes",
            5 * 1024 * 1024,
            "messages.0.content.2.image.source.bytes: image exceeds 5 MB maximum: 7167852 bytes > "
            "5242880 bytes",
            "aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws "
            "issue #778: counted in base64, so 3.75 MB as the API's documentation says",
            CLAUDE,
            "claude",
        ),
    ),
)
"""``images``: "too many images and documents: 21 + 0 > 20" (cline issue #1844)."""

SHAPE = Shape(
    "botocore 1.44.8 service model",
    ("user", "assistant", "system"),
    "Value '{value}' at '{place}' failed to satisfy constraint: Member must satisfy enum value "
    "set: [user, assistant, system]",
    "Parameter validation failed: Missing required parameter: {place}",
    "Parameter validation failed: Invalid type for parameter {place}, value is {value}, valid "
    "types: <class 'list'>, <class 'tuple'>",
    texts=False,
)
