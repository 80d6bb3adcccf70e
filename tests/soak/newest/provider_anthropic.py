"""What Anthropic's Messages API refuses, in its words; what it does not name passes.

Sources: platform.claude.com (server tools, mid-conversation system messages, extended thinking,
tool search), the SDK's types, and refusals quoted in public issues: anthropic-sdk-python #961,
claude-code #73821, #78485, OmniRoute #10457, vercel/ai #18785, #18887.
Where no refusal is public, the rule is the page's and the words are ours: pairs of blocks that no
page names, a second system message in a row, results beside text for calls from code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from soak.newest.thinking_anthropic import (
    RESULT_OF,
    SERVER_RESULTS,
    blocks,
    sign,
    thinking_problems,
    turns_of,
)

__all__ = ["channels", "refusal", "sign", "state"]

_NO_PREFILL = re.compile(r"claude-(?:opus|sonnet|fable|haiku)-(?:4-[6-9]|5)")


def refusal(
    body: dict[str, Any], headers: dict[str, str] | None = None, dialect: str = ""
) -> str | None:
    """The provider's words, or None where it answers."""
    version = (headers or {}).get("anthropic-version", "")
    return next(_problems(body, version), None)


def _problems(body: dict[str, Any], version: str) -> Iterator[str]:
    messages = body.get("messages")
    if type(body.get("max_tokens")) is not int:
        yield "max_tokens: Field required"
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    for n, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, str | list):
            yield f"messages.{n}.content: Input should be a valid list"
            return
        if not content and not _is_directive(message) and not (
            n == len(messages) - 1 and message["role"] == "assistant"
        ):  # fmt: skip
            yield (
                f"messages.{n}: all messages must have non-empty content except for the optional "
                "final assistant message"
            )
        yield from _contents(n, message, content)
    yield from _placement(messages, str(body.get("model", "")))
    yield from _client_pairs(messages)
    yield from _server_pairs(messages)
    yield from _tool_state(body, messages)
    yield from _cache_marks(body)
    yield from thinking_problems(body, messages)
    yield from _container(body, messages)
    if version >= "2026-10-21":
        yield from _since_october(body, messages)


def _is_directive(message: dict[str, Any]) -> bool:
    return message.get("role") == "system" and not message.get("content") and bool(
        message.get("output_config")
    )  # fmt: skip


def _contents(n: int, message: dict[str, Any], content: Any) -> Iterator[str]:
    for m, block in enumerate(blocks(message)):
        if block.get("type") == "text" and not str(block.get("text", "")).strip():
            if block.get("text"):
                yield (f"messages.{n}.content.{m}: text blocks must contain non-whitespace text")
            else:
                yield f"messages: text content blocks must be non-empty (messages.{n}.content.{m})"
        if block.get("type") in ("tool_addition", "tool_removal") and message["role"] != "system":
            yield f"messages.{n}.content.{m}: tool changes are only allowed in system messages"
        if block.get("type") == "tool_use" and not isinstance(block.get("input"), dict):
            yield f"messages.{n}.content.{m}.tool_use.input: Input should be a valid dictionary"
        for inner in block.get("content") or () if block.get("type") == "tool_result" else ():
            if isinstance(inner, dict) and inner.get("type") == "text" and not inner.get("text"):
                yield f"messages.{n}.content.{m}: text content blocks must be non-empty"


def _placement(messages: list[Any], model: str) -> Iterator[str]:
    said = [(n, m) for n, m in enumerate(messages) if not _is_directive(m)]
    if not said:
        yield "messages: at least one message is required"
        return
    first = said[0][1]
    opens = blocks(first)
    if first["role"] == "system" and messages[0] is first:
        yield (
            "messages.0: use the top-level 'system' parameter for the initial system prompt; the "
            "directive-only form (content: [] with output_config) is accepted at any position"
        )
    elif first["role"] == "assistant" and not (opens and opens[0].get("type") == "compaction"):
        yield 'messages: first message must use the "user" role'
    for n, message in said:
        for m, block in enumerate(blocks(message)):
            if block.get("type") == "compaction" and (n, m) != (said[0][0], 0):
                yield f"messages.{n}.content.{m}: compaction_block_misplaced"
    for (_, before), (n, message) in zip([(-1, None), *said], said, strict=False):
        if message["role"] != "system":
            continue
        if before is None:
            continue
        if before["role"] == "system":
            yield f"messages.{n}: consecutive 'system' messages are not allowed"
        elif before["role"] == "assistant" and not _ends_in_server_tool(before):
            yield f"messages.{n}: role 'system' must directly follow a 'user' message"
    for (n, message), (_, after) in pairwise(said):
        if message["role"] == "system" and after["role"] in ("user", "system"):
            yield (
                f"messages.{n}: role 'system' must precede an 'assistant' message or end the array"
            )
    last = said[-1][1]
    if last["role"] == "assistant" and not _ends_in_server_tool(last) and _NO_PREFILL.search(model):
        yield (
            "This model does not support assistant message prefill. The conversation must end "
            "with a user message."
        )


def _ends_in_server_tool(message: dict[str, Any]) -> bool:
    parts = blocks(message)
    return bool(parts) and (
        parts[-1].get("type") in ("server_tool_use", "mcp_tool_use", *SERVER_RESULTS)
    )


def _client_pairs(messages: list[Any]) -> Iterator[str]:
    seen: set[str] = set()
    turns = turns_of(messages)
    for (role, n, parts), following in zip(turns, [*turns[1:], None], strict=False):
        uses = [part["id"] for part in parts if part.get("type") == "tool_use"]
        for id in uses:
            if id in seen:
                yield f"messages.{n}: `tool_use` ids must be unique"
            seen.add(id)
            if not re.fullmatch(r"[a-zA-Z0-9_-]+", id):
                yield f"messages.{n}: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
        if role == "assistant" and uses:
            lead = list[Any]()
            for part in following[2] if following and following[0] == "user" else ():
                if part.get("type") != "tool_result":
                    break
                lead.append(part["tool_use_id"])
            missing = [id for id in uses if id not in lead]
            if missing:
                yield (
                    f"messages.{n}: `tool_use` ids were found without `tool_result` blocks "
                    f"immediately after: {', '.join(missing)}. Each `tool_use` block must have a "
                    "corresponding `tool_result` block in the next message."
                )
    for before, (role, n, parts) in zip([None, *turns], turns, strict=False):
        asked = [p["id"] for p in before[2] if p.get("type") == "tool_use"] if before else []
        given = [p["tool_use_id"] for p in parts if p.get("type") == "tool_result"]
        if role != "user" and given:
            yield f"messages.{n}: `tool_result` blocks can only be in `user` messages"
        for id in given:
            if id not in asked:
                yield (
                    f"messages.{n}.content: unexpected `tool_use_id` found in `tool_result` "
                    f"blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` "
                    "block in the previous message."
                )
            if given.count(id) > 1:
                yield (
                    "each tool_use must have a single result. Found multiple `tool_result` "
                    f"blocks with id: {id}"
                )


def _server_pairs(messages: list[Any]) -> Iterator[str]:
    """Calls and results of server tools, and of pairs that no page names, joined by id."""
    open_calls: dict[str, str] = {}
    for n, message in enumerate(messages):
        parts, role = blocks(message), message["role"]
        closes = role == "user" and any(p.get("type") != "tool_result" for p in parts)
        if closes and open_calls:
            id, name = next(iter(open_calls.items()))
            kind = RESULT_OF.get(name, f"{name}_result")
            yield (
                f"messages.{n}: `{name}` tool use with id `{id}` was found without a "
                f"corresponding `{kind}` block"
            )
            open_calls.clear()
        for part in parts:
            kind = str(part.get("type", ""))
            if kind == "server_tool_use":
                open_calls[part["id"]] = str(part.get("name"))
            elif kind == "mcp_tool_use" or (kind.endswith("_use") and kind != "tool_use"):
                open_calls[part["id"]] = kind.removesuffix("_use")
            elif kind.endswith("_result") and kind not in ("tool_result", "search_result"):
                name = open_calls.pop(part.get("tool_use_id", ""), None)
                if name is None or RESULT_OF.get(name, f"{name}_result") != kind:
                    yield (
                        f"messages.{n}.content: unexpected `tool_use_id` found in `{kind}` "
                        f"blocks: {part.get('tool_use_id')}. Each `{kind}` block must have a "
                        "corresponding `server_tool_use` block before it."
                    )


def _tool_state(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    tools = [tool for tool in body.get("tools") or () if isinstance(tool, dict)]
    if tools and all(tool.get("defer_loading") for tool in tools):
        yield "At least one tool must have defer_loading=false. All tools cannot be deferred."
    names = {tool.get("name") for tool in tools}
    for n, message in enumerate(messages):
        for part in blocks(message):
            change = part.get("tool") if part.get("type") == "tool_addition" else None
            if isinstance(change, dict) and change.get("type") == "tool_definition":
                names.add(change["definition"]["name"])
            for name in _references(part):
                if name not in names:
                    yield f"messages.{n}: Tool reference '{name}' not found in available tools"


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if value.get("type") == "tool_reference":
            yield str(value.get("tool_name") or value.get("name"))
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)


def _cache_marks(body: dict[str, Any]) -> Iterator[str]:
    marks = [mark.get("ttl", "5m") for mark in _found(body, "cache_control") if mark]
    if len(marks) > 4:
        yield (f"A maximum of 4 blocks with cache_control may be provided. Found {len(marks)}.")
    if "1h" in marks and "5m" in marks[: len(marks) - marks[::-1].index("1h")]:
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"


def _found(body: dict[str, Any], key: str) -> Iterator[Any]:
    """Values under a key, in the order tools, system, messages."""
    for part in (body.get("tools"), body.get("system"), body.get("messages")):
        yield from _values(part, key)


def _values(value: Any, key: str) -> Iterator[Any]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name == key:
                yield part
            yield from _values(part, key)
    elif isinstance(value, list):
        for part in value:
            yield from _values(part, key)


def _container(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    """A result that answers a call from code: alone in its message, the container named."""
    callers = {
        part["id"]
        for message in messages
        for part in blocks(message)
        if part.get("type") == "tool_use"
        and str((part.get("caller") or {}).get("type", "direct")).startswith("code_execution")
    }
    for n, message in enumerate(messages):
        parts = blocks(message)
        if not any(p.get("tool_use_id") in callers for p in parts if p["type"] == "tool_result"):
            continue
        if any(p.get("type") != "tool_result" for p in parts):
            yield (
                f"messages.{n}: when responding to programmatic tool calls, the message must "
                "contain only `tool_result` blocks"
            )
        if n == len(messages) - 1 and not body.get("container"):
            yield (
                "container_id is required when there are pending tool uses generated by code "
                "execution with tools."
            )


def _since_october(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    for name in ("temperature", "top_p", "top_k"):
        if name in body:
            yield f"{name}: Extra inputs are not permitted"
    for n, message in enumerate(messages):
        for m, part in enumerate(blocks(message)):
            if message["role"] == "assistant" and part.get("type") == "document":
                yield (
                    f"messages.{n}.content.{m}: `document` blocks are not allowed in `assistant` "
                    "messages"
                )
            if message["role"] == "user" and part.get("type") == "text" and part.get("citations"):
                yield f"messages.{n}.content.{m}.citations: Extra inputs are not permitted"


# --- what a judge asks of a body ---


def channels(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(channel, text) of everything said: user, model, arguments, tool, system, thinking."""
    for message in body.get("messages") or ():
        role = {"user": "user", "assistant": "model"}.get(message["role"], "system")
        for part in blocks(message):
            kind = str(part.get("type"))
            if kind in ("thinking", "redacted_thinking", "compaction"):
                yield "thinking", json.dumps(part, ensure_ascii=False)
            elif kind.endswith("_use"):
                yield "arguments", json.dumps(part.get("input"), ensure_ascii=False)
            elif kind.endswith("_result"):
                yield "tool", json.dumps(part, ensure_ascii=False)
            else:
                for cited in part.get("citations") or ():
                    yield "tool", json.dumps(cited, ensure_ascii=False)
                shown = {k: v for k, v in part.items() if k != "citations"}
                yield role, json.dumps(shown, ensure_ascii=False)


def state(body: dict[str, Any]) -> set[str]:
    """Names that tool search, listings and tool changes have loaded or withdrawn."""
    found: set[str] = set()
    for message in body.get("messages") or ():
        for part in blocks(message):
            if part.get("type") in ("tool_addition", "tool_removal", "mcp_tool_listing"):
                shown = {k: v for k, v in part.items() if k != "cache_control"}
                found.add(json.dumps(shown, sort_keys=True))
            else:
                found.update(f"reference {name}" for name in _references(part))
    return found
