"""One small agent session written in each of the six formats, reasoning included.

Knows the wire formats.  Does not know the library under test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MODELS = {
    "openai-chat": "openrouter/auto",
    "openai-responses": "gpt-5.5",
    "anthropic": "claude-sonnet-4-5",
    "bedrock": "us.anthropic.claude-sonnet-4-5",
    "gemini": "gemini-3-pro-preview",
    "gemini-interactions": "gemini-3.8-flash",
}
SIX = tuple(MODELS)
FORMATS = tuple(name for name in MODELS if name != "gemini-interactions")
"""Those that every judge of the tests knows."""
Items = list[dict[str, Any]]


def session(
    format: str, steps: int = 8, lines: int = 60, model: str = "", arguments: int = 1
) -> dict[str, Any]:
    """A question, ``steps`` turns that think, call and get ``lines`` lines, a last question."""
    items = user(format, "Find the bug in the parser.")
    for number in range(steps):
        text = "".join(f"src/mod_{number}.py:{n}: token {n * 7919}\n" for n in range(lines))
        given = {"path": f"src/mod_{number}.py", "text": "look at this\n" * arguments}
        items += turn(format, f"call_{number:04}", given, text, f"step {number}: look there")
    last = user(format, "And now?")
    if format == "bedrock":  # roles alternate: the words stand behind the last results
        items[-1]["content"] += last.pop()["content"]
    return request(format, items + last, model or MODELS[format])


def request(format: str, items: Items, model: str) -> dict[str, Any]:
    """The body around these items."""
    if format == "openai-responses":
        return {"model": model, "input": items}
    if format == "gemini-interactions":
        return {"model": model, "input": items, "store": False}
    if format == "bedrock":
        tools = [{"toolSpec": {"name": "read", "inputSchema": {"json": {"type": "object"}}}}]
        return {"modelId": model, "messages": items, "toolConfig": {"tools": tools}}
    if format == "gemini":
        return {"model": model, "contents": items}
    more = {"max_tokens": 100} if format == "anthropic" else {}
    return {"model": model, **more, "messages": items}


def user(format: str, text: str) -> Items:
    """What the user says."""
    if format == "gemini-interactions":
        return [{"type": "user_input", "content": [{"type": "text", "text": text}]}]
    if format == "gemini":
        return [{"role": "user", "parts": [{"text": text}]}]
    if format == "bedrock":
        return [{"role": "user", "content": [{"text": text}]}]
    return [{"role": "user", "content": text}]


def said(format: str, text: str) -> Items:
    """What the model says."""
    if format == "gemini-interactions":
        return [{"type": "model_output", "content": [{"type": "text", "text": text}]}]
    if format == "gemini":
        return [{"role": "model", "parts": [{"text": text}]}]
    return [{"role": "assistant", "content": [{"text": text}] if format == "bedrock" else text}]


def turn(format: str, call_id: str, arguments: Any, result: str, thought: str) -> Items:
    """One step of the model: a thought, a call, and what came back."""
    seal = f"sealed{call_id}" * 20
    if format == "openai-chat":
        function = {"name": "read", "arguments": json.dumps(arguments)}
        return [
            {"role": "assistant", "content": None,
             "reasoning_details": [{"type": "reasoning.encrypted", "data": seal}],
             "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
            {"role": "tool", "tool_call_id": call_id, "content": result},
        ]  # fmt: skip
    if format == "openai-responses":
        return [
            {"type": "reasoning", "id": f"rs_{call_id}", "summary": [],
             "encrypted_content": f"gAAAA{seal}"},
            {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": "read",
             "arguments": json.dumps(arguments)},
            {"type": "function_call_output", "call_id": call_id, "output": result},
        ]  # fmt: skip
    if format == "gemini-interactions":
        summary = [{"type": "text", "text": thought}]
        return [
            {"type": "thought", "signature": seal, "summary": summary},
            {"type": "function_call", "id": call_id, "name": "read", "arguments": arguments},
            {"type": "function_result", "call_id": call_id, "name": "read", "result": result},
        ]
    if format == "anthropic":
        return [
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": thought, "signature": seal},
                {"type": "tool_use", "id": call_id, "name": "read", "input": arguments}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call_id, "content": result}]},
        ]  # fmt: skip
    if format == "bedrock":
        return [
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": thought, "signature": seal}}},
                {"toolUse": {"toolUseId": call_id, "name": "read", "input": arguments}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": call_id, "content": [{"text": result}]}}]},
        ]  # fmt: skip
    return [
        {"role": "model", "parts": [
            {"text": thought, "thought": True},
            {"functionCall": {"name": "read", "args": arguments, "id": call_id},
             "thoughtSignature": seal}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "read", "id": call_id, "response": {"output": result}}}]},
    ]  # fmt: skip


def items_of(body: dict[str, Any]) -> Items:
    """The messages, contents or input items."""
    found: Items = body.get("messages") or body.get("contents") or body.get("input") or []
    return found


def thoughts(format: str, body: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """(index of its message, the opaque object) of each thought, as it goes over the wire."""
    for number, item in enumerate(items_of(body)):
        if format == "openai-chat" and "reasoning_details" in item:
            yield number, item["reasoning_details"]
        elif (format == "gemini-interactions" and item.get("type") == "thought") or (
            format == "openai-responses" and item.get("type") == "reasoning"
        ):
            yield number, item
        for part in item.get("parts") or item.get("content") or ():
            if not isinstance(part, dict):
                continue
            if part.get("type") == "thinking" or "reasoningContent" in part:
                yield number, part
            elif "thoughtSignature" in part:
                yield number, part["thoughtSignature"]
