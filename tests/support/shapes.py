"""How each of the six formats writes what is said, called, returned and thought.

The one description that the tests' conversations share.  It is made from the providers' pages and
does not know the library under test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

Item = dict[str, Any]
Items = list[Item]
MODELS = {
    "openai-chat": "openrouter/auto",
    "openai-responses": "gpt-5.5",
    "anthropic": "claude-sonnet-4-5",
    "bedrock": "us.anthropic.claude-sonnet-4-5",
    "gemini": "gemini-3-pro-preview",
    "gemini-interactions": "gemini-3.8-flash",
}
KEYS = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "bedrock": "messages",
    "gemini": "contents",
    "gemini-interactions": "input",
}
"""Format → the key of the list in a body."""
SIX = tuple(MODELS)
FORMATS = SIX[:-1]
"""Those that every judge of the tests knows."""


class Call(NamedTuple):
    """One call and what came back.  ``arguments`` as text go out as they are where text may be;
    ``result``: a text, or what the format has in its place: parts, a response."""

    id: str
    tool: str
    arguments: Any
    result: Any
    error: bool = False


def session(
    format: str, steps: int = 8, lines: int = 60, model: str = "", arguments: int = 1
) -> dict[str, Any]:
    """A question, ``steps`` turns that think, call and get ``lines`` lines, a last question."""
    items = user(format, "Find the bug in the parser.")
    for number in range(steps):
        text = "".join(f"src/mod_{number}.py:{n}: token {n * 7919}\n" for n in range(lines))
        given = {"path": f"src/mod_{number}.py", "text": "look at this\n" * arguments}
        items += turn(format, f"call_{number:04}", given, text, f"step {number}: look there")
    return request(format, items + user(format, "And now?"), model or MODELS[format])


def turn(format: str, call_id: str, arguments: Any, result: str, words: str) -> Items:
    """One step of the model: a thought, a call, and what came back."""
    seal = f"sealed{call_id}" * 20
    sent = f"gAAAA{seal}" if format == "openai-responses" else seal
    calls = [Call(call_id, "read", arguments, result)]
    items = exchange(format, calls, [thought(format, words, sent, call_id)])
    return sealed(named(items), seal)


def user(format: str, text: str) -> Items:
    """What the user says."""
    if format == "gemini-interactions":
        return [{"type": "user_input", "content": [{"type": "text", "text": text}]}]
    if format == "gemini":
        return [{"role": "user", "parts": [{"text": text}]}]
    return [{"role": "user", "content": [{"text": text}] if format == "bedrock" else text}]


def said(format: str, text: str) -> Items:
    """What the model says."""
    if format == "gemini-interactions":
        return [{"type": "model_output", "content": [{"type": "text", "text": text}]}]
    if format == "gemini":
        return [{"role": "model", "parts": [{"text": text}]}]
    return [{"role": "assistant", "content": [{"text": text}] if format == "bedrock" else text}]


def exchange(
    format: str, calls: Sequence[Call], thoughts: Items | None = None, words: str = ""
) -> Items:
    """What the model thinks, says and calls, and what came back: one after the other as items, or
    a message of each side."""
    thoughts = thoughts or []
    if format in ("openai-responses", "gemini-interactions"):
        spoken = [_spoken(format, words)] if words else []
        back = [result(format, one) for one in calls]
        return [*thoughts, *spoken, *(call(format, one) for one in calls), *back]
    if format == "openai-chat":
        message: Item = {"role": "assistant", "content": words or None}
        for thought_ in thoughts:
            message |= thought_
        if calls:
            message["tool_calls"] = [call(format, one) for one in calls]
        return [message, *(result(format, one) for one in calls)]
    role, key = ("model", "parts") if format == "gemini" else ("assistant", "content")
    text = {"type": "text", "text": words} if format == "anthropic" else {"text": words}
    parts = [*thoughts, *([text] if words else []), *(call(format, one) for one in calls)]
    results = [{"role": "user", key: [result(format, one) for one in calls]}] if calls else []
    return [{"role": role, key: parts}, *results]


def _spoken(format: str, words: str) -> Item:
    """What the model says beside its calls, as an item."""
    if format == "gemini-interactions":
        return said(format, words)[0]
    part = {"type": "output_text", "text": words}
    return {"type": "message", "role": "assistant", "content": [part]}


def call(format: str, one: Call) -> Item:
    """The call: an item, or a part of the model's message."""
    text = one.arguments if isinstance(one.arguments, str) else json.dumps(one.arguments)
    if format == "openai-chat":
        return {"id": one.id, "type": "function", "function": {"name": one.tool, "arguments": text}}
    if format == "openai-responses":
        return {"type": "function_call", "call_id": one.id, "name": one.tool, "arguments": text}
    named = {"name": one.tool}
    return {
        "anthropic": {"type": "tool_use", "id": one.id, **named, "input": one.arguments},
        "bedrock": {"toolUse": {"toolUseId": one.id, **named, "input": one.arguments}},
        "gemini": {"functionCall": {**named, "args": one.arguments, "id": one.id}},
        "gemini-interactions": {"type": "function_call", "id": one.id, **named,
                                "arguments": one.arguments},
    }[format]  # fmt: skip


def result(format: str, one: Call) -> Item:
    """What came back: a message, an item, or a part of the user's message."""
    if format == "openai-chat":
        return {"role": "tool", "tool_call_id": one.id, "content": one.result}
    if format == "openai-responses":
        failed: Item = {"status": "incomplete"} if one.error else {}
        return {"type": "function_call_output", "call_id": one.id, "output": one.result, **failed}
    failed = {"is_error": True} if one.error else {}
    if format == "anthropic":
        return {"type": "tool_result", "tool_use_id": one.id, "content": one.result, **failed}
    if format == "gemini-interactions":
        named = {"call_id": one.id, "name": one.tool}
        return {"type": "function_result", **named, "result": one.result, **failed}
    if format == "bedrock":
        status = {"status": "error"} if one.error else {}
        content = one.result if isinstance(one.result, list) else [{"text": one.result}]
        return {"toolResult": {"toolUseId": one.id, "content": content, **status}}
    response = one.result
    if not isinstance(response, dict):
        response = {"error" if one.error else "output": response}
    return {"functionResponse": {"name": one.tool, "id": one.id, "response": response}}


def thought(format: str, words: str, seal: str, id: str = "") -> Item:
    """What the model thinks, signed or sealed: a part, an item, or (chat) a field of its message.
    Gemini's: the thought alone; its seal stands at the first call (``sealed``)."""
    return {
        "openai-chat": {"reasoning_details": [{"type": "reasoning.encrypted", "data": seal}]},
        "openai-responses": {"type": "reasoning", "id": f"rs_{id}", "summary": [],
                             "encrypted_content": seal},
        "anthropic": {"type": "thinking", "thinking": words, "signature": seal},
        "bedrock": {"reasoningContent": {"reasoningText": {"text": words, "signature": seal}}},
        "gemini": {"text": words, "thought": True},
        "gemini-interactions": {"type": "thought", "signature": seal,
                                "summary": [{"type": "text", "text": words}]},
    }[format]  # fmt: skip


def sealed(items: Items, seal: str) -> Items:
    """Items of Gemini with a signature at the first call; others as they are."""
    for part in (part for item in items for part in item.get("parts", ())):
        if "functionCall" in part:
            part["thoughtSignature"] = seal
            break
    return items


def named(items: Items) -> Items:
    """Items of Responses with ids of their own, as a client keeps them with reasoning."""
    for item in items:
        if item.get("type") == "function_call" and "call_id" in item:
            item["id"] = f"fc_{item['call_id']}"
    return items


def request(format: str, items: Items, model: str, tool: str = "read") -> dict[str, Any]:
    """The body around these items; in Bedrock, neighbours of one role are one message."""
    if format == "bedrock":
        tools = [{"toolSpec": {"name": tool, "inputSchema": {"json": {"type": "object"}}}}]
        return {"modelId": model, "messages": merged(items), "toolConfig": {"tools": tools}}
    more: dict[str, Any] = {"anthropic": {"max_tokens": 100}, "gemini-interactions": {
        "store": False}}.get(format, {})  # fmt: skip
    return {"model": model, **more, KEYS[format]: items}


def merged(items: Items) -> Items:
    """Neighbours of one role as one message."""
    found: Items = []
    for item in items:
        if found and found[-1]["role"] == item["role"]:
            found[-1] = {**item, "content": [*found[-1]["content"], *item["content"]]}
        else:
            found.append(item)
    return found


# --- read again -----------------------------------------------------------------------------------


def items_of(body: Any) -> Items:
    """The messages, contents or input items."""
    if isinstance(body, list):
        return body
    found: Items = body.get("messages") or body.get("contents") or body.get("input") or []
    return found


def parts(body: Any) -> Iterator[tuple[str, str, Any]]:
    """("call" | "result", id, the object) of every call and result, in order."""
    return ((kind, id, whole) for kind, id, whole, _ in pieces(body))


def results(format: str, body: dict[str, Any]) -> list[str]:
    """The text of every tool result, in order."""
    return [_joined(value) for kind, _, _, value in pieces(body) if kind == "result"]


def inputs(format: str, body: dict[str, Any]) -> list[Any]:
    """The arguments of every call, in order, as they are written: an object, or its text."""
    return [value for kind, _, _, value in pieces(body) if kind == "call"]


def _joined(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", f"<{part.get('type')}>") for part in content)


def thoughts(format: str, body: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """(index of its message, the opaque object) of each thought, as it goes over the wire."""
    for number, item in enumerate(items_of(body)):
        if "reasoning_details" in item:
            yield number, item["reasoning_details"]
        elif item.get("type") in ("thought", "reasoning"):
            yield number, item
        for part in item.get("parts") or item.get("content") or ():
            if not isinstance(part, dict):
                continue
            if part.get("type") == "thinking" or "reasoningContent" in part:
                yield number, part
            elif "thoughtSignature" in part:
                yield number, part["thoughtSignature"]


def pieces(body: Any) -> Iterator[tuple[str, str, Any, Any]]:
    """As ``parts``, and what the call was given, or gave."""
    for item in items_of(body):
        kind = item.get("type")
        if kind == "function_call":
            yield "call", item.get("call_id", item.get("id")), item, item.get("arguments")
        elif kind in ("function_call_output", "function_result"):
            yield "result", item["call_id"], item, item.get("output", item.get("result"))
        elif item.get("role") == "tool":
            yield "result", item.get("tool_call_id", ""), item, item.get("content")
        for one in item.get("tool_calls") or ():
            yield "call", one["id"], one, one.get("function", {}).get("arguments")
        content = item.get("content")
        for part in item.get("parts") or (content if isinstance(content, list) else ()):
            if isinstance(part, dict):
                yield from _piece(part)


def _piece(part: Item) -> Iterator[tuple[str, str, Any, Any]]:
    if "toolUse" in part:
        yield "call", part["toolUse"]["toolUseId"], part, part["toolUse"]["input"]
    elif "toolResult" in part:
        yield "result", part["toolResult"]["toolUseId"], part, part["toolResult"]["content"]
    elif "functionCall" in part:
        yield "call", part["functionCall"].get("id", ""), part, part["functionCall"]["args"]
    elif "functionResponse" in part:
        inner = part["functionResponse"]
        response = inner["response"]
        value = next(iter(response.values()), "") if isinstance(response, dict) else response
        yield "result", inner.get("id", ""), part, value
    elif part.get("type") == "tool_use":
        yield "call", part["id"], part, part["input"]
    elif part.get("type") == "tool_result":
        yield "result", part["tool_use_id"], part, part.get("content")
