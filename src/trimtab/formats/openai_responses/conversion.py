"""How OpenAI Responses is converted.

What the server holds or ran itself (stored conversations, searches, compaction) cannot be carried
over and is listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from trimtab.formats.engine.parts import NeutralPart
from trimtab.formats.neutral import media as medium
from trimtab.formats.neutral.choice_shapes import NAME
from trimtab.formats.neutral.conversion import Conversion
from trimtab.formats.neutral.ids import NameRules
from trimtab.formats.neutral.payloads import arguments_of
from trimtab.formats.neutral.reader import NeutralReader
from trimtab.formats.neutral.request import (
    CacheMark,
    CallPart,
    JsonPart,
    MediaPart,
    NeutralTurn,
    Part,
    ResultItem,
    ResultPart,
    TextPart,
    Tool,
)
from trimtab.formats.neutral.table import ConversionTable, TargetRules
from trimtab.formats.neutral.turn_order import OrderedTurn, calls_last
from trimtab.formats.neutral.writer import NeutralWriter
from trimtab.formats.openai_responses.item_rules import STRICT_ORDER
from trimtab.formats.openai_responses.parts import PARTS

_FUNCTIONS = ("function_call", "custom_tool_call")
_HELD = dict.fromkeys(("item_reference", "compaction"), "it is on the server")


class ResponsesReader(NeutralReader):
    """Its media, and the tools of OpenAI that the client runs."""

    def part(self, part: NeutralPart, message: Any) -> list[Part]:
        """Shells, patches, the computer: a call of a tool of that name, and its result."""
        if part.kind not in ("call", "result") or part.type.startswith(_FUNCTIONS):
            return super().part(part, message)
        name = part.type.removesuffix("_output").removesuffix("_call")
        call_id = part.id or (part.value.get("id") if name == "local_shell" else None)
        if not call_id:
            self.lose(part)
            return []
        self.log.lose(part.path, part.type, f"became a call of a tool {name!r}, or its result")
        fields = {key: value for key, value in part.value.items() if key not in _ITEM}
        if part.kind == "call":
            arguments = arguments_of(fields.get("arguments", fields), part.path, self.log)
            return [CallPart(str(call_id), name, arguments, part.path)]
        if "output" in fields:
            return [self.result(part)._replace(id=str(call_id))]
        return [ResultPart(str(call_id), name, (JsonPart(fields, part.path),), part.path)]

    def lose(self, part: NeutralPart) -> None:
        """What the server holds."""
        self.log.lose(part.path, part.type, _HELD.get(part.type, ""))

    def reasoning(self, part: NeutralPart) -> Any:
        """Open models have their reasoning as content."""
        return part.payload or part.value.get("content")

    def failed(self, part: NeutralPart) -> bool:
        """The state of a stored item says nothing to another provider."""
        return False

    def mark(self, value: Any) -> CacheMark:
        """Breakpoints of this format fit no other."""
        return None

    def result_value(self, part: NeutralPart) -> tuple[list[ResultItem], bool]:
        """A screenshot, or JSON."""
        output, where = part.payload, part.path_of(part.row.payload)
        if isinstance(output, dict) and output.get("type") == "computer_screenshot":
            return [medium.from_url(str(output.get("image_url")), where, "image")], False
        return super().result_value(part)

    def media(self, part: NeutralPart) -> Iterable[TextPart | MediaPart]:
        value, path = part.value, part.path
        self.list_unknown(value, _MEDIA, path)
        file = f"openai:{value['file_id']}" if value.get("file_id") else ""
        if part.type == "input_image":
            if value.get("image_url"):
                return [medium.from_url(value["image_url"], path, "image")]
            return [MediaPart("image", "image/png", path, file=file)]
        if part.type != "input_file":
            self.lose(part)
            return []
        name, data = str(value.get("filename") or ""), str(value.get("file_data") or "")
        url = data if data[:5].lower() == "data:" else value.get("file_url")
        if url:
            return [medium.from_url(url, path, "document", name=name)]
        mime = medium.guess(name, "application/pdf")
        return [
            MediaPart("document", mime, path, data=medium.base64_of(data), file=file, name=name)
        ]

    def declaration(self, tool: Any) -> Any:
        """A function, or a free-form tool."""
        return tool if tool.get("type") in ("function", "custom") else None

    def free_form(self, tool: Any, declaration: Any) -> Any:
        """The declaration without its type."""
        if tool["type"] != "custom":
            return None
        return {key: value for key, value in tool.items() if key != "type"}


class ResponsesWriter(NeutralWriter):
    """Its items, and the instructions."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._custom = set[str]()  # ids of calls of free-form tools

    def head(self, turns: Sequence[NeutralTurn]) -> tuple[Any, Sequence[NeutralTurn]]:
        """A head of one text becomes the instructions."""
        texts = [part.text for part in turns[0].parts] if len(turns) == 1 else []  # type: ignore[union-attr]
        return (texts[0], ()) if len(texts) == 1 and not self.neutral.bare else (None, turns)

    def message(self, role: str, content: Any) -> Any:
        """An item that holds parts."""
        return {"type": "message", "role": role, "content": content}

    def model_turn(self, step: OrderedTurn) -> Iterable[Any]:
        """Each text and each call is an item."""
        parts = step.parts
        if self.target.is_of(STRICT_ORDER):  # it takes nothing between a call and its output
            others, calls = calls_last(step, self.log)
            parts = [*others, *calls]
        for part in parts:
            if isinstance(part, MediaPart):
                part = medium.named(part, self.log)
            if isinstance(part, CallPart):
                yield from self.values(part)
            elif isinstance(part, TextPart):
                # a plain string: the API's types have lists of output parts only for stored ones
                yield self.message("assistant", part.text)

    def result(self, result: ResultPart, id: str) -> list[Any]:
        """The output of a function or of a free-form tool."""
        [out] = super().result(result, id)
        return [{**out, "type": "custom_tool_call_output"} if result.id in self._custom else out]

    def media(self, part: MediaPart) -> Any:
        """An image or a document."""
        owner, _, stored = part.file.partition(":")
        has_address = part.data or part.url.startswith(("http:", "https:"))
        if part.kind == "image" and has_address:
            return {"type": "input_image", "detail": "auto", "image_url": medium.data_url(part)}
        if part.kind == "image" and owner == "openai":
            return {"type": "input_image", "detail": "auto", "file_id": stored}
        if part.kind == "document" and part.data:
            name = part.name or f"document.{medium.BEDROCK.get(part.mime, 'bin')}"
            return {"type": "input_file", "filename": name, "file_data": medium.data_url(part)}
        if part.kind == "document" and has_address:
            return {"type": "input_file", "file_url": part.url}
        if part.kind == "document" and owner == "openai":
            return {"type": "input_file", "file_id": stored}
        return None

    def call(self, call: CallPart, id: str, name: str) -> Any:
        """A function's call, or a free-form tool's."""
        if not call.custom:
            return super().call(call, id, name)
        self._custom.add(call.id)
        item = {"type": "custom_tool_call", "call_id": id, "name": name}
        return {**item, "input": call.arguments}

    def tool(self, tool: Tool) -> Any:
        """A function, or a free-form tool."""
        return super().tool(tool) if tool.custom is None else {"type": "custom", **tool.custom}

    def strict(self, tool: Tool) -> bool | None:
        """On by default here, and off with every other provider."""
        return bool(tool.strict)


_ITEM = frozenset(("type", "role", "content", "id", "status", "phase", "call_id"))
"""Keys that say nothing to another provider: ids and states of stored items among them."""
_MEDIA = frozenset(
    ("type", "image_url", "file_data", "file_url", "file_id", "filename", "input_audio")
)

TABLE = ConversionTable(
    PARTS,
    settings={(): {
        "model": "model", "max_output_tokens": "max_output", "temperature": "temperature",
        "top_p": "top_p", "stream": "stream", "parallel_tool_calls": "parallel",
    }},
    head=("instructions",),
    choices={
        "tool": ({"type": "function", "name": NAME}, {"type": "custom", "name": NAME}),
        "any": ("required",),
        "auto": ("auto",),
        "none": ("none",),
    },
    # call_id at most 64 chars (quoted refusal)
    name_rules=NameRules(longest_id=64),
    rules=TargetRules(late_system=True, takes_custom=True, unique_ids=True),
    quiet=_ITEM | {"logprobs"},
    usual={"detail": "auto"},
)  # fmt: skip
CONVERSION = Conversion(TABLE, ResponsesReader, ResponsesWriter)
