"""Short conversations of tool calls and their results, the same in each of the five formats.

Knows the wire formats.  Does not know the library under test.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from five_formats import FORMATS, MODELS, items_of, request, user

FLAGGED = tuple(format for format in FORMATS if format != "openai-chat")
"""Formats in which a result says by a flag that its call failed."""


class Step(NamedTuple):
    """One call and its result; ``arguments`` as text goes out as it is where text may stand."""

    tool: str
    arguments: Any
    result: Any
    error: bool = False
    id: str = ""


def conversation(format: str, *turns: Step | list[Step], last: str = "And now?") -> dict[str, Any]:
    """A question, one model turn for each item (several calls in a list), a last question."""
    items = user(format, "Please mend the parser.")
    for number, given in enumerate(turns):
        steps = given if isinstance(given, list) else [given]
        items += _turn(format, [s if s.id else s._replace(id=f"call_{number}_{i}")
                                for i, s in enumerate(steps)])  # fmt: skip
    ending = user(format, last)
    if format == "bedrock":  # roles alternate: the words stand behind the last results
        items[-1]["content"] += ending.pop()["content"]
    return request(format, items + ending, MODELS[format])


def _turn(format: str, steps: list[Step]) -> list[dict[str, Any]]:
    if format == "openai-responses":
        calls = [{"type": "function_call", "call_id": s.id, "name": s.tool,
                  "arguments": _text(s.arguments)} for s in steps]  # fmt: skip
        return calls + [
            {"type": "function_call_output", "call_id": s.id, "output": s.result}
            | ({"status": "incomplete"} if s.error else {})
            for s in steps
        ]
    if format == "openai-chat":
        calls = [{"id": s.id, "type": "function",
                  "function": {"name": s.tool, "arguments": _text(s.arguments)}}
                 for s in steps]  # fmt: skip
        return [{"role": "assistant", "content": None, "tool_calls": calls}] + [
            {"role": "tool", "tool_call_id": s.id, "content": s.result} for s in steps
        ]
    if format == "anthropic":
        calls = [{"type": "tool_use", "id": s.id, "name": s.tool, "input": s.arguments}
                 for s in steps]  # fmt: skip
        results = [{"type": "tool_result", "tool_use_id": s.id, "content": s.result}
                   | ({"is_error": True} if s.error else {}) for s in steps]  # fmt: skip
        return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    if format == "bedrock":
        calls = [{"toolUse": {"toolUseId": s.id, "name": s.tool, "input": s.arguments}}
                 for s in steps]  # fmt: skip
        results = [{"toolResult": {"toolUseId": s.id, "content": [{"text": s.result}],
                                   **({"status": "error"} if s.error else {})}}
                   for s in steps]  # fmt: skip
        return [{"role": "assistant", "content": calls}, {"role": "user", "content": results}]
    calls = [{"functionCall": {"name": s.tool, "args": s.arguments, "id": s.id},
              "thoughtSignature": "c2lnbmVk"} for s in steps]  # fmt: skip
    results = [{"functionResponse": {"name": s.tool, "id": s.id,
                                     "response": {"error" if s.error else "output": s.result}}}
               for s in steps]  # fmt: skip
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": results}]


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def results(format: str, body: dict[str, Any]) -> list[str]:
    """The text of every tool result, in order."""
    return [text for _, text in _leaves(format, body, call=False)]


def inputs(format: str, body: dict[str, Any]) -> list[Any]:
    """The arguments of every call, in order, as they stand: an object, or the text of one."""
    return [value for value, _ in _leaves(format, body, call=True)]


def _leaves(format: str, body: dict[str, Any], *, call: bool) -> list[tuple[Any, str]]:
    found: list[tuple[Any, str]] = []
    for item in items_of(body):
        if format == "openai-responses":
            if call and item.get("type") == "function_call":
                found.append((item["arguments"], ""))
            if not call and item.get("type") == "function_call_output":
                found.append((None, _joined(item["output"])))
        elif format == "openai-chat":
            if call:
                found += [(c["function"]["arguments"], "") for c in item.get("tool_calls") or ()]
            elif item["role"] == "tool":
                found.append((None, _joined(item["content"])))
        else:
            for part in item.get("content") or item.get("parts") or ():
                found += _part(part, call) if isinstance(part, dict) else []
    return found


def _part(part: dict[str, Any], call: bool) -> list[tuple[Any, str]]:
    if call:
        for key, inner in (("toolUse", "input"), ("functionCall", "args")):
            if key in part:
                return [(part[key][inner], "")]
        return [(part["input"], "")] if part.get("type") == "tool_use" else []
    if part.get("type") == "tool_result":
        return [(None, _joined(part["content"]))]
    if "toolResult" in part:
        return [(None, _joined(part["toolResult"]["content"]))]
    if "functionResponse" in part:
        return [(None, _joined(next(iter(part["functionResponse"]["response"].values()))))]
    return []


def _joined(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", f"<{part.get('type')}>") for part in content)
