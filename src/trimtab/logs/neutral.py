"""Segments of agents whose log has a format of its own: as messages for the model that they used.

Claude's are Anthropic messages, all others chat completions, the format that every provider takes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from trimtab.logs.segments import LogSegment
from trimtab.pricing.call_usage import CallUsage

_REASONING_FIELDS = {
    "reasoning_content": "reasoning_content", "reasoning": "reasoning",
    "reasoning_text": "reasoning_text", "reasoning_details": "reasoning_content",
}  # fmt: skip
"""Field that the reasoning came in → the field that takes its text (``reasoning_details`` is a list
of objects, of which logs keep the text)."""


def format_for(model: str | None) -> str:
    """The format of a conversation with this model."""
    return "anthropic" if "claude" in (model or "").lower() else "openai-chat"


class LoggedCall(NamedTuple):
    """A tool call of the model."""

    id: str
    name: str
    arguments: Any


class LoggedReasoning(NamedTuple):
    """What the model thought; ``signature``: what its provider needs to take it back.  For chat
    completions that is the name of the field which has it."""

    text: str
    signature: str


class LoggedImage(NamedTuple):
    """An image: its media type, and its data in base64."""

    media: str
    data: str


Parts = Sequence[str | LoggedImage]


@dataclass
class NeutralSegment(LogSegment):
    """A segment that writes texts, calls and results as messages of ``format``."""

    format: str = "openai-chat"

    def say(self, parts: Parts, time: float | None) -> None:
        """A message of the user."""
        if parts:
            self.add({"role": "user", "content": self._content(parts)}, time)

    def answer(
        self, texts: Sequence[str], calls: Sequence[LoggedCall], time: float | None, *,
        usage: CallUsage | None = None, reasoning: Sequence[LoggedReasoning] = (),
    ) -> None:  # fmt: skip
        """A message of the model; nothing if it is empty."""
        texts = [text for text in texts if text]
        if not texts and not calls:
            return
        if self.format == "anthropic":
            content: list[Any] = [
                {"type": "thinking", "thinking": thought.text, "signature": thought.signature}
                for thought in reasoning
                if thought.signature
            ]
            content += [{"type": "text", "text": text} for text in texts]
            content += [
                {"type": "tool_use", "id": call.id, "name": call.name,
                 "input": call.arguments if isinstance(call.arguments, Mapping) else {}}
                for call in calls
            ]  # fmt: skip
            self.add({"role": "assistant", "content": content}, time, usage)
            return
        message: dict[str, Any] = {"role": "assistant", "content": "\n".join(texts) or None}
        for thought in reasoning:
            if field := _REASONING_FIELDS.get(thought.signature):
                message[field] = message.get(field, "") + thought.text
        if calls:
            message["tool_calls"] = [
                {"id": call.id, "type": "function",
                 "function": {"name": call.name, "arguments": _as_text(call.arguments)}}
                for call in calls
            ]  # fmt: skip
        self.add(message, time, usage)

    def result(self, call: str, parts: Parts, time: float | None, *, failed: bool = False) -> None:
        """The result of a call, right behind the answer with the call: the user may have spoken
        while the tool ran.  Anthropic takes all results of an answer in one message; a chat
        completion takes no image in a result: it follows as the user's."""
        images = [part for part in parts if isinstance(part, LoggedImage)]
        place = self._behind(call)
        if self.format != "anthropic":
            text = "\n".join(part for part in parts if isinstance(part, str))
            self._insert(place, {"role": "tool", "tool_call_id": call, "content": text}, time)
            self.say(images, time)
            return
        block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call}
        block["content"] = self._content(parts) if images else "\n".join(map(str, parts))
        if failed:
            block["is_error"] = True
        if place and _is_results(self.items[place - 1]):
            self.items[place - 1]["content"].append(block)
        else:
            self._insert(place, {"role": "user", "content": [block]}, time)

    def _behind(self, call: str) -> int:
        """The place behind the answer with a call and its results so far; the end if there is
        none."""
        for number in range(len(self.items) - 1, -1, -1):
            if call in _calls_of(self.items[number]):
                number += 1
                while number < len(self.items) and _is_results(self.items[number]):
                    number += 1
                return number
        return len(self.items)

    def _insert(self, place: int, item: Any, time: float | None) -> None:
        self.items.insert(place, item)
        self.times.insert(place, time)
        self.usages.insert(place, None)

    def _content(self, parts: Parts) -> Any:
        if len(parts) == 1 and isinstance(parts[0], str):
            return parts[0]
        return [self._part(part) for part in parts]

    def _part(self, part: str | LoggedImage) -> dict[str, Any]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        if self.format == "anthropic":
            source = {"type": "base64", "media_type": part.media, "data": part.data}
            return {"type": "image", "source": source}
        return {"type": "image_url", "image_url": {"url": f"data:{part.media};base64,{part.data}"}}


def parts_of(content: Any) -> list[str | LoggedImage]:
    """Texts and images of a content that is a text or a list of blocks as MCP has them."""
    if isinstance(content, str):
        return [content] if content else []
    parts: list[str | LoggedImage] = []
    for block in content if isinstance(content, list) else ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                parts.append(text)
            case {"type": "image", "data": str(data), "mimeType": str(media)}:
                parts.append(LoggedImage(media, data))
            case {"type": "resource", "resource": {"text": str(text)}}:
                parts.append(text)
    return parts


def _calls_of(message: Mapping[str, Any]) -> list[str]:
    calls = [call["id"] for call in message.get("tool_calls") or ()]
    content = message["content"] if message["role"] == "assistant" else ()
    blocks = content if isinstance(content, list) else ()
    return calls + [block["id"] for block in blocks if block["type"] == "tool_use"]


def _is_results(message: Mapping[str, Any]) -> bool:
    content = message["content"]
    blocks = content if message["role"] == "user" and isinstance(content, list) else ()
    return message["role"] == "tool" or any(block["type"] == "tool_result" for block in blocks)


def _as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
