"""Anthropic's messages as blocks and turns, and how thinking is signed and bound."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

BOUND = ("opus-5-5", "sonnet-5-5", "fable-5-1")
RESULT_OF = {
    "web_search": "web_search_tool_result", "web_fetch": "web_fetch_tool_result",
    "code_execution": "code_execution_tool_result", "advisor": "advisor_tool_result",
    "tool_search_tool_regex": "tool_search_tool_result",
    "tool_search_tool_bm25": "tool_search_tool_result",
}  # fmt: skip
SERVER_RESULTS = {*RESULT_OF.values(), "mcp_tool_result"}


def blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The content of a message as blocks."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content or () if isinstance(block, dict)]


def turns_of(messages: list[Any]) -> list[tuple[str, int, list[dict[str, Any]]]]:
    """(role, index, blocks) with messages of one role in a row as one, as the API merges them."""
    found: list[tuple[str, int, list[dict[str, Any]]]] = []
    for n, message in enumerate(messages):
        if message["role"] not in ("user", "assistant"):
            continue
        if found and found[-1][0] == message["role"]:
            found[-1][2].extend(blocks(message))
        else:
            found.append((message["role"], n, blocks(message)))
    return found


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _prefix(body: dict[str, Any], messages: list[Any]) -> str:
    """A digest of system, tools and messages; not of cache marks and of thinking."""

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: clean(v) for k, v in value.items() if k != "cache_control"}
        if isinstance(value, list):
            return [clean(part) for part in value]
        return value

    system = body.get("system") or []
    said = [
        (
            m["role"],
            [p for p in blocks(m) if p.get("type") not in ("thinking", "redacted_thinking")],
        )
        for m in messages
    ]
    shown = [{"type": "text", "text": system}] if isinstance(system, str) else system
    return _digest(clean([shown, body.get("tools"), said]))


def sign(body: dict[str, Any], text: str) -> str:
    """The signature of a thought that answers this request."""
    return f"{_digest(text)}.{_prefix(body, body.get('messages') or [])}"


def thinking_problems(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    asked = body.get("thinking") or {}
    binding = asked.get("block_binding") or {}
    bound = any(name in str(body.get("model")) for name in BOUND)
    strict = bound and binding.get("prefix_mismatch_behavior", "error") == "error"
    for n, message in enumerate(messages):
        for m, part in enumerate(blocks(message)):
            if part.get("type") != "thinking":
                continue
            text, _, prefix = str(part.get("signature", "")).partition(".")
            if text != _digest(part.get("thinking", "")):
                yield f"messages.{n}.content.{m}: Invalid `signature` in `thinking` block"
            if strict and prefix != _prefix(body, messages[:n]):
                yield (
                    f"messages.{n}.content.{m}: Invalid `signature` in `thinking` block. The "
                    "block is bound to a different conversation."
                )
    if asked.get("type") != "enabled":
        return
    turns = turns_of(messages)
    if len(turns) > 1 and turns[-1][0] == "user":
        parts = turns[-2][2]
        used = [p for p in parts if p.get("type") == "tool_use"]
        deferred = parts and parts[0].get("type") in SERVER_RESULTS
        programmatic = any(
            str((p.get("caller") or {}).get("type", "")).startswith("code") for p in used
        )
        if (
            used
            and not deferred
            and not programmatic
            and "thinking" not in str(parts[0].get("type"))
        ):
            yield (
                f"messages.{turns[-2][1]}.content.0.type: Expected `thinking` or "
                f"`redacted_thinking`, but found `{parts[0].get('type')}`. When `thinking` is "
                "enabled, a final `assistant` message must start with a thinking block"
            )
