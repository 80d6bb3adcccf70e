"""The rules of Anthropic Messages, as data, and the few scans only this format needs.

Knows what this provider refuses and in which words, and which models bind thinking to what
stands before it.  Sources: quoted error texts, Anthropic's documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from trimtab.model import Facts, Part, Path, Transcript
from trimtab.paths import Delete, PathOp, Set
from trimtab.rules.base import Finding, Mend, Rule, Table, new_alone, resumes
from trimtab.rules.content import (
    begin_with_user,
    clean_ids,
    empty_items,
    end_with_user,
    ends,
    fill_nulls,
    flaws,
    list_content,
    open_arguments,
    take_parts,
)
from trimtab.rules.names import blank_names, name_calls
from trimtab.rules.pairing import answer_calls, rename_calls, take_out
from trimtab.rules.pairing import scan as pairing

MAX_MARKS = 4
_VERSION = re.compile(r"claude-(?:([a-z]+)-)?(\d+)(?:[-.](\d{1,2})(?!\d))?(?:-([a-z]+))?")


def generation(model: str | None) -> tuple[int, int] | None:
    """(5, 5) for ``claude-opus-5-5``, (4, 0) for ``claude-sonnet-4-20250514``; None if unknown."""
    found = _VERSION.search((model or "").lower())
    if not found:
        return None
    return int(found.group(2)), int(found.group(3) or 0)


def binds_thinking(facts: Facts) -> bool:
    """Whether thinking is signed over all that stands before it (Claude 5.1 and later).

    Unknown models count as bound when their thinking is adaptive or not named: dropping a block
    that would have been accepted costs less than a refusal.
    """
    known = generation(facts.model)
    if known is not None:
        return known >= (5, 1)
    return facts.thinking != "enabled"


def refuses_prefill(facts: Facts) -> bool:
    """Claude 4.6 and later demand that the conversation ends with the user."""
    return (generation(facts.model) or (0, 0)) >= (4, 6)


def take_thoughts(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Take the blocks out; of the latest model turn all thinking goes, as it may not go in part."""
    whole = list(found)
    if any(not old_turn(transcript, finding.data[0]) for finding in found):
        seen = {finding.path for finding in found}
        for number, message in enumerate(transcript.messages):
            if message.role != "assistant" or old_turn(transcript, number):
                continue
            for part in message.parts:
                path = (*transcript.base, number, *part.path)
                if part.kind == "reasoning" and path not in seen:
                    whole.append(Finding(found[0].rule, path, found[0].detail, (number, part)))
    return take_parts(transcript, tree, whole)


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


def old_turn(transcript: Transcript, number: int) -> bool:
    """Thinking of the latest model turn may not be changed or partly dropped; older may go."""
    later = transcript.messages[number + 1 :]
    run = 0
    while run < len(later) and later[run].role == "assistant":
        run += 1
    return any(message.role == "assistant" for message in later[run:])


def _unless_marked(transcript: Transcript, known: int) -> int:
    """Where nothing new carries a breakpoint there are no more of them than before."""
    new = transcript.messages[known:]
    marked = any(message.marked or message.inner_marks for message in new)
    return 0 if marked else len(transcript.messages)


@resumes(_unless_marked)
def _marks(transcript: Transcript, open_tail: bool, first: int = 0) -> Iterator[Finding]:
    base = transcript.base
    found: list[Path] = []
    for number, message in enumerate(transcript.messages[first:], first):
        if not (message.marked or message.inner_marks):
            continue
        found += [
            (*base, number, *part.path) for part in message.marked if part.flaw != "empty-marked"
        ]
        found += [(*base, number, *path) for path in message.inner_marks]
    # The oldest of the messages go first; those of tools and system, where they are too many.
    found += list(transcript.facts.extra.get("marked_head", ()))
    for path in found[: max(len(found) - MAX_MARKS, 0)]:
        yield Finding("too_many_marks", path, f"{len(found)} blocks carry cache_control")


def _unmark(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """The oldest cache breakpoints of the messages taken off."""
    for finding in found:
        path = (*finding.path, "cache_control")
        yield Mend(path, "the oldest cache breakpoint was taken off", (Delete(path),))


def thinking_first(transcript: Transcript, open_tail: bool) -> Iterator[Finding]:
    """With thinking enabled the last model turn that calls tools must begin with thinking."""
    if transcript.facts.thinking != "enabled" or binds_thinking(transcript.facts):
        return  # where thinking is bound to its prefix, leaving it all out is accepted
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
    spoken = [part for part in parts if part.flaw not in ("empty", "empty-marked")]
    return bool(spoken) and spoken[0].kind == "reasoning"


def _switch_off(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Thinking switched off for this request."""
    off = Set(("thinking",), {"type": "disabled"})
    yield Mend(("thinking",), "thinking switched off: the open turn has none", (off,))


@resumes(new_alone)
def _server_pairs(transcript: Transcript, open_tail: bool, first: int = 0) -> Iterator[Finding]:
    for number, message in enumerate(transcript.messages[first:], first):
        calls: set[str] = set()
        for part in message.parts:
            if part.kind == "server-call":
                calls.add(part.id)
            elif part.tool == "mcp_tool_result":
                continue  # nobody has quoted a refusal for these
            elif part.kind == "server-result" and part.id not in calls:
                path = (*transcript.base, number, *part.path)
                detail = f"no server_tool_use {part.id} before this result"
                yield Finding("server_orphan", path, detail, (number, part))


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


def _strip(transcript: Transcript, tree: Any, found: Sequence[Finding]) -> Iterator[Mend]:
    """Trailing white space taken off."""
    for finding in found:
        ops: tuple[PathOp, ...] = (Set(finding.path, finding.data),)
        yield Mend(finding.path, "trailing white space taken off", ops)


TABLE = Table(
    rows=(
        Rule(
            "no_messages",
            "messages: at least one message is required",
            "Anthropic API reference",
            begin_with_user,
        ),
        Rule(
            "misplaced_part",
            "`tool_result` blocks can only be in `user` messages",
            "tghamm/Anthropic.SDK issue #128; the same holds for `tool_use` and the model",
            take_parts,
        ),
        Rule(
            "blank_tool_name",
            "messages.3.content.0.tool_use.name: String should have at least 1 character",
            "TanStack/ai issue #532",
            name_calls,
        ),
        Rule(
            "arguments_not_object",
            "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
            "Anthropic API reference: input is an object",
            open_arguments,
        ),
        Rule(
            "id_format",
            "messages.5.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            "quoted refusal in public issues",
            clean_ids(re.compile(r"[a-zA-Z0-9_-]+"), 64),
        ),
        Rule(
            "thinking_signature",
            "messages.2.content.0.thinking.signature.str: Input should be a valid string",
            "quoted refusal in public issues",
            take_thoughts,
        ),
        Rule(
            "thinking_blank",
            "messages.1.content.0.thinking: each thinking block must contain thinking",
            "quoted refusal in public issues",
            take_thoughts,
        ),
        Rule(
            "server_orphan",
            "unexpected `tool_use_id` found in `advisor_tool_result` blocks. Each block must have "
            "a corresponding `server_tool_use` block before it.",
            "quoted refusal in public issues",
            take_parts,
        ),
        Rule(
            "duplicate_call",
            "`tool_use` ids must be unique",
            "quoted refusal in public issues (one id in two turns was accepted)",
            rename_calls,
        ),
        Rule(
            "call_unanswered",
            "`tool_use` ids were found without `tool_result` blocks immediately after. Each "
            "`tool_use` block must have a corresponding `tool_result` block in the next message.",
            "quoted refusal in public issues",
            answer_calls,
        ),
        Rule(
            "result_late",
            "`tool_use` ids were found without `tool_result` blocks immediately after. Messages "
            "following `tool_use` blocks must begin with a matching number of them.",
            "quoted refusal in public issues",
            answer_calls,
        ),
        Rule(
            "orphan_result",
            "unexpected `tool_use_id` found in `tool_result` blocks. Each `tool_result` block must "
            "have a corresponding `tool_use` block in the previous message.",
            "quoted refusal in public issues",
            take_out,
        ),
        Rule(
            "duplicate_result",
            "each tool_use must have a single result. Found multiple `tool_result` blocks with id",
            "quoted refusal in public issues",
            take_out,
        ),
        Rule(
            "empty_text",
            "messages: text content blocks must be non-empty",
            "quoted refusal in public issues",
            take_parts,
        ),
        Rule(
            "empty_result_text",
            "messages: text content blocks must be non-empty",
            "quoted refusal in public issues",
            empty_items,
        ),
        Rule(
            "no_content",
            "messages.1: all messages must have non-empty content except for the optional final "
            "assistant message",
            "Anthropic API reference",
            fill_nulls,
        ),
        Rule(
            "content_not_list",
            "messages.1.content: Input should be a valid list",
            "Anthropic API reference: content is a string or a list of blocks",
            list_content,
        ),
        Rule(
            "empty_marked",
            "messages.29.content.0.text: cache_control cannot be set for empty text blocks",
            "NousResearch/hermes-agent PR #1216",
            take_parts,
        ),
        Rule(
            "too_many_marks",
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            "tghamm/Anthropic.SDK issue #50",
            _unmark,
        ),
        Rule(
            "first_not_user",
            'messages: first message must use the "user" role',
            "Anthropic API reference",
            begin_with_user,
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
            end_with_user,
        ),
        Rule(
            "trailing_space",
            "messages: final assistant content cannot end with trailing whitespace",
            "Anthropic documentation on prefill",
            _strip,
        ),
    ),
    scans=(
        pairing,
        blank_names,
        flaws(
            {
                "empty": "empty_text",
                "empty-marked": "empty_marked",
                "empty-inner": "empty_result_text",
                "no-parts": "no_content",
                "not-list": "content_not_list",
                "misplaced": "misplaced_part",
                "arguments": "arguments_not_object",
                "id": "id_format",
                "signature": "thinking_signature",
                "blank-thinking": "thinking_blank",
            }
        ),
        _marks,
        _server_pairs,
        thinking_first,
        _trailing_space,
        ends(first_user=True, last_user=refuses_prefill),
    ),
    may_drop_reasoning=old_turn,
    limits={"request_bytes": 32 * 1024 * 1024, "images": 100},
)
