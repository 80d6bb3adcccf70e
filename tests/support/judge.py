"""An independent judge: would the provider accept this request.

Written from the providers' documented rules and refusals alone.  It knows OpenAI Chat Completions
and Anthropic Messages as they go over the wire; sizes.py counts.  It does not know the library
under test: nothing of it is imported here, so that both can only agree by being right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import unreadable
from sizes import (
    blocks_of,
    compact,
    images,
    inside,
    messages_of,
    o200k,
    of_type,
    request_bytes,
    result_chars,
    tokens,
)

__all__ = [
    "claude_version",
    "images",
    "o200k",
    "problems",
    "request_bytes",
    "result_chars",
    "thinking_problems",
    "tokens",
]

SMALL_WINDOW = re.compile(r"claude-(?:[23]|haiku|(?:opus|sonnet)-4(?:-[0-5])?(?!-?\d))")
"""Claude models with a window of 200k tokens, which take 100 images; all others take 600."""
CLAUDE_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2}))?(?!\d)")


def problems(request: Any, format: str, model: str | None = None) -> list[str]:
    """Each reason for which the provider would refuse; [] when it would accept."""
    if found := unreadable.problems(request):
        return found
    body = request if isinstance(request, dict) else {"messages": request}
    model = body.get("model") or model or ""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return ["messages: empty"]
    judge = {"openai-chat": _chat, "anthropic": _anthropic}[format]
    return list(judge(body, messages, model))


def claude_version(model: str | None) -> tuple[int, int]:
    """ "claude-sonnet-4-5-20250929" -> (4, 5); (0, 0) for any other family."""
    found = CLAUDE_VERSION.search(model or "")
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


# --- OpenAI Chat Completions ----------------------------------------------------------------------


def _chat(body: dict[str, Any], messages: list[Any], model: str) -> Iterator[str]:
    owed: list[str] = []
    for number, message in enumerate(messages):
        role = message.get("role")
        if role not in ("system", "developer", "user", "assistant", "tool", "function"):
            yield f"{number}: no such role {role!r}"
        yield from _chat_content(number, message)
        if role == "tool":
            call = message.get("tool_call_id")
            if call in owed:
                owed.remove(call)
            else:
                yield f"{number}: result without its call {call!r}"
            continue
        if owed:
            yield f"{number}: calls without result before this message: {owed}"
        owed = []
        if role == "assistant":
            owed = [call.get("id") for call in message.get("tool_calls") or []]
            yield from _chat_calls(number, message.get("tool_calls") or [])
    if owed:
        yield f"end: calls without result {owed}"


def _chat_content(number: int, message: dict[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if content is None:
        instead = ("tool_calls", "function_call", "refusal", "audio", "reasoning_content")
        if message.get("role") != "assistant" or not any(message.get(key) for key in instead):
            yield f"{number}: content is null"
    elif isinstance(content, list):
        for part in content:
            if not isinstance(part, dict) or not isinstance(part.get("type"), str):
                yield f"{number}: a part without a type"
            elif part["type"] == "text" and not isinstance(part.get("text"), str):
                yield f"{number}: a text part without a text"
    elif not isinstance(content, str):
        yield f"{number}: content is neither string nor list"
    if isinstance(content, str) and len(content) > 10_485_760:
        yield f"{number}: string too long"


def _chat_calls(number: int, calls: list[Any]) -> Iterator[str]:
    if len(calls) > 128:
        yield f"{number}: more than 128 tool calls"
    ids = [call.get("id") for call in calls]
    for call_id in ids:
        if not isinstance(call_id, str) or not 0 < len(call_id) <= 40:
            yield f"{number}: call id {call_id!r} is not a string of 1 to 40 characters"
    if len(set(map(str, ids))) < len(ids):
        yield f"{number}: one id for two calls of a turn"
    for call in calls:
        if call.get("type", "function") != "function":
            continue
        function = call.get("function") or {}
        if not isinstance(function.get("name"), str) or not function["name"]:
            yield f"{number}: a call without a name"
        if not isinstance(function.get("arguments"), str):
            yield f"{number}: arguments are not a string"


# --- Anthropic Messages ---------------------------------------------------------------------------


def _system_places(messages: list[Any]) -> Iterator[str]:
    """System messages in mid-conversation: a run of them stands behind the user, or behind a tool
    of the server's, and before the model or last."""
    roles = [message.get("role") for message in messages if isinstance(message, dict)]
    for number, role in enumerate(roles):
        if role != "system" or messages[number].get("output_config"):
            continue
        before = next((n for n in range(number - 1, -1, -1) if roles[n] != "system"), None)
        behind = next((r for r in roles[number:] if r != "system"), "assistant")
        if before is None:
            yield f"{number}: a system message first"
        elif roles[before] == "assistant":
            content = messages[before].get("content")
            last = content[-1] if isinstance(content, list) and content else {}
            kind = str(last.get("type")) if isinstance(last, dict) else ""
            if not kind.endswith(("_tool_result", "server_tool_use", "mcp_tool_use")):
                yield f"{number}: a system message behind the model"
        elif behind == "user":
            yield f"{number}: a system message before the user"


def _anthropic(body: dict[str, Any], messages: list[Any], model: str) -> Iterator[str]:
    turns = _merged(messages)
    spoken = [turn for turn in turns if turn[0] != "system"]
    if not spoken or spoken[0][0] != "user":
        yield "first: not a user message"
    yield from _system_places(messages)
    for number, message in enumerate(messages):
        yield from _claude_message(number, message, last=number == len(messages) - 1)
    served: set[Any] = set()
    for index, (role, blocks) in enumerate(turns):
        behind = turns[index + 1] if index + 1 < len(turns) else ("", [])
        before = turns[index - 1] if index else ("", [])
        if role == "assistant":
            yield from _claude_calls(index, blocks, behind)
            yield from _server_pairs(index, blocks, served)
        yield from _claude_results(index, role, blocks, before)
    yield from _claude_end(turns, messages, model)
    yield from _claude_thinking(body, turns)
    yield from _claude_totals(body, messages)


def _merged(messages: list[Any]) -> list[tuple[str, list[Any]]]:
    """(role, blocks) with neighbours of one role made one, as the API does before it looks."""
    turns: list[tuple[str, list[Any]]] = []
    for message in messages:
        blocks = blocks_of(message.get("content"))
        if turns and turns[-1][0] == message.get("role"):
            turns[-1][1].extend(blocks)
        else:
            turns.append((message.get("role"), list(blocks)))
    return turns


SPEAKERS = {"tool_use": "assistant", "tool_result": "user", "thinking": "assistant"}
"""Whose messages these blocks may stand in: "can only be in `user` messages", and its like."""


def _only_directs(message: dict[str, Any]) -> bool:
    """Whether a system message sets something and says nothing."""
    return message.get("role") == "system" and bool(message.keys() - {"role", "content"})


def _claude_message(number: int, message: dict[str, Any], last: bool) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if role not in ("user", "assistant", "system"):
        yield f"{number}: no such role {role!r}"
    if not isinstance(content, (str, list)):
        yield f"{number}: content is neither string nor list"
    elif not content and not (role == "assistant" and last) and not _only_directs(message):
        yield f"{number}: empty content"
    for place, block in enumerate(content if isinstance(content, list) else []):
        yield from _claude_block(f"{number}.{place}", block)
        speaker = SPEAKERS.get(block.get("type")) if isinstance(block, dict) else None
        if speaker and speaker != role:
            yield f"{number}.{place}: a {block['type']} block of {role}"
    if isinstance(content, str) and content and not content.strip():
        yield f"{number}: blank text"


def _claude_block(where: str, block: Any) -> Iterator[str]:
    if not isinstance(block, dict) or not isinstance(block.get("type"), str):
        yield f"{where}: a block without a type"
    elif block["type"] == "text":
        text = block.get("text")
        if not isinstance(text, str) or not text.strip():
            yield f"{where}: blank text"
            if "cache_control" in block:
                yield f"{where}: cache_control on blank text"
    elif block["type"] == "thinking":
        if not isinstance(block.get("signature"), str):
            yield f"{where}: thinking without its signature"
    elif block["type"] == "tool_use":
        if not _well_formed_id(block.get("id")):
            yield f"{where}: tool_use id {block.get('id')!r}"
        if not isinstance(block.get("input"), dict):
            yield f"{where}: input is not an object"
        if not isinstance(block.get("name"), str) or not block["name"]:
            yield f"{where}: a call without a name"
    elif block["type"] == "tool_result":
        if not _well_formed_id(block.get("tool_use_id")):
            yield f"{where}: tool_use_id {block.get('tool_use_id')!r}"
        content = block.get("content")
        if content is not None and not isinstance(content, (str, list)):
            yield f"{where}: result content is neither string nor list"
        for place, item in enumerate(content if isinstance(content, list) else []):
            yield from _claude_block(f"{where}.{place}", item)


def _well_formed_id(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[a-zA-Z0-9_-]+", value) is not None


def _claude_calls(index: int, blocks: list[Any], behind: tuple[str, list[Any]]) -> Iterator[str]:
    calls = [block.get("id") for block in of_type(blocks, "tool_use")]
    if len(set(map(str, calls))) < len(calls):
        yield f"turn {index}: tool_use ids must be unique"
    if not calls:
        return
    role, answers = behind
    if role != "user":
        yield f"turn {index}: calls without results in the next message: {calls}"
        return
    first: list[Any] = []
    for block in answers:
        if not isinstance(block, dict) or block.get("type") != "tool_result":
            break
        first.append(block.get("tool_use_id"))
    if missing := [call for call in calls if call not in first]:
        yield f"turn {index}: calls without results at the start of the next message: {missing}"


def _claude_results(
    index: int, role: str, blocks: list[Any], before: tuple[str, list[Any]]
) -> Iterator[str]:
    answered = [block.get("tool_use_id") for block in of_type(blocks, "tool_result")]
    if answered and role != "user":
        yield f"turn {index}: tool_result in a message of the {role}"
    calls = [block.get("id") for block in of_type(before[1], "tool_use")]
    if before[0] != "assistant":
        calls = []
    for call, times in Counter(map(str, answered)).items():
        if call not in map(str, calls):
            yield f"turn {index}: result without its call {call}"
        if times > 1:
            yield f"turn {index}: {times} results for {call}"


def _server_pairs(index: int, blocks: list[Any], seen: set[Any]) -> Iterator[str]:
    """Calls that the provider runs itself: the result stands behind its call, in one message or in
    a later one (programmatic tool calling, ``pause_turn``).  ``seen``: the calls so far."""
    for block in blocks:
        kind = block.get("type", "") if isinstance(block, dict) else ""
        if kind in ("server_tool_use", "mcp_tool_use"):
            seen.add(block.get("id"))
        elif kind.endswith("_tool_result") and block.get("tool_use_id") not in seen:
            yield f"turn {index}: {kind} without its call before it"


def _claude_end(
    turns: list[tuple[str, list[Any]]], messages: list[Any], model: str
) -> Iterator[str]:
    role, blocks = turns[-1]
    if role != "assistant":
        return
    paused = any(isinstance(b, dict) and b.get("type") in ("server_tool_use", "mcp_tool_use")
                 for b in blocks)  # fmt: skip
    if claude_version(model) >= (4, 6) and not paused:
        yield "last: this model does not support assistant message prefill"
    texts = of_type(blocks[-1:], "text")
    if texts and isinstance(texts[0].get("text"), str) and texts[0]["text"] != "":
        text = texts[0]["text"]
        if text != text.rstrip():
            yield "last: final assistant text ends in whitespace"


def _claude_thinking(body: dict[str, Any], turns: list[tuple[str, list[Any]]]) -> Iterator[str]:
    """With thinking on, a last assistant message that calls tools starts with its thinking."""
    if (body.get("thinking") or {}).get("type") != "enabled":
        return
    spoken = [blocks for role, blocks in turns if role == "assistant"]
    last = spoken[-1] if spoken else []
    if of_type(last, "tool_use") and not of_type(last[:1], "thinking", "redacted_thinking"):
        yield "last tool turn: expected thinking or redacted_thinking first"


def _claude_totals(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    system = blocks_of(body.get("system"))
    for place, block in enumerate(system):
        if body.get("system") != "":
            yield from _claude_block(f"system.{place}", block)
    marked = [block for block in [*system, *(body.get("tools") or [])] if "cache_control" in block]
    media = 0
    for message in messages:
        for block in inside(blocks_of(message.get("content"))):
            marked += [block] if block.get("cache_control") else []
            media += block.get("type") in ("image", "document")
    if len(marked) > 4:
        yield f"a maximum of 4 blocks with cache_control, found {len(marked)}"
    most = 100 if SMALL_WINDOW.search(str(body.get("model") or "")) else 600
    if media > most:
        yield f"too many images and documents: {media} > {most}"


# --- signed thinking: what stood before it must still stand before it -----------------------------


def thinking_problems(original: Any, sent: Any, model: str | None = None) -> list[str]:
    """How ``sent`` breaks the thinking blocks it kept of ``original`` (Anthropic).

    A block that stays is byte-identical, the blocks of the last assistant message stay all or not
    at all, and where the model binds thinking to what stands before it (Claude 5.1 and later),
    that is unchanged or the request asks for ``drop_block``.
    """
    found = []
    old, new = _thoughts(original), _thoughts(sent)
    if len(set(map(str, old))) < len(old):
        return []  # twins: which one stayed can't be told
    for block in new:
        if block not in old:
            found.append("a thinking block was changed or made up")
    last_old, last_new = _last_thoughts(original), _last_thoughts(sent)
    # More is none of ours to refuse: messages between two of the model's may go, and they are one.
    stayed = [block for block in last_old if block in last_new]
    if stayed and stayed != last_old:
        found.append("thinking of the last assistant message was dropped in part")
    body = sent if isinstance(sent, dict) else {}
    binding = (body.get("thinking") or {}).get("block_binding") or {}
    model = body.get("model") or model
    if claude_version(model) >= (5, 1) and binding.get("prefix_mismatch_behavior") != "drop_block":
        before = {str(block): prefix for block, prefix in _prefixes(original)}
        for block, prefix in _prefixes(sent):
            if before.get(str(block), prefix) != prefix:
                found.append("a thinking block is bound to a different conversation")
    return found


def _thoughts(request: Any) -> list[Any]:
    return [
        block
        for message in messages_of(request)
        for block in of_type(blocks_of(message.get("content")), "thinking", "redacted_thinking")
    ]


def _last_thoughts(request: Any) -> list[Any]:
    spoken = [blocks for role, blocks in _merged(messages_of(request)) if role == "assistant"]
    return of_type(spoken[-1], "thinking", "redacted_thinking") if spoken else []


def _prefixes(request: Any) -> Iterator[tuple[Any, str]]:
    """Each thinking block with all that stands before it, cache_control left out."""
    body = request if isinstance(request, dict) else {}
    before = [_plain(body.get("system") or ""), _plain(body.get("tools") or [])]
    for role, blocks in _merged(messages_of(request)):
        for block in blocks:
            if isinstance(block, dict) and block.get("type") in ("thinking", "redacted_thinking"):
                yield block, compact(before)
            before.append([role, _plain(block)])


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key != "cache_control"}
    return [_plain(item) for item in value] if isinstance(value, list) else value
