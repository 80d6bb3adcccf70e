"""A conversation as a script of who says what, written in each of the five formats.

Every text is told apart by its speaker: what is sent can be traced.  Knows the wire formats; does
not know the library under test.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from hypothesis import strategies as st

FORMATS = ("openai-chat", "openai-responses", "anthropic", "bedrock", "gemini")


class Called(NamedTuple):
    """One call of a step: the tool, its arguments, and what came back."""

    tool: str
    arguments: dict[str, Any]
    result: str
    error: bool = False


class Step(NamedTuple):
    """What the model said, called, and got back; no calls: it only spoke."""

    words: str
    calls: tuple[Called, ...] = ()


Script = list[str | Step]
"""A text is the user's."""


def lines(who: str, number: int, count: int, width: int = 9) -> str:
    """Lines that nobody else says."""
    words = ("parser", "journal", "window", "cache", "token", "branch", "index", "commit")
    rows = (
        f"{who} {number}.{row} says {who}_{number}_{row} "
        + " ".join(f"{words[(number * 7 + row * 3 + n) % 8]}-{who}" for n in range(width))
        for row in range(count)
    )
    return "\n".join(rows)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Conversations of a dozen turns, with steps of one to three calls, some of which failed."""
    number, found = 0, list[str | Step]()
    for _ in range(draw(st.integers(1, 6))):
        number += 1
        found.append(lines("user", number, draw(st.integers(1, 12))))
        for _ in range(draw(st.integers(0, 5))):
            calls = []
            for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
                number += 1
                arguments: dict[str, Any] = {"path": f"src/file_{number}.py"}
                if draw(st.booleans()):
                    arguments["text"] = lines("agent", number, draw(st.integers(1, 30)))
                back = lines("tool", number, draw(st.integers(1, 40)))
                calls.append(Called("write", arguments, back, draw(st.integers(0, 5)) == 0))
            number += 1
            words = lines("agent", number, 2) if draw(st.booleans()) else ""
            found.append(Step(words, tuple(calls)))
        number += 1
        found.append(Step(lines("agent", number, draw(st.integers(1, 20)))))
    found.append(lines("user", number + 1, 2))
    return found


def written(format: str, script: Script, model: str = "") -> dict[str, Any]:
    """The request."""
    items: list[Any] = []
    for number, said in enumerate(script):
        if isinstance(said, str):
            items += _user(format, said)
        else:
            items += _step(format, said, number)
    if format == "bedrock":
        items = _merged(items)
    named = {"model": model} if model else {}
    if format == "openai-responses":
        return {"model": "gpt-5.5", **named, "input": items}
    if format == "bedrock":
        tools = [{"toolSpec": {"name": "write", "inputSchema": {"json": {"type": "object"}}}}]
        return {
            "modelId": model or "us.anthropic.claude-sonnet-4-5", "messages": items,
            "toolConfig": {"tools": tools},
        }  # fmt: skip
    if format == "gemini":
        return {"model": "gemini-3-pro-preview", **named, "contents": items}
    if format == "anthropic":
        return {"model": "claude-sonnet-4-5", **named, "max_tokens": 100, "messages": items}
    return {"model": "gpt-5.1", **named, "messages": items}


def _user(format: str, text: str) -> list[Any]:
    if format == "gemini":
        return [{"role": "user", "parts": [{"text": text}]}]
    return [{"role": "user", "content": [{"text": text}] if format == "bedrock" else text}]


def _merged(items: list[Any]) -> list[Any]:
    """Neighbours of one role in one message."""
    found: list[Any] = []
    for item in items:
        if found and found[-1]["role"] == item["role"]:
            found[-1] = {**item, "content": [*found[-1]["content"], *item["content"]]}
        else:
            found.append(item)
    return found


def _step(format: str, step: Step, number: int) -> list[Any]:
    ids = [f"call{number:03d}x{n}" for n in range(len(step.calls))]
    return _WRITERS[format](step, ids)


def _chat(step: Step, ids: list[str]) -> list[Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step.words or None}
    if not ids:
        return [message]
    message["tool_calls"] = [
        {"id": i, "type": "function",
         "function": {"name": c.tool, "arguments": json.dumps(c.arguments)}}
        for i, c in zip(ids, step.calls, strict=True)
    ]  # fmt: skip
    back = [
        {"role": "tool", "tool_call_id": i, "content": c.result}
        for i, c in zip(ids, step.calls, strict=True)
    ]
    return [message, *back]


def _responses(step: Step, ids: list[str]) -> list[Any]:
    items: list[Any] = []
    if ids:
        items.append({"type": "reasoning", "id": f"rs_{ids[0]}", "summary": [],
                      "encrypted_content": f"gAAAA{ids[0]}" * 9})  # fmt: skip
    if step.words:
        items.append({"type": "message", "role": "assistant",
                      "content": [{"type": "output_text", "text": step.words}]})  # fmt: skip
    for i, c in zip(ids, step.calls, strict=True):
        items.append({"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": c.tool,
                      "arguments": json.dumps(c.arguments)})  # fmt: skip
    for i, c in zip(ids, step.calls, strict=True):
        items.append({"type": "function_call_output", "call_id": i, "output": c.result})
    if items and items[0]["type"] == "reasoning" and items[1]["type"] == "message":
        items[1]["id"] = f"msg_{ids[0]}"
    return items


def _anthropic(step: Step, ids: list[str]) -> list[Any]:
    said: list[Any] = [{"type": "text", "text": step.words}] if step.words else []
    if ids:
        said = [{"type": "thinking", "thinking": f"think {ids[0]}", "signature": "s" * 80}, *said]
    said += [
        {"type": "tool_use", "id": i, "name": c.tool, "input": c.arguments}
        for i, c in zip(ids, step.calls, strict=True)
    ]
    back = [
        {"type": "tool_result", "tool_use_id": i, "content": c.result,
         **({"is_error": True} if c.error else {})}
        for i, c in zip(ids, step.calls, strict=True)
    ]  # fmt: skip
    return [
        {"role": "assistant", "content": said},
        *([{"role": "user", "content": back}] * bool(ids)),
    ]


def _bedrock(step: Step, ids: list[str]) -> list[Any]:
    said: list[Any] = [{"text": step.words}] if step.words else []
    said += [
        {"toolUse": {"toolUseId": i, "name": c.tool, "input": c.arguments}}
        for i, c in zip(ids, step.calls, strict=True)
    ]
    back = [
        {"toolResult": {"toolUseId": i, "content": [{"text": c.result}],
                        "status": "error" if c.error else "success"}}
        for i, c in zip(ids, step.calls, strict=True)
    ]  # fmt: skip
    return [
        {"role": "assistant", "content": said},
        *([{"role": "user", "content": back}] * bool(ids)),
    ]


def _gemini(step: Step, ids: list[str]) -> list[Any]:
    said: list[Any] = [{"text": step.words}] if step.words else []
    for n, (i, c) in enumerate(zip(ids, step.calls, strict=True)):
        call: dict[str, Any] = {"functionCall": {"name": c.tool, "args": c.arguments, "id": i}}
        said.append(call | ({"thoughtSignature": f"seal{i}" * 8} if n == 0 else {}))
    back = [
        {"functionResponse": {"name": c.tool, "id": i,
                              "response": {"error" if c.error else "output": c.result}}}
        for i, c in zip(ids, step.calls, strict=True)
    ]  # fmt: skip
    return [{"role": "model", "parts": said}, *([{"role": "user", "parts": back}] * bool(ids))]


_WRITERS = {
    "openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic,
    "bedrock": _bedrock, "gemini": _gemini,
}  # fmt: skip
