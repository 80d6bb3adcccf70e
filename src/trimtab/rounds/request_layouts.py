"""Where each format keeps the parts of a request that recall needs: tools, history, model turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_MODEL_ITEMS = ("reasoning", "function_call", "custom_tool_call", "local_shell_call")
_RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")


ITEMS = ("openai-responses", "gemini-interactions")
"""Formats whose model turns are several items in a row."""


@dataclass(frozen=True)
class RequestLayout:
    """One format's requests.

    ``key``: the key of the history; ``speaker``: whether a message is the model's; ``said``: its
    texts and calls, as the client must send them back; ``names``: the names of the offered tools;
    ``grouped``: the key under which one user message has all results, "" where each result is a
    message of its own.
    """

    key: str
    speaker: Callable[[Any], bool]
    said: Callable[[Any], list[str]]
    names: Callable[[Any], list[str]]
    grouped: str = ""


def texts(content: Any, *keys: str) -> list[str]:
    """The texts of a content, stripped of surrounding whitespace."""
    if isinstance(content, str):
        return [content.strip()]
    parts = content if isinstance(content, list) else []
    values = [part.get(key) for part in parts if isinstance(part, dict) for key in keys]
    return [text.strip() for text in values if isinstance(text, str)]


def _call(name: Any, arguments: Any) -> str:
    if isinstance(arguments, str):
        with suppress(ValueError):
            arguments = json.loads(arguments)
    return f"{name} {json.dumps(arguments, sort_keys=True)}"


def _chat(message: Any) -> list[str]:
    calls = message.get("tool_calls") or []
    return [*texts(message.get("content"), "text"), *(str(call.get("id")) for call in calls)]


def _claude(message: Any) -> list[str]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    calls = [str(p.get("id")) for p in parts if isinstance(p, dict) and p.get("type") == "tool_use"]
    return [*_of_type(content, "text"), *calls]


def _of_type(content: Any, kind: str) -> list[str]:
    if isinstance(content, str):
        return [content.strip()]
    parts = content if isinstance(content, list) else []
    return texts([p for p in parts if isinstance(p, dict) and p.get("type") == kind], "text")


def _converse(message: Any) -> list[str]:
    parts = [p for p in message.get("content") or [] if isinstance(p, dict)]
    calls = [str(p["toolUse"].get("toolUseId")) for p in parts if "toolUse" in p]
    return [*texts(parts, "text"), *calls]


def _gemini(message: Any) -> list[str]:
    parts = [p for p in message.get("parts") or [] if isinstance(p, dict)]
    calls = [p["functionCall"] for p in parts if isinstance(p.get("functionCall"), dict)]
    spoken = "".join(texts([p for p in parts if not p.get("thought")], "text"))
    return [spoken, *(_call(call.get("name"), call.get("args")) for call in calls)]


def _item(item: Any) -> list[str]:
    if item.get("type") in _MODEL_ITEMS:
        return [str(item["call_id"])] if item.get("call_id") else []
    return texts(item.get("content"), "text")


def _is_model_item(item: Any) -> bool:
    kind = item.get("type", "message")
    return kind in _MODEL_ITEMS or (kind == "message" and item.get("role") == "assistant")


def _step(step: Any) -> list[str]:
    if step.get("type") == "function_call":
        return [str(step["id"])] if step.get("id") else []
    return texts(step.get("content"), "text") if step.get("type") == "model_output" else []


def _is_model_step(step: Any) -> bool:
    return step.get("type") not in ("user_input", "function_result", None)


def _names(*keys: str) -> Callable[[Any], list[str]]:
    """Names of tools, found below these keys of each."""

    def names(tools: Any) -> list[str]:
        rows = list[Any]()
        for tool in tools if isinstance(tools, list) else []:
            for key in keys:
                tool = tool.get(key, tool) if isinstance(tool, dict) else {}
            rows += [tool] if isinstance(tool, dict) else tool if isinstance(tool, list) else []
        return [str(row.get("name")) for row in rows if isinstance(row, dict)]

    return names


def _assistant(message: Any) -> bool:
    return bool(message.get("role") == "assistant")


LAYOUTS: Mapping[str, RequestLayout] = {
    "openai-chat": RequestLayout("messages", _assistant, _chat, _names("function")),
    "openai-responses": RequestLayout("input", _is_model_item, _item, _names()),
    "anthropic": RequestLayout("messages", _assistant, _claude, _names(), "content"),
    "bedrock": RequestLayout("messages", _assistant, _converse, _names("toolSpec"), "content"),
    "gemini": RequestLayout(
        "contents", lambda m: bool(m.get("role") == "model"), _gemini,
        _names("functionDeclarations"), "parts",
    ),
    "gemini-interactions": RequestLayout("input", _is_model_step, _step, _names()),
}  # fmt: skip


def tools_of(format: str, body: Any) -> Any:
    """The list of tools of a request; None where it has none."""
    holder = body.get("toolConfig") if format == "bedrock" else body
    tools = holder.get("tools") if isinstance(holder, dict) else None
    return tools if isinstance(tools, list) and tools else None


def tools_path(format: str) -> tuple[str, ...]:
    """The path of the list of tools."""
    return ("toolConfig", "tools") if format == "bedrock" else ("tools",)


def offers_any(format: str, body: Any, names: Sequence[str]) -> bool:
    """Whether the client itself offers a tool under one of these names."""
    return not set(names).isdisjoint(LAYOUTS[format].names(tools_of(format, body)))


def history(format: str, body: Any) -> list[Any]:
    """The messages of a request; a plain text counts as one user message."""
    messages = body.get(LAYOUTS[format].key)
    if isinstance(messages, str) and format == "gemini-interactions":
        return [{"type": "user_input", "content": [{"type": "text", "text": messages}]}]
    if isinstance(messages, str):
        return [{"type": "message", "role": "user", "content": messages}]
    return messages if isinstance(messages, list) else []


def with_turn(format: str, body: Any, real: list[Any], results: list[Any]) -> Any:
    """The request, extended by a model turn and the results of its recalls."""
    shape = LAYOUTS[format]
    more = [*real, *_as_messages(format, results)]
    return {**body, shape.key: [*history(format, body), *more]}


def _as_messages(format: str, results: list[Any]) -> list[Any]:
    """Results as the messages that hold them."""
    grouped = LAYOUTS[format].grouped
    if not grouped or not results:
        return results
    return [{"role": "user", grouped: results}]


def runs(format: str, messages: list[Any]) -> Iterator[tuple[int, int]]:
    """The (start, end) of each model turn: one message, or consecutive items; end is exclusive."""
    speaker, at = LAYOUTS[format].speaker, 0
    while at < len(messages):
        end = at
        while end < len(messages) and isinstance(messages[end], dict) and speaker(messages[end]):
            end += 1
            if format not in ITEMS:
                break
        if end > at:
            yield at, end
        at = max(end, at + 1)
