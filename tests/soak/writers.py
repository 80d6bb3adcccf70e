"""A story written down as the body of a request, in OpenAI Chat, Anthropic and Bedrock.

Whatever harm the story came to is written as it is.  Knows the wire formats; draws nothing, repairs
nothing and does not know the library under test.  Responses and Gemini: writers_more.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from soak.story import ARGUMENTS, TOOLS, Frame, Message, Part, Story

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" * 4
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
SEAL = "c2lnbmVk" * 8
_SPELLED = {id(value): json.dumps(value, ensure_ascii=False) for value in ARGUMENTS}

Wire = dict[str, Any]


def spelled(arguments: Any) -> str:
    """Arguments as a model spells them: JSON, or whatever came out instead."""
    if isinstance(arguments, str):
        return arguments
    if arguments is None:
        return ""
    found = _SPELLED.get(id(arguments))
    return found if found is not None else json.dumps(arguments, ensure_ascii=False)


class Marks:
    """Cache breakpoints: three are written, of a careless client all."""

    def __init__(self, careless: bool) -> None:
        self.left = 99 if careless else 3

    def wanted(self, part: Part) -> bool:
        """Whether this part gets one."""
        if part.shape != "marked" or not self.left:
            return False
        self.left -= 1
        return True


# --- OpenAI Chat ----------------------------------------------------------------------------------


def chat(story: Story, frame: Frame) -> Any:
    """A body of OpenAI Chat Completions, or its list of messages."""
    messages: list[Wire] = []
    if frame.system:
        messages.append({"role": "system", "content": frame.system})
    for message in story:
        _chat_message(messages, message, frame)
    if frame.bare:
        return messages
    body: Wire = {"model": frame.model} if frame.model else {}
    if frame.tools:
        body["tools"] = [
            {"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in TOOLS
        ]
    if frame.odd:
        body |= {"temperature": 1.0, "x_unknown": [1, 2.5]}
    return {**body, "messages": messages}


def _chat_message(messages: list[Wire], message: Message, frame: Frame) -> None:
    """Results are messages of their own; the other parts stand together."""
    rest: list[Part] = []
    for part in message.parts:
        if part.kind != "result":
            rest.append(part)
            continue
        if rest:
            messages.append(_chat_said(message.role, rest, frame))
            rest = []
        messages.append(_chat_result(message.role, part))
    if rest or not message.parts:
        messages.append(_chat_said(message.role, rest, frame))


def _chat_result(role: str, part: Part) -> Wire:
    content: Any = part.text
    if part.shape in ("list", "image", "odd"):
        content = [{"type": "text", "text": part.text}]
    elif part.shape in ("none", "empty"):
        content = "" if part.shape == "none" else []
    if role != "user":
        return {"role": role, "content": content}
    return {"role": "tool", "tool_call_id": part.id, "content": content}


def _chat_said(role: str, parts: list[Part], frame: Frame) -> Wire:
    calls = [part for part in parts if part.kind == "call"]
    content: Any = [_chat_part(part) for part in parts if part.kind not in ("call", "thought")]
    if not frame.listed and all("text" in part for part in content):
        content = "\n".join(part["text"] for part in content) if content else None
    said: Wire = {"role": "assistant" if calls else role, "content": content}
    thought = "".join(part.text for part in parts if part.kind == "thought")
    if thought and role == "assistant":
        said["reasoning_content"] = thought
    if calls:
        said["content"] = content or None
        said["tool_calls"] = [
            {
                "id": part.id,
                "type": "function",
                "function": {"name": part.name, "arguments": spelled(part.arguments)},
            }
            for part in calls
        ]
    if frame.odd and len(parts) == 2:
        said["x_trace"] = {"n": len(calls)}
    return said


def _chat_part(part: Part) -> Wire:
    if part.kind in ("image", "document"):
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    if part.kind == "odd":
        return {"type": "input_audio_ref", "ref": "aud_7", "note": "hum"}
    return {"type": "text", "text": part.text}


# --- Anthropic ------------------------------------------------------------------------------------


def claude(story: Story, frame: Frame) -> Any:
    """A body of Anthropic Messages, or its list of messages."""
    marks = Marks(frame.odd)
    messages = [_claude_message(message, frame, marks) for message in story]
    if frame.bare:
        return messages
    body: Wire = {"max_tokens": 256}
    if frame.model:
        body["model"] = frame.model
    if frame.system:
        body["system"] = [{"type": "text", "text": frame.system}] if frame.listed else frame.system
    if frame.thinking:
        budget = {"budget_tokens": 1024} if frame.thinking == "enabled" else {}
        body["thinking"] = {"type": frame.thinking, **budget}
    if frame.tools:
        body["tools"] = [{"name": name, "input_schema": SCHEMA} for name in TOOLS]
    if frame.odd:
        body |= {"metadata": {"user_id": "u_1"}, "x_unknown": [1, 2.5]}
    return {**body, "messages": messages}


def _claude_message(message: Message, frame: Frame, marks: Marks) -> Wire:
    parts = message.parts
    if len(parts) == 1 and parts[0].kind == "text" and not frame.listed and not parts[0].shape:
        return {"role": message.role, "content": parts[0].text}
    content: list[Wire] = []
    for part in parts:
        content += _claude_part(part, frame, marks)
    return {"role": message.role, "content": content}


def _claude_part(part: Part, frame: Frame, marks: Marks) -> list[Wire]:
    if part.kind == "call":
        return [{"type": "tool_use", "id": part.id, "name": part.name, "input": part.arguments}]
    if part.kind == "result":
        return [_claude_result(part)]
    if part.kind == "thought":
        seal = f"{part.tag}{SEAL}"
        if part.shape == "sealed":
            return [{"type": "redacted_thinking", "data": seal}]
        signed = {"signature": seal} if frame.signed else {}
        return [{"type": "thinking", "thinking": part.text, **signed}]
    if part.kind == "server":
        name = f"srvtoolu_{part.tag}"
        found = [{"type": "web_search_result", "url": "https://example.org", "title": part.text}]
        return [
            {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": name, "content": found},
        ]
    if part.kind in ("image", "document"):
        return [_claude_image()]
    if part.kind == "odd":
        return [{"type": "container_upload", "file_id": "file_7"}]
    block: Wire = {"type": "text", "text": part.text}
    return [block | {"cache_control": {"type": "ephemeral"}} if marks.wanted(part) else block]


def _claude_image() -> Wire:
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    return {"type": "image", "source": source}


def _claude_result(part: Part) -> Wire:
    block: Wire = {"type": "tool_result", "tool_use_id": part.id}
    text = {"type": "text", "text": part.text}
    if part.shape == "error":
        return {**block, "content": part.text, "is_error": True}
    if part.shape == "none":
        return block
    shapes: dict[str, Any] = {
        "list": [text, {"type": "text", "text": "second part"}],
        "image": [text, _claude_image()],
        "odd": [text, {"type": "tool_reference", "tool_name": "grep"}],
        "empty": [],
    }
    return {**block, "content": shapes.get(part.shape, part.text)}


# --- Bedrock --------------------------------------------------------------------------------------


def bedrock(story: Story, frame: Frame) -> Any:
    """A body of Bedrock Converse, or its list of messages."""
    marks = Marks(frame.odd)
    messages = [
        {
            "role": message.role,
            "content": [block for p in message.parts for block in _bedrock_part(p, frame, marks)],
        }
        for message in story
    ]
    if frame.bare:
        return messages
    body: Wire = {"modelId": frame.model, "messages": messages}
    if frame.system:
        body["system"] = [{"text": frame.system}]
    if frame.tools or not frame.odd:
        specs = [{"toolSpec": {"name": n, "inputSchema": {"json": SCHEMA}}} for n in TOOLS]
        body["toolConfig"] = {"tools": specs}
    if frame.thinking == "enabled":
        thinking = {"type": "enabled", "budget_tokens": 1024}
        body["additionalModelRequestFields"] = {"thinking": thinking}
    return body


_BEDROCK_IMAGE = {"format": "png", "source": {"bytes": PIXEL}}


def _bedrock_part(part: Part, frame: Frame, marks: Marks) -> list[Wire]:
    if part.kind == "call":
        use = {"toolUseId": part.id, "name": part.name, "input": part.arguments}
        return [{"toolUse": use}]
    if part.kind == "result":
        return [{"toolResult": _bedrock_result(part)}]
    if part.kind == "thought":
        if part.shape == "sealed":
            return [{"reasoningContent": {"redactedContent": f"{part.tag}{SEAL}"}}]
        signed = {"signature": f"{part.tag}{SEAL}"} if frame.signed else {}
        return [{"reasoningContent": {"reasoningText": {"text": part.text or "hm", **signed}}}]
    if part.kind == "image":
        return [{"image": dict(_BEDROCK_IMAGE)}]
    if part.kind == "document":
        source = {"bytes": "JVBERi0xLjQK"}
        return [{"document": {"name": "Report", "format": part.shape or "pdf", "source": source}}]
    if part.kind == "odd":
        return [{"guardContent": {"text": {"text": "guarded"}}}]
    if part.kind == "server":
        return [{"text": part.text}]
    point = [{"cachePoint": {"type": "default"}}] if marks.wanted(part) else []
    return [{"text": part.text}, *point]


def _bedrock_result(part: Part) -> Wire:
    text: Wire = {"text": part.text}
    shapes: dict[str, list[Wire]] = {
        "list": [text, {"text": "second part"}],
        "json": [{"json": {"rows": [part.text, 1, None], "ok": True}}],
        "image": [text, {"image": dict(_BEDROCK_IMAGE)}],
        "odd": [{"document": {"name": "R", "format": "csv", "source": {"bytes": "YSxi"}}}],
        "none": [],
        "empty": [],
    }
    result: Wire = {"toolUseId": part.id, "content": shapes.get(part.shape, [text])}
    if part.shape == "error":
        result |= {"status": "error", "content": [text] if part.text else []}
    return result


WRITERS: dict[str, Callable[[Story, Frame], Any]] = {
    "openai-chat": chat,
    "anthropic": claude,
    "bedrock": bedrock,
}
