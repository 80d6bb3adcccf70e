"""Writes a story down as a request: the same story in OpenAI Chat or in Anthropic Messages.

A story is a list of steps (the user speaks, the model takes a turn with calls, ...), each of which
may be damaged.  Knows the two wire formats; draws nothing and does not know the library under test.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

MODELS = {
    "openai-chat": (None, "gpt-4o", "gpt-5.1", "deepseek-chat"),
    "anthropic": (
        *(None, "claude-sonnet-4-20250514", "claude-sonnet-4-5", "claude-opus-4-6"),
        *("claude-sonnet-5", "claude-opus-5-5", "claude-fable-5-1"),
    ),
}


@dataclass
class Call:
    """One call and what came back."""

    name: str
    arguments: dict[str, Any]
    shape: str  # of the result: string | list | empty | none | image | unknown
    text: str
    error: bool = False


@dataclass
class Step:
    """What happens next: the user speaks, the system speaks, or the model takes a turn."""

    kind: str  # user | system | model | answer
    text: str = ""
    extra: str = ""  # image | unknown | two texts | cached | thinking | redacted | legacy
    calls: list[Call] = field(default_factory=list)
    damage: str = ""


@dataclass(frozen=True)
class Frame:
    """Everything around the messages."""

    bare: bool
    model: str | None
    system: str
    system_list: bool
    tools: int
    max_tokens: int | None
    thinking: bool
    ids: str  # turn: the same ids in each turn | global
    odd_fields: bool


def write(script: list[Step], frame: Frame, format: str) -> Any:
    """The request of a script."""
    writer: Callable[..., Iterator[dict[str, Any]]]
    writer = {"openai-chat": _chat_step, "anthropic": _claude_step}[format]
    messages: list[dict[str, Any]] = []
    cached = 0
    for number, step in enumerate(script):
        may_cache = cached < 3 and step.extra == "cached"
        cached += may_cache
        for message in writer(step, _Ids(frame.ids, number), may_cache):
            if frame.odd_fields and number % 3 == 0 and format == "openai-chat":
                message["x_trace"] = {"n": number}
            messages.append(message)
    if format == "openai-chat" and frame.system:
        messages.insert(0, {"role": "system", "content": frame.system})
    if frame.bare:
        return messages
    return _body(messages, frame, format)


def _body(messages: list[dict[str, Any]], frame: Frame, format: str) -> dict[str, Any]:
    request: dict[str, Any] = {"model": frame.model} if frame.model else {}
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    if format == "anthropic":
        request["max_tokens"] = frame.max_tokens or 256
        if frame.system:
            block = {"type": "text", "text": frame.system, "cache_control": {"type": "ephemeral"}}
            request["system"] = [block] if frame.system_list else frame.system
        tools: list[Any] = [
            {"name": f"tool_{n}", "description": "Reads.", "input_schema": schema}
            for n in range(frame.tools)
        ]
        if frame.thinking and _thinks(messages):
            new = (frame.model or "") in MODELS["anthropic"][4:]
            kind = {"type": "adaptive"} if new else {"type": "enabled", "budget_tokens": 1024}
            request["thinking"] = kind
    else:
        if frame.max_tokens:
            request["max_completion_tokens"] = frame.max_tokens
        tools = [
            {"type": "function", "function": {"name": f"tool_{n}", "parameters": schema}}
            for n in range(frame.tools)
        ]
    if tools:
        request["tools"] = tools
    if frame.odd_fields:
        request |= {"temperature": 1.0, "metadata": {"user_id": "u_1"}, "x_unknown": [1, 2.50]}
    return {**request, "messages": messages}


def _thinks(messages: list[dict[str, Any]]) -> bool:
    """Whether the last run of assistant messages starts with thinking, as the rule wants it."""
    runs = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    if not runs:
        return False
    first = runs[-1]
    while first and messages[first - 1]["role"] == "assistant":
        first -= 1
    content = messages[first]["content"]
    return isinstance(content, list) and "thinking" in content[0].get("type", "")


class _Ids:
    """Call ids of one step: recurring in each turn, or unique in the conversation."""

    def __init__(self, style: str, step: int) -> None:
        self.step = step
        self._head = "call_" if style == "turn" else f"call_{step}_"

    def __call__(self, number: int, damage: str = "") -> str:
        odd = {"odd id": "functions.read:0 ", "long id": "i" * 50}.get(damage, "")
        return f"{self._head}{odd}{number}"


def _identified(step: Step, ids: _Ids) -> list[tuple[str, Call]]:
    """(id, call) of a turn; a damaged turn may use one id twice."""
    if step.damage == "twin id":
        return [(ids(0), call) for call in step.calls]
    return [(ids(number, step.damage), call) for number, call in enumerate(step.calls)]


# --- OpenAI Chat ----------------------------------------------------------------------------------


def _chat_step(step: Step, ids: _Ids, cached: bool) -> Iterator[dict[str, Any]]:
    if step.kind in ("user", "system"):
        content: Any = _chat_parts(step, cached) if step.kind == "user" else step.text
        if step.damage in ("blank", "blank user"):
            content = ""
        yield {"role": step.kind, "content": None if step.damage == "null content" else content}
        if step.damage == "orphan":
            yield {"role": "tool", "tool_call_id": "call_lost", "content": step.text}
    elif step.kind == "answer":
        message: dict[str, Any] = {"role": "assistant", "content": step.text}
        if step.extra == "thinking":
            message["reasoning_content"] = "I wonder. " * 5
        elif step.extra == "list":
            message["content"] = [{"type": "text", "text": step.text}]
        yield {**message, "content": None} if step.damage == "null content" else message
    elif step.extra == "legacy":
        call = step.calls[0]
        inner = {"name": call.name, "arguments": json.dumps(call.arguments)}
        yield {"role": "assistant", "content": None, "function_call": inner}
        yield {"role": "function", "name": call.name, "content": call.text}
    else:
        yield from _damaged_chat(step, _identified(step, ids))


def _chat_parts(step: Step, cached: bool) -> Any:
    text: dict[str, Any] = {"type": "text", "text": step.text}
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL * 20}"}}
    if cached:
        return [{**text, "cache_control": {"type": "ephemeral"}}]
    extras: dict[str, list[Any]] = {
        "list": [text],
        "two": [text, {"type": "text", "text": "And this, too."}],
        "image": [text, image],
        "unknown": [text, {"type": "input_audio_ref", "ref": "aud_7", "note": "hum"}],
    }
    return extras.get(step.extra, step.text)


def _chat_turn(step: Step, calls: list[tuple[str, Call]]) -> dict[str, Any]:
    made = [
        {
            "id": call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": _arguments(call)},
        }
        for call_id, call in calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
    if step.extra in ("thinking", "redacted"):
        message["reasoning_content"] = "Let me look at the file first. " * 8
    return {**message, "tool_calls": made}


def _arguments(call: Call) -> str:
    """Arguments as models spell them: with spaces, without, and now and then cut off."""
    text = json.dumps(call.arguments, ensure_ascii=call.error)
    return text[:-1] if call.shape == "unknown" and call.arguments else text


def _chat_result(call_id: str, call: Call) -> dict[str, Any]:
    part = {"type": "text", "text": call.text}
    shapes: dict[str, Any] = {
        "list": [part, {"type": "text", "text": "second part"}],
        "empty": "",
        "none": "",
        "unknown": [part],
    }
    content = shapes.get(call.shape, call.text)
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _damaged_chat(step: Step, calls: list[tuple[str, Call]]) -> Iterator[dict[str, Any]]:
    results = [_chat_result(call_id, call) for call_id, call in calls]
    user = {"role": "user", "content": "Wait, one more thing."}
    lost = {"role": "tool", "tool_call_id": "call_lost", "content": "who asked?"}
    first, rest = results[:1], results[1:]
    shapes: dict[str, list[dict[str, Any]]] = {
        "unanswered": [],
        "one unanswered": rest,
        "duplicate result": [*results, copy.deepcopy(results[-1])],
        "orphan": [*results, lost],
        "user between": [user, *results],
        "split by user": [*first, user, *rest],
        "text first": [user, *results],
    }
    if step.damage == "early result":
        yield results[0]
        results = rest
    yield _chat_turn(step, calls)
    yield from shapes.get(step.damage, results)


# --- Anthropic ------------------------------------------------------------------------------------


def _claude_step(step: Step, ids: _Ids, cached: bool) -> Iterator[dict[str, Any]]:
    text: dict[str, Any] = {"type": "text", "text": step.text}
    if step.kind == "user":
        yield {"role": "user", "content": _claude_parts(step, text, cached)}
    elif step.kind == "system":
        yield {"role": "system", "content": [text]}
    elif step.kind == "answer":
        content: Any = step.text if step.extra == "" else [text]
        if step.extra == "thinking":
            content = [*_thought(step, ids), text]
        yield {"role": "assistant", "content": _wounded(content, step.damage)}
    else:
        yield from _damaged_claude(step, ids, cached)


def _claude_parts(step: Step, text: dict[str, Any], cached: bool) -> Any:
    extras: dict[str, list[Any]] = {
        "list": [text],
        "two": [text, {"type": "text", "text": "And this, too."}],
        "image": [_image(), text],
        "unknown": [text, {"type": "container_upload", "file_id": "file_7"}],
    }
    content: Any = extras.get(step.extra, step.text)
    if cached:
        content = [{**text, "cache_control": {"type": "ephemeral"}}]
    if step.damage == "orphan":
        lost = {"type": "tool_result", "tool_use_id": "call_lost", "content": step.text}
        content = [lost, text]
    return _wounded(content, step.damage)


def _wounded(content: Any, damage: str) -> Any:
    """The content with a blank text in it, or none at all."""
    blank: dict[str, Any] = {"type": "text", "text": "" if damage == "blank user" else " \n"}
    if damage in ("blank", "blank user", "cached blank"):
        if damage == "cached blank":
            blank["cache_control"] = {"type": "ephemeral"}
        return [*content, blank] if isinstance(content, list) else [blank]
    return "" if damage == "null content" else content


def _image() -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL * 20}
    return {"type": "image", "source": source}


def _thought(step: Step, ids: _Ids) -> list[dict[str, Any]]:
    """Reasoning of a turn; its seal tells it apart from all others."""
    seal = f"sig{ids.step}" + "Q" * 60
    if step.extra == "redacted":
        return [{"type": "redacted_thinking", "data": seal}]
    return [{"type": "thinking", "thinking": "Let me look first. " * 8, "signature": seal}]


def _claude_turn(step: Step, ids: _Ids, cached: bool) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if step.extra in ("thinking", "redacted"):
        content += _thought(step, ids)
    if step.text:
        content.append({"type": "text", "text": step.text})
    if step.extra == "server" or step.damage == "server orphan":
        use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        found = [{"type": "web_search_result", "url": "https://example.org", "title": "T"}]
        result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found}
        content += [result] if step.damage == "server orphan" else [use, result]
    for call_id, call in _identified(step, ids):
        use = {"type": "tool_use", "id": call_id, "name": call.name, "input": call.arguments}
        content.append(use | ({"cache_control": {"type": "ephemeral"}} if cached else {}))
        cached = False
    return {"role": "assistant", "content": _wounded_turn(content, step.damage)}


def _wounded_turn(content: list[dict[str, Any]], damage: str) -> list[dict[str, Any]]:
    if damage == "blank":
        return [{"type": "text", "text": "\n\n"}, *content]
    return content


def _claude_result(call_id: str, call: Call) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "text", "text": call.text}
    shapes: dict[str, Any] = {
        "list": [part, {"type": "text", "text": "second part"}],
        "empty": "",
        "image": [part, _image()],
        "unknown": [part, {"type": "tool_reference", "tool_name": "tool_0"}],
    }
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call_id}
    if call.shape != "none":
        block["content"] = shapes.get(call.shape, call.text)
    return block | ({"is_error": True} if call.error else {})


def _damaged_claude(step: Step, ids: _Ids, cached: bool) -> Iterator[dict[str, Any]]:
    results = [_claude_result(call_id, call) for call_id, call in _identified(step, ids)]
    text = {"type": "text", "text": "Wait, one more thing."}
    lost = {"type": "tool_result", "tool_use_id": "call_lost", "content": "who asked?"}
    first, rest = results[:1], results[1:]
    shapes: dict[str, list[list[dict[str, Any]]]] = {
        "unanswered": [],
        "one unanswered": [rest],
        "duplicate result": [[*results, copy.deepcopy(results[-1])]],
        "orphan": [[*results, lost]],
        "user between": [[text], results],
        "split by user": [[*first, text], rest],
        "text first": [[text, *results]],
        "split results": [first, rest],
        "blank user": [[*results, {"type": "text", "text": ""}]],
    }
    if step.damage == "early result":
        yield {"role": "user", "content": first}
        results = rest
    yield _claude_turn(step, ids, cached)
    for content in shapes.get(step.damage, [results]):
        if content:
            yield {"role": "user", "content": content}
