"""Reads a request of any format as a flat list of pieces with their speakers, for the properties.

It must read requests from any tool: unknown parts get the kind "other".  It shares no code with
``trimtab.formats``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from trimtab_lab.testing.conformance.writing import MESSAGES_KEY


class SaidPiece(NamedTuple):
    """One piece of a conversation.

    ``speaker``: user | model | tool | system; ``kind``: text | call | result | sealed | loads |
    other; ``text`` of a call: its arguments as canonical JSON; ``name`` of "loads": the deferred
    tool that a search found; ``message``: its index in the list.
    """

    message: int
    speaker: str
    kind: str
    text: str
    id: str = ""
    name: str = ""


def messages_of(request: Any, format: str) -> list[Any]:
    """The list of messages of a body, or the list itself."""
    if isinstance(request, list):
        return request
    messages = request.get(MESSAGES_KEY[format]) if isinstance(request, dict) else None
    return messages if isinstance(messages, list) else []


def read(request: Any, format: str) -> list[SaidPiece]:
    """All pieces of a request's messages, in order, without system text and tools."""
    pieces = []
    for number, message in enumerate(messages_of(request, format)):
        if isinstance(message, dict):
            pieces += [SaidPiece(number, *rest) for rest in _READERS[format](message)]
        else:
            pieces.append(SaidPiece(number, "", "other", _dump(message)))
    return pieces


_Rest = tuple[str, ...]

_SPEAKERS = {"assistant": "model", "model": "model", "user": "user", "tool": "tool"}


def _dump(value: Any) -> str:
    """Canonical JSON of a value, or of a text that is JSON."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return str(value)
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _text(value: Any) -> str:
    """The text of a content: a string itself, the texts of its parts, or JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_text(item) for item in value)
    if isinstance(value, dict):
        for key in ("text", "stdout"):
            if isinstance(value.get(key), str):
                return str(value[key])
        if set(value) == {"json"}:
            return _dump(value["json"])
    return "" if value is None else _dump(value)


def _parts(content: Any) -> list[Any]:
    """A content as a list of parts, without a blank text."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content.strip() else []
    return content if isinstance(content, list) else []


def _chat(message: dict[str, Any]) -> Iterator[_Rest]:
    role = str(message.get("role"))
    who = _SPEAKERS.get(role, "system")
    if role == "tool":
        yield "tool", "result", _text(message.get("content")), str(message.get("tool_call_id"))
        return
    for part in _parts(message.get("content")):
        is_text = isinstance(part, dict) and isinstance(part.get("text"), str)
        yield who, "text" if is_text else "other", _text(part)
    for call in message.get("tool_calls") or ():
        function = call.get("function") or call.get("custom") or {}
        arguments = function.get("arguments", function.get("input"))
        yield who, "call", _dump(arguments), str(call.get("id")), str(function.get("name"))


def _responses(item: dict[str, Any]) -> Iterator[_Rest]:
    kind = str(item.get("type") or "message")
    if kind == "message":
        who = _SPEAKERS.get(str(item.get("role")), "system")
        for part in _parts(item.get("content")):
            yield who, "text", _text(part)
    elif kind == "tool_search_output":
        yield "tool", "result", "", str(item.get("call_id"))
        for tool in item.get("tools") or ():
            yield "tool", "loads", "", "", str(tool.get("name"))
    elif kind.endswith("_call_output"):
        yield "tool", "result", _text(item.get("output")), str(item.get("call_id"))
    elif kind.endswith("_call"):
        arguments = item.get("arguments", item.get("input", item.get("action")))
        yield "model", "call", _dump(arguments), str(item.get("call_id")), str(item.get("name"))
    elif kind in ("reasoning", "compaction"):
        yield "model", "sealed", _dump(item), kind
    else:
        yield "", "other", _dump(item)


def _anthropic(message: dict[str, Any]) -> Iterator[_Rest]:
    who = _SPEAKERS.get(str(message.get("role")), "system")
    directives = {key: value for key, value in message.items() if key not in ("role", "content")}
    if who == "system" and directives:
        yield who, "other", _dump(directives)
    for part in _parts(message.get("content")):
        kind = str(part.get("type")) if isinstance(part, dict) else ""
        if kind == "text":
            yield who, "text", str(part.get("text"))
        elif kind in ("tool_use", "server_tool_use"):
            name = str(part.get("name"))
            yield who, "call", _dump(part.get("input")), str(part.get("id")), name
        elif kind.endswith("tool_result"):
            yield from _anthropic_result(part)
        elif kind in ("thinking", "redacted_thinking", "compaction"):
            plain = {key: value for key, value in part.items() if key != "cache_control"}
            yield who, "sealed", _dump(plain), kind
        else:
            yield who, "other", _dump(part)


def _anthropic_result(part: dict[str, Any]) -> Iterator[_Rest]:
    """A result of the client's or of the server's, and the tools that it loads."""
    content = part.get("content")
    inner = content.get("tool_references", content) if isinstance(content, dict) else content
    said, names = list[Any](), list[str]()
    for one in inner if isinstance(inner, list) else [inner]:
        if isinstance(one, dict) and one.get("type") == "tool_reference":
            names.append(str(one.get("tool_name")))
        else:
            said.append(one)
    yield "tool", "result", _text(said), str(part.get("tool_use_id"))
    for name in names:
        yield "tool", "loads", "", "", name


def _bedrock(message: dict[str, Any]) -> Iterator[_Rest]:
    who = _SPEAKERS.get(str(message.get("role")), "system")
    for part in _parts(message.get("content")):
        if "toolUse" in part:
            use = part["toolUse"]
            name = str(use.get("name"))
            yield who, "call", _dump(use.get("input")), str(use.get("toolUseId")), name
        elif "toolResult" in part:
            result = part["toolResult"]
            yield "tool", "result", _text(result.get("content")), str(result.get("toolUseId"))
        elif "reasoningContent" in part:
            yield who, "sealed", _dump(part), "thinking"
        elif "text" in part:
            yield who, "text", str(part["text"])
        elif "cachePoint" not in part:
            yield who, "other", _dump(part)


def _gemini(message: dict[str, Any]) -> Iterator[_Rest]:
    who = _SPEAKERS.get(str(message.get("role", "user")), "system")
    for part in _parts(message.get("parts")):
        call = part.get("functionCall") or part.get("function_call")
        result = part.get("functionResponse") or part.get("function_response")
        if call:
            id = str(call.get("id") or call.get("name"))
            yield who, "call", _dump(call.get("args")), id, str(call.get("name"))
        elif result:
            response = result.get("response") or {}
            value = next(iter(response.values())) if len(response) == 1 else response
            yield "tool", "result", _text(value), str(result.get("id") or result.get("name"))
        elif "text" in part:
            yield who, "text", str(part["text"])
        else:
            yield who, "other", _dump(part)


def _interactions(step: dict[str, Any]) -> Iterator[_Rest]:
    kind = step.get("type")
    if kind in ("user_input", "model_output"):
        for part in _parts(step.get("content")):
            yield "user" if kind == "user_input" else "model", "text", _text(part)
    elif kind == "function_call":
        name = str(step.get("name"))
        yield "model", "call", _dump(step.get("arguments")), str(step.get("id")), name
    elif kind == "function_result":
        yield "tool", "result", _text(step.get("result")), str(step.get("call_id"))
    elif kind == "thought":
        yield "model", "sealed", _dump(step), "thought"
    else:
        yield "", "other", _dump(step)


_READERS = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "gemini": _gemini,
    "gemini-interactions": _interactions,
}
