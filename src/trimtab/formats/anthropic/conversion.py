"""How Anthropic Messages is converted.

Thinking is signed by the provider and is never carried over as text.  Calls that the server ran
itself cannot be carried over either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trimtab.formats.anthropic.parts import PARTS
from trimtab.formats.engine.parts import NeutralPart
from trimtab.formats.neutral import media as medium
from trimtab.formats.neutral.choice_shapes import NAME
from trimtab.formats.neutral.conversion import Conversion
from trimtab.formats.neutral.ids import NAMES, NameRules
from trimtab.formats.neutral.reader import NeutralReader
from trimtab.formats.neutral.request import MediaPart, Setting, TextPart, ToolChoice
from trimtab.formats.neutral.table import ConversionTable, TargetRules
from trimtab.formats.neutral.writer import NeutralWriter

_ALONE = "disable_parallel_tool_use"


class AnthropicReader(NeutralReader):
    """Its sources of media, and the setting that its tool choice holds."""

    def media(self, part: NeutralPart) -> Iterable[TextPart | MediaPart]:
        """The medium; a document that consists of blocks is read as its texts."""
        self.log.rest(part.value, ("type", "source", "title", "cache_control"), part.path)
        source, kind, name = part.payload or {}, part.type, str(part.value.get("title") or "")
        mime, how = str(source.get("media_type") or ""), source.get("type")
        if how == "content":
            self.log.lose(part.path, "document of blocks", "its texts were carried")
            where = (*part.path, "source", "content")
            inner = self.parts.read_content(self.table.content, source.get("content"), where)
            parts = [one for item in inner for one in self.part(item, {})]
            return [one for one in parts if isinstance(one, (TextPart, MediaPart))]
        if how == "url":
            return [medium.from_url(str(source.get("url")), part.path, kind, name=name)]
        data = file = ""
        if how == "base64":
            data, mime = medium.base64_of(source.get("data")), mime or "image/png"
        elif how == "text":
            data, mime = medium.text_data(str(source.get("data") or "")), "text/plain"
        else:
            file = f"anthropic:{source.get('file_id')}"
            mime = mime or ("image/png" if kind == "image" else "application/pdf")
        return [MediaPart(kind, mime, part.path, data=data, file=file, name=name)]  # type: ignore[arg-type]

    def declaration(self, tool: Any) -> Any:
        """Tools of the server have no schema."""
        return tool if "input_schema" in tool else None

    def settings(self, body: Any) -> dict[str, Setting]:
        """The parameters, and whether calls may be made at once."""
        settings, choice = super().settings(body), body.get("tool_choice")
        if isinstance(choice, dict) and isinstance(choice.get(_ALONE), bool):
            settings["parallel"] = Setting(not choice[_ALONE], ("tool_choice", _ALONE))
        return settings


class AnthropicWriter(NeutralWriter):
    """Its sources of media, and the setting that its tool choice holds."""

    def rules(self) -> TargetRules:
        """Models before 4.6 accept a conversation whose last message is the model's."""
        target = self.target
        ends = target.model is not None and not target.is_of(*_PREFILLED)
        return self.table.rules._replace(ends_with_user=ends)

    def media(self, part: MediaPart) -> Any:
        """An image or a document."""
        owner, _, stored = part.file.partition(":")
        source: dict[str, str] | None = None
        if part.kind not in ("image", "document"):
            return None
        if part.url.startswith(("http:", "https:")):
            source = {"type": "url", "url": part.url}
        elif owner == "anthropic":
            source = {"type": "file", "file_id": stored}
        elif part.mime == "text/plain" and (text := medium.data_text(part.data)) is not None:
            source = {"type": "text", "media_type": "text/plain", "data": text}
        elif part.data and (part.mime in medium.IMAGES or part.mime == "application/pdf"):
            source = {"type": "base64", "media_type": part.mime, "data": part.data}
        title = {"title": part.name} if part.name and part.kind == "document" else {}
        return source and {"type": part.kind, "source": source, **title}

    def choice(self, choice: ToolChoice | None) -> Any:
        """The choice, and whether calls may be made at once."""
        parallel = self.neutral.settings.get("parallel")
        out = super().choice(choice)
        if parallel is None or parallel.value is not False or (choice and choice.mode == "none"):
            return out
        return {**(out or {"type": "auto"}), _ALONE: True}


_PREFILLED = ("claude-2", "claude-3", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-opus-4-0",
              "claude-opus-4-1", "claude-opus-4-2", "claude-sonnet-4-5", "claude-opus-4-5",
              "claude-haiku-4-5")  # fmt: skip

TABLE = ConversionTable(
    PARTS,
    settings={(): {
        "model": "model", "max_tokens": "max_output", "temperature": "temperature",
        "top_p": "top_p", "top_k": "top_k", "stop_sequences": "stop", "stream": "stream",
    }},
    head=("system",),
    choices={
        "tool": ({"type": "tool", "name": NAME},),
        **{mode: ({"type": mode},) for mode in ("any", "auto", "none")},
    },
    # ids match ``^[a-zA-Z0-9_-]+$`` (quoted refusal), names of tools ``^[a-zA-Z0-9_-]{1,128}$``
    name_rules=NameRules(NAMES, 64, NAMES, 128),
    rules=TargetRules(
        joins_users=True, begins_with_user=True, refuses_blanks=True, takes_marks=True,
        declares_tools=True, max_temperature=1,
        default_output=4096,  # required; every Claude from 3 on can answer that long
    ),
    mixes_results=True,
    plain_text=True,
    quiet=frozenset((_ALONE, "cache_control")),
    usual={"caller": {"type": "direct"}},  # the model made the call itself
)  # fmt: skip
CONVERSION = Conversion(TABLE, AnthropicReader, AnthropicWriter)
