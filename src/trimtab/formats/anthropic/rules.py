"""The rules of Anthropic Messages, as data, and the scans that only this format needs.

Sources: quoted error texts, Anthropic's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.formats.anthropic.content_rules import (
    put_compaction_first,
    remove_citations,
    remove_key,
    remove_marks,
    scan_but_last_words,
    scan_compactions,
    scan_mark_order,
    scan_marks,
    scan_sampling,
    shorten_marks,
)
from trimtab.formats.engine.rule import DialectLimit, Finding, Repair, Rule, RuleTable, Shape
from trimtab.formats.repair import system_order
from trimtab.formats.repair.content import (
    append_user_message,
    insert_first_user,
    is_earlier_turn,
    make_arguments_object,
    name_unnamed_calls,
    put_content_in_list,
    remove_empty_texts,
    remove_parts,
    remove_reasoning_parts,
    replace_null_content,
    respell_ids,
    scan_blank_names,
    scan_ends,
    scan_unreadable,
    unreadable_row,
)
from trimtab.formats.repair.orphan_results import remove_orphan_results
from trimtab.formats.repair.pairing import answer_calls, rename_calls, scan_pairing
from trimtab.formats.repair.server_tools import (
    abandon_pending,
    remove_references,
    scan_pending,
    scan_references,
    scan_server_results,
)
from trimtab.formats.repair.tool_names import ANTHROPIC_NAME, respell_names, scan_tool_names
from trimtab.jsontext.paths import PathOp, Set
from trimtab.transcript.model import Facts, Part
from trimtab.transcript.transcript import Transcript

_OCTOBER_2026 = "2026-10-21"
_VERSION = re.compile(r"claude-(?:([a-z]+)-)?(\d+)(?:[-.](\d{1,2})(?!\d))?(?:-([a-z]+))?")


def generation(model: str | None) -> tuple[int, int] | None:
    """(5, 5) for ``claude-opus-5-5``, (4, 0) for ``claude-sonnet-4-20250514``; None if unknown."""
    match = _VERSION.search((model or "").lower())
    if not match:
        return None
    return int(match.group(2)), int(match.group(3) or 0)


def binds_thinking(facts: Facts) -> bool:
    """Whether thinking is signed over everything before it (Claude 5.1 and later).

    Unknown models count as bound when their thinking is adaptive or not named: dropping a block
    that would have been accepted costs less than a refusal.
    """
    version = generation(facts.model)
    if version is not None:
        return version >= (5, 1)
    return facts.thinking != "enabled"


def refuses_prefill(facts: Facts) -> bool:
    """Whether the conversation must end with the user (Claude 4.6 and later); a request for
    compaction may end with a finished turn."""
    if facts.extra.get("compacting"):
        return False
    return (generation(facts.model) or (0, 0)) >= (4, 6)


def drop_block_ops(tree: Any) -> tuple[PathOp, ...]:
    """``thinking.block_binding.prefix_mismatch_behavior = "drop_block"`` (AWS and Anthropic
    documentation of thinking block binding; the default is "error")."""
    binding = {"prefix_mismatch_behavior": "drop_block"}
    thinking = tree.get("thinking") if isinstance(tree, dict) else None
    if not isinstance(thinking, dict):
        return (Set(("thinking",), {"type": "adaptive", "block_binding": binding}),)
    if thinking.get("block_binding") == binding:
        return ()
    return (Set(("thinking", "block_binding"), binding),)


def scan_thinking_first(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """With thinking enabled the last model turn that calls tools must begin with thinking."""
    if transcript.facts.thinking != "enabled" or binds_thinking(transcript.facts):
        return  # if thinking is bound to its prefix, a request without any thinking is accepted
    messages = transcript.messages
    last = len(messages) - 1
    while last >= 0 and messages[last].role != "assistant":
        last -= 1
    first = last
    while first > 0 and messages[first - 1].role == "assistant":
        first -= 1
    parts = [part for message in messages[max(first, 0) : last + 1] for part in message.parts]
    in_loop = any(m.results for m in messages[last + 1 :]) or last == len(messages) - 1
    if any(p.kind == "call" for p in parts) and in_loop and not _starts_thinking(parts):
        path = (*transcript.base, first)
        yield Finding("thinking_missing", path, "the last tool turn has no thinking")


def _starts_thinking(parts: Sequence[Part]) -> bool:
    spoken = [
        part
        for part in parts
        if part.flaw not in ("empty", "empty-marked") and part.kind != "compaction"
    ]
    return bool(spoken) and spoken[0].kind == "reasoning"


def _switch_off(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """Thinking switched off for this request."""
    off = Set(("thinking",), {"type": "disabled"})
    yield Repair(("thinking",), "thinking switched off: the open turn has none", (off,))


def _trailing_space(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    if not transcript.messages or transcript.messages[-1].role != "assistant":
        return
    message = transcript.messages[-1]
    if refuses_prefill(transcript.facts) or not message.blocks or not message.parts:
        return
    block = message.blocks[-1]
    if block.kind == "text" and block.text.strip() and block.text != block.text.rstrip():
        path = (*transcript.base, len(transcript.messages) - 1, *block.path)
        yield Finding("trailing_space", path, "ends with white space", block.text.rstrip())


def _strip(transcript: Transcript, tree: Any, findings: Sequence[Finding]) -> Iterator[Repair]:
    """Trailing white space taken off."""
    for finding in findings:
        ops: tuple[PathOp, ...] = (Set(finding.path, finding.data),)
        yield Repair(finding.path, "trailing white space taken off", ops, (finding.path,))


SYSTEM_ROWS = (
    Rule(
        "system_first",
        "messages.0: use the top-level 'system' parameter for the initial system prompt; the "
        "directive-only form (content: [] with output_config) is accepted at any position",
        "LeenHawk/gproxy issue #209",
        system_order.move_to_prompt,
        sure="certain",
    ),
    Rule(
        "system_place",
        "messages.67: role 'system' must precede an 'assistant' message or end the array "
        "(and: must follow a 'user' message or an 'assistant' message ending in a server tool "
        "result)",
        "anthropics/claude-code issue #73821; platform.claude.com, "
        "mid-conversation-system-messages",
        system_order.move_to_place,
        sure="certain",
    ),
    Rule(
        "system_in_a_row",
        "role 'system' must follow a 'user' message or an 'assistant' message ending in a "
        "server tool result",
        "platform.claude.com, mid-conversation-system-messages: no two in a row (runs of them "
        "were accepted)",
        system_order.join_neighbours,
    ),
    Rule(
        "system_unsupported",
        "role 'system' is not supported on this model (DeepSeek's endpoint: messages[7].role: "
        "unknown variant `system`, expected `user` or `assistant`)",
        "deepseek-ai/awesome-deepseek-integration issue #639; docs.rs, gproxy-transform 2.5.2: "
        "models before Opus 4.8",
        system_order.move_to_prompt,
    ),
)
"""Of system messages among the others."""

TOO_WIDE = (
    "messages.7.content.2.image.source.base64.data: At least one of the image dimensions exceed "
    "max allowed size: 8000 pixels"
)
TOO_WIDE_FOR_MANY = (
    "messages.19.content.27.image.source.base64.data: At least one of the image dimensions exceed "
    "max allowed size for many-image requests: 2000 pixels"
)
VISION = (
    'anthropics/claude-code issues #4778, #24630; platform.claude.com/docs, vision: "The maximal '
    "dimensions per image are 8000x8000 px. If you submit more than 20 images in one API request, "
    'this limit is reduced to 2000x2000 px."'
)

TABLE = RuleTable(
    rows=(
        unreadable_row(
            "The request body is not valid JSON: no low surrogate in string: line 1 column 37589 "
            "(char 37588)",
            "anthropics/claude-code issue #8272; NUL: issue #94055 (unexpected end of data)",
        ),
        Rule(
            "no_messages",
            "messages: at least one message is required",
            "Anthropic API reference",
            insert_first_user,
            sure="certain",
        ),
        Rule(
            "compaction_empty",
            "messages.0.content.0.compaction.content: must not be empty",
            "anthropic 2.12.0, BetaCompactionBlockParam: empty string content is not allowed",
            remove_parts,
            sure="certain",
        ),
        Rule(
            "compaction_ambiguous",
            "`messages` holds more than one `compaction` block with content. Send only the block "
            "the conversation returned last.",
            "anthropic 2.12.0, CompactionBlockAmbiguousError",
            put_compaction_first,
            sure="certain",
        ),
        Rule(
            "compaction_misplaced",
            "The `compaction` block is not the first block of the conversation, or is in a "
            "`system` message.",
            "anthropic 2.12.0, CompactionBlockMisplacedError",
            put_compaction_first,
            sure="certain",
        ),
        Rule(
            "compaction_behind",
            "The `compaction` block is not the first block of the conversation",
            "platform.claude.com, build-with-claude/compaction: what is before a block that "
            "the threshold made is ignored",
            put_compaction_first,
            sure="accepted",
        ),
        Rule(
            "blank_tool_name",
            "messages.3.content.0.tool_use.name: String should have at least 1 character",
            "TanStack/ai issue #532",
            name_unnamed_calls,
            sure="certain",
        ),
        Rule(
            "name_format",
            "tools.12.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'",
            "modelcontextprotocol/typescript-sdk issue #413 ({1,128} today)",
            respell_names,
        ),
        Rule(
            "arguments_not_object",
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
            "Anthropic API reference: input is an object",
            make_arguments_object,
            sure="certain",
        ),
        Rule(
            "id_format",
            "messages.5.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            "quoted refusal in public issues",
            respell_ids(re.compile(r"[a-zA-Z0-9_-]+"), 64),
            sure="certain",
        ),
        Rule(
            "thinking_signature",
            "messages.2.content.0.thinking.signature.str: Input should be a valid string",
            "quoted refusal in public issues",
            remove_reasoning_parts,
            sure="certain",
        ),
        Rule(
            "thinking_blank",
            "messages.1.content.0.thinking: each thinking block must contain thinking",
            "quoted refusal in public issues",
            remove_reasoning_parts,
            sure="certain",
        ),
        Rule(
            "server_orphan",
            "unexpected `tool_use_id` found in `advisor_tool_result` blocks. Each block must have "
            "a corresponding `server_tool_use` block before it.",
            "quoted refusal in public issues",
            remove_parts,
        ),
        Rule(
            "server_unanswered",
            "`web_search` tool use with id `srvtoolu_01HxbW…` was found without a corresponding "
            "`web_search_tool_result` block",
            "platform.claude.com, handling-stop-reasons: text beside the results ends the turn of "
            "a server tool that Claude called directly and that has no result yet",
            abandon_pending,
        ),
        Rule(
            "container_missing",
            "container_id is required when there are pending tool uses generated by code "
            "execution with tools.",
            "anthropics/anthropic-sdk-typescript issue #1114; anthropic-sdk-python issue #1801; "
            "defog-ai/defog issue #270",
            abandon_pending,
        ),
        Rule(
            "tool_reference_unknown",
            "Tool reference 'LSP' not found in available tools",
            "anthropics/claude-code issues #78485 and #79970",
            remove_references,
            sure="certain",
        ),
        Rule(
            "duplicate_call",
            "`tool_use` ids must be unique",
            "quoted refusal in public issues (one id in two turns was accepted)",
            rename_calls,
            sure="certain",
        ),
        Rule(
            "call_unanswered",
            "`tool_use` ids were found without `tool_result` blocks immediately after. Each "
            "`tool_use` block must have a corresponding `tool_result` block in the next message.",
            "quoted refusal in public issues",
            answer_calls,
            sure="certain",
        ),
        Rule(
            "result_late",
            "`tool_use` ids were found without `tool_result` blocks immediately after. Messages "
            "following `tool_use` blocks must begin with a matching number of them.",
            "quoted refusal in public issues",
            answer_calls,
            sure="certain",
        ),
        Rule(
            "orphan_result",
            "unexpected `tool_use_id` found in `tool_result` blocks. Each `tool_result` block must "
            "have a corresponding `tool_use` block in the previous message.",
            "quoted refusal in public issues",
            remove_orphan_results,
            sure="certain",
        ),
        Rule(
            "duplicate_result",
            "each tool_use must have a single result. Found multiple `tool_result` blocks with id",
            "quoted refusal in public issues",
            remove_orphan_results,
            sure="certain",
        ),
        Rule(
            "misplaced_part",
            "`tool_result` blocks can only be in `user` messages",
            "tghamm/Anthropic.SDK issue #128; the same holds for `tool_use` and the model",
            remove_parts,
            sure="certain",
        ),
        Rule(
            "empty_text",
            "messages: text content blocks must be non-empty (white space: text content blocks "
            "must contain non-whitespace text)",
            "anthropics/claude-code issues #59812 and #23369",
            remove_parts,
            sure="certain",
        ),
        Rule(
            "empty_result_text",
            "messages: text content blocks must be non-empty",
            "anthropics/claude-code issue #59812",
            remove_empty_texts,
            sure="certain",
        ),
        Rule(
            "blank_result_text",
            "messages: text content blocks must contain non-whitespace text",
            "anthropics/claude-code issue #23369 (whether of tool results too is not known)",
            remove_empty_texts,
        ),
        Rule(
            "no_content",
            "messages.1: all messages must have non-empty content except for the optional final "
            "assistant message",
            "Anthropic API reference",
            replace_null_content,
            sure="certain",
        ),
        Rule(
            "content_not_list",
            "messages.1.content: Input should be a valid list",
            "Anthropic API reference: content is a string or a list of blocks",
            put_content_in_list,
            sure="certain",
        ),
        Rule(
            "empty_marked",
            "messages.29.content.0.text: cache_control cannot be set for empty text blocks",
            "NousResearch/hermes-agent PR #1216",
            remove_parts,
            sure="certain",
        ),
        Rule(
            "too_many_marks",
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            "tghamm/Anthropic.SDK issue #50",
            remove_marks,
            sure="certain",
        ),
        *SYSTEM_ROWS,
        # --- what version 2026-10-21 of the API refuses and 2023-06-01 takes
        Rule(
            "sampling_refused",
            "temperature: Extra inputs are not permitted (top_p, top_k and default values too)",
            "qiita.com, Synthorai, 01a0067e88747257a4e6: sent to both versions; codersera.com, "
            "anthropic-api-2026-10-21-sdk-migration-guide-2026",
            remove_key,
            sure="certain",
            since=_OCTOBER_2026,
        ),
        Rule(
            "document_of_model",
            "400 for a document block directly in an assistant message (words not recorded)",
            "codersera.com, anthropic-api-2026-10-21-sdk-migration-guide-2026; apidog.com, "
            "claude-api-version-2026-10-21",
            remove_parts,
            since=_OCTOBER_2026,
        ),
        Rule(
            "citations_of_user",
            "400 for non-empty citations on a text block in a user message (words not recorded)",
            "codersera.com, anthropic-api-2026-10-21-sdk-migration-guide-2026; apidog.com, "
            "claude-api-version-2026-10-21",
            remove_citations,
            since=_OCTOBER_2026,
        ),
        Rule(
            "mark_order",
            "messages.15.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come "
            "after a ttl='5m' cache_control block. Note that blocks are processed in the following "
            "order: `tools`, `system`, `messages`.",
            "headroomlabs-ai/headroom issue #2939; cnighswonger/claude-code-cache-fix issue #44",
            shorten_marks,
            sure="certain",
        ),
        Rule(
            "first_not_user",
            'messages: first message must use the "user" role',
            "Anthropic API reference",
            insert_first_user,
            sure="certain",
        ),
        Rule(
            "thinking_missing",
            "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is "
            "enabled, a final `assistant` message must start with a thinking block.",
            "quoted refusal in public issues",
            _switch_off,
        ),
        Rule(
            "last_not_user",
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message.",
            "agenticloops-ai/agentic-ai-engineering issue #43; "
            "Tarquinen/opencode-dynamic-context-pruning issue #520",
            append_user_message,
            sure="certain",
        ),
        Rule(
            "trailing_space",
            "messages: final assistant content cannot end with trailing whitespace",
            "Anthropic documentation on prefill",
            _strip,
            sure="certain",
        ),
    ),
    scans=(
        scan_unreadable,
        scan_pairing,
        scan_blank_names,
        scan_tool_names(ANTHROPIC_NAME),
        scan_but_last_words(
            {
                "empty": "empty_text",
                "document": "document_of_model",
                "citations": "citations_of_user",
                "empty-marked": "empty_marked",
                "empty-inner": "empty_result_text",
                "blank-inner": "blank_result_text",
                "no-parts": "no_content",
                "not-list": "content_not_list",
                "misplaced": "misplaced_part",
                "arguments": "arguments_not_object",
                "id": "id_format",
                "signature": "thinking_signature",
                "blank-thinking": "thinking_blank",
                "empty-compaction": "compaction_empty",
            }
        ),
        scan_marks,
        scan_mark_order,
        scan_sampling,
        scan_compactions,
        scan_server_results(
            "server_tool_use", except_tool="mcp_tool_result"
        ),  # no refusal is quoted
        scan_pending,
        scan_references,
        system_order.scan_placed,
        scan_thinking_first,
        _trailing_space,
        scan_ends(first_user=True, last_user=refuses_prefill),
    ),
    may_drop_reasoning=is_earlier_turn,
    # platform.claude.com/docs, vision: 100 images "for models with a 200k-token context window",
    # 600 "for all other models".
    limits={"request_bytes": 32 * 1024 * 1024, "images": 600, "images_in_small_window": 100},
    dialect_limits=(
        DialectLimit("image_pixels", 8_000, TOO_WIDE, VISION, frozenset({"anthropic"}), "claude"),
        DialectLimit(
            "many_image_pixels",
            2_000,
            TOO_WIDE_FOR_MANY,
            VISION,
            frozenset({"anthropic"}),
            "claude",
        ),
    ),
)

SHAPE = Shape(
    "the API's answers, recorded in public repositories in August 2026",
    ("user", "assistant", "system"),
    'messages: Unexpected role "{value}". Allowed roles are "user" or "assistant"',
    "{place}: Field required",
    "{place}: Input should be a valid array",
    dotted=True,
    required=("max_tokens",),
    whole=("model", "anthropic_version"),
)
