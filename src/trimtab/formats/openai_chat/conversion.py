"""How OpenAI Chat Completions is converted, with the keys of other servers that speak it.

It has no error flag and no images in tool results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from trimtab.formats.engine.parts import NeutralPart, PartRow
from trimtab.formats.neutral import media as medium
from trimtab.formats.neutral.choice_shapes import NAME
from trimtab.formats.neutral.conversion import Conversion
from trimtab.formats.neutral.ids import NameRules
from trimtab.formats.neutral.reader import NeutralReader
from trimtab.formats.neutral.request import (
    CallPart,
    MediaPart,
    Part,
    ReasoningPart,
    ResultPart,
    TextPart,
    Tool,
)
from trimtab.formats.neutral.table import ConversionTable, TargetRules
from trimtab.formats.neutral.turn_order import OrderedTurn, calls_last
from trimtab.formats.neutral.writer import NeutralWriter
from trimtab.formats.openai_chat.parts import CONTENT, PARTS
from trimtab.jsontext import paths


class ChatReader(NeutralReader):
    """Its media, flags of other servers and spellings of tools."""

    def part(self, part: NeutralPart, message: Any) -> list[Part]:
        """A part; Anthropic's blocks of calls and reasoning are no words of this format."""
        if part.kind in ("call", "result", "reasoning") and part.type in CONTENT:
            self.lose(part)
            return []
        return super().part(part, message)

    def failed(self, part: NeutralPart) -> bool:
        """Other servers and libraries have flags."""
        return part.failed or part.value.get("is_error") is True

    def media(self, part: NeutralPart) -> Iterable[TextPart | MediaPart]:
        kind, value, path = part.type, part.value.get(part.type), part.path
        if kind == "image_url":
            if isinstance(value, dict):
                self.list_unknown(value, {"url"}, (*path, kind))
                value = value.get("url")
            return [medium.from_url(str(value), path, "image")]
        if kind == "file" and isinstance(value, dict):
            name, data = str(value.get("filename") or ""), str(value.get("file_data") or "")
            if data[:5].lower() == "data:":
                return [medium.from_url(data, path, "document", name=name)]
            mime = medium.guess(name, "application/pdf") if data else "application/pdf"
            file = "" if data else f"openai:{value.get('file_id')}"
            data = medium.base64_of(data)
            return [MediaPart("document", mime, path, data=data, file=file, name=name)]
        if kind == "input_audio" and isinstance(value, dict):
            mime = medium.MIME.get(str(value.get("format")), "audio/wav")
            return [MediaPart("audio", mime, path, data=medium.base64_of(value.get("data")))]
        self.lose(part)
        return []

    def declaration(self, tool: Any) -> Any:
        """A function, a free-form tool, or a function in the list of old."""
        return tool.get("function") or tool.get("custom") or (None if "type" in tool else tool)

    def free_form(self, tool: Any, declaration: Any) -> Any:
        """A free-form tool with its grammar spelled flat, as the newer API has it."""
        if tool.get("type") != "custom":
            return None
        form = declaration.get("format")
        if isinstance(form, dict) and isinstance(form.get("grammar"), dict):
            return {**declaration, "format": {"type": form.get("type"), **form["grammar"]}}
        return declaration


class ChatWriter(NeutralWriter):
    """Its model's messages, results without media, and spellings of tools."""

    def rules(self) -> TargetRules:
        """What models of other providers take."""
        return self.table.rules._replace(
            takes_marks=self.target.is_of("claude"),
            takes_open_reasoning=self.target.is_of("deepseek", "kimi", "moonshot"),
        )

    def model_turn(self, step: OrderedTurn) -> Iterable[Any]:
        """Words, reasoning and calls in one message."""
        others, calls = calls_last(step, self.log)
        words: list[Part] = [
            medium.named(part, self.log) if isinstance(part, MediaPart) else part
            for part in others
            if not isinstance(part, ReasoningPart)
        ]
        message = self.message("assistant", self.content(words) if words else None)
        if thought := [part.text for part in others if isinstance(part, ReasoningPart)]:
            message["reasoning_content"] = "\n\n".join(thought)
        if calls:
            message["tool_calls"] = [value for call in calls for value in self.values(call)]
        elif not words:
            message["content"] = ""
        yield message

    def call(self, call: CallPart, id: str, name: str) -> Any:
        """A function's call, or a free-form tool's."""
        if call.custom:
            inner = {"name": name, "input": call.arguments}
            return {"id": id, "type": "custom", "custom": inner}
        inner = {"name": name, "arguments": paths.dump(call.arguments)}
        return {"id": id, "type": "function", "function": inner}

    def result(self, result: ResultPart, id: str) -> list[Any]:
        """A message, whose last text has the cache breakpoint."""
        [message] = super().result(result._replace(mark=None), id)
        content = message["content"]
        if not content and any(isinstance(item, MediaPart) for item in result.items):
            message["content"] = "[see the next user message]"
        elif content and result.mark is not None:
            texts = [self.text(content)] if isinstance(content, str) else content
            message["content"] = [*texts[:-1], *self.marked(texts[-1], result.mark)]
        return [message]

    def result_item(self, result: ResultPart, item: Any) -> Iterator[Any]:
        """Media are moved behind the results."""
        if not isinstance(item, MediaPart):
            yield from super().result_item(result, item)
            return
        why = "moved behind the results of its turn, into a user message"
        self.log.lose(item.path, f"{item.kind} in a result", why)
        label = f"[{item.kind} of the result of {result.name or 'a tool'}]"
        self.moved += [TextPart(label, item.path), item]

    def media(self, part: MediaPart) -> Any:
        """An image, a document or a sound."""
        owner, _, stored = part.file.partition(":")
        if part.kind == "image" and (part.data or part.url.startswith(("http:", "https:"))):
            return {"type": "image_url", "image_url": {"url": medium.data_url(part)}}
        if part.kind == "document" and (part.data or owner == "openai"):
            named = {"filename": part.name} if part.name else {}
            if part.data:
                return {"type": "file", "file": {"file_data": medium.data_url(part), **named}}
            return {"type": "file", "file": {"file_id": stored, **named}}
        if part.kind == "audio" and part.data:
            sound = {"data": part.data, "format": medium.BEDROCK.get(part.mime, "wav")}
            return {"type": "input_audio", "input_audio": sound}
        return None

    def tool(self, tool: Tool) -> Any:
        """A function, or a free-form tool with its grammar in an object of its own."""
        if tool.custom is None:
            return super().tool(tool)
        inner = dict(tool.custom)
        if (form := inner.get("format") or {}).get("type") == "grammar":
            grammar = {key: value for key, value in form.items() if key != "type"}
            inner["format"] = {"type": "grammar", "grammar": grammar}
        return {"type": "custom", "custom": inner}

    def strict(self, tool: Tool) -> bool | None:
        """As the source says."""
        return tool.strict


TABLE = ConversionTable(
    replace(PARTS, parts={"content": CONTENT, "refusal": PartRow("text"), **PARTS.parts}),
    settings={(): {
        "model": "model", "max_completion_tokens": "max_output", "max_tokens": "max_output",
        "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "stop": "stop",
        "stream": "stream", "seed": "seed", "parallel_tool_calls": "parallel",
    }},
    only_read=frozenset(("top_k",)),
    more_tools=(("functions",),),
    more_choices=(("function_call",),),
    choices={
        "tool": (
            {"type": "function", "function": {"name": NAME}},
            *({"function": {"name": NAME}}, {"custom": {"name": NAME}}, {"name": NAME}),
        ),
        "any": ("required", "any"),
        "auto": ("auto",),
        "none": ("none",),
    },
    # "string too long … maximum length 40" (quoted refusal)
    name_rules=NameRules(longest_id=40),
    rules=TargetRules(late_system=True, takes_custom=True),
    plain_text=True,
    quiet=frozenset(
        ("tool_call_id", "is_error", "status", "index", "cache_control", "type")
    ),
    usual={"detail": "auto"},
)  # fmt: skip
CONVERSION = Conversion(TABLE, ChatReader, ChatWriter)
