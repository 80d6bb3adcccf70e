"""How Gemini Interactions is converted.

What Google holds or ran itself (earlier interactions, searches, code execution) and encrypted
thoughts cannot be carried over and are listed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.formats.engine.parts import NeutralPart
from trimtab.formats.gemini import conversion as gemini
from trimtab.formats.gemini_interactions.parts import PARTS
from trimtab.formats.neutral import media as medium
from trimtab.formats.neutral.choice_shapes import NAME
from trimtab.formats.neutral.conversion import Conversion
from trimtab.formats.neutral.reader import NeutralReader
from trimtab.formats.neutral.request import (
    CallPart,
    JsonPart,
    MediaPart,
    Part,
    ResultPart,
    TextPart,
    Tool,
)
from trimtab.formats.neutral.table import ConversionTable
from trimtab.formats.neutral.turn_order import OrderedTurn
from trimtab.formats.neutral.writer import NeutralWriter

_TYPES = {
    "image": "image/png", "audio": "audio/wav", "video": "video/mp4", "document": "application/pdf",
}  # fmt: skip
"""What media are taken for without a ``mime_type``."""


class InteractionsReader(NeutralReader):
    """Its media, and what Google ran."""

    def lose(self, part: NeutralPart) -> None:
        """Google ran every step that is not known."""
        why = "" if "content" in part.path else "Google ran it"
        self.log.lose(part.path, part.type, why)

    def media(self, part: NeutralPart) -> Iterable[TextPart | MediaPart]:
        value = part.value
        self.log.rest(value, ("type", "text", "data", "uri", "mime_type"), part.path)
        mime = str(value.get("mime_type") or _TYPES[part.type])
        data, url = medium.base64_of(value.get("data") or ""), str(value.get("uri") or "")
        return [MediaPart(medium.kind_of(mime), mime, part.path, data=data, url=url)]

    def declaration(self, tool: Any) -> Any:
        """A function."""
        return tool if tool.get("type") == "function" else None


class InteractionsWriter(NeutralWriter):
    """Its steps: words of one speaker, calls and results."""

    def head(self, turns: Any) -> tuple[Any, Any]:
        """One text."""
        return "\n\n".join(part.text for turn in turns for part in turn.parts), ()

    def message(self, role: str, content: Any) -> Any:
        """A step that holds words."""
        return {"type": "model_output" if role == "assistant" else "user_input", "content": content}

    def model_turn(self, step: OrderedTurn) -> Iterable[Any]:
        """Calls are steps of their own, between the words."""
        words: list[Part] = []
        for part in step.parts:
            if not isinstance(part, CallPart):
                words.append(part)
                continue
            yield from self._words(words)
            words = []
            yield from self.values(part)
        yield from self._words(words)

    def _words(self, words: list[Part]) -> Iterable[Any]:
        return [self.message("assistant", self.content(words))] if words else []

    def result_content(self, result: ResultPart) -> Any:
        """An object, a text or a list."""
        item = result.items[0] if len(result.items) == 1 else None
        if isinstance(item, JsonPart) and isinstance(item.value, dict):
            return item.value
        if item is None or isinstance(item, TextPart):
            return super().result_content(result)
        return self.result_values(result)

    def media(self, part: MediaPart) -> Any:
        """Data, or an address."""
        if part.data:
            return {"type": part.kind, "data": part.data, "mime_type": part.mime}
        if part.url.startswith(("http:", "https:", "gs:")):
            return {"type": part.kind, "uri": part.url, "mime_type": part.mime}
        return None

    def strict(self, tool: Tool) -> bool | None:
        """No function is strict."""
        return None


TABLE = ConversionTable(
    PARTS,
    settings={
        (): {"model": "model", "stream": "stream"},
        ("generation_config",): {
            "max_output_tokens": "max_output", "temperature": "temperature", "top_p": "top_p",
            "stop_sequences": "stop", "seed": "seed",
        },
    },
    head=("system_instruction",),
    choices={
        "tool": (
            {"allowed_tools": {"mode": "any", "tools": [NAME]}},
            {"allowed_tools": {"tools": [NAME]}},
        ),
        **{mode: (mode,) for mode in ("any", "auto", "none")},
    },
    name_rules=gemini.TABLE.name_rules,
    rules=gemini.TABLE.rules,
)  # fmt: skip
CONVERSION = Conversion(TABLE, InteractionsReader, InteractionsWriter)
