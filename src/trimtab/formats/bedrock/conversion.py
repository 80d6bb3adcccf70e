"""How Bedrock Converse is converted.

Payloads are base64 text, as they go over the wire, never bytes.  Cache points are blocks of their
own; they belong to the block before them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from trimtab.formats.bedrock.format import APART, dialect
from trimtab.formats.bedrock.parts import PARTS
from trimtab.formats.engine.base import payload_digest
from trimtab.formats.engine.parts import NeutralPart
from trimtab.formats.neutral import media as medium
from trimtab.formats.neutral.choice_shapes import NAME
from trimtab.formats.neutral.conversion import Conversion
from trimtab.formats.neutral.ids import NameRules
from trimtab.formats.neutral.payloads import NO_OUTPUT
from trimtab.formats.neutral.reader import NeutralReader
from trimtab.formats.neutral.request import (
    CacheMark,
    JsonPart,
    MediaPart,
    Part,
    ResultPart,
    TextPart,
    Tool,
    ToolChoice,
)
from trimtab.formats.neutral.table import ConversionTable, TargetRules
from trimtab.formats.neutral.turn_order import OrderedTurn
from trimtab.formats.neutral.writer import NeutralWriter
from trimtab.formats.repair.content import BEGIN, GO_ON


class BedrockReader(NeutralReader):
    """Its sources of media, cache points, JSON results and citations."""

    def part(self, part: NeutralPart, message: Any) -> list[Part]:
        """Citations are read as the text that they belong to."""
        if not isinstance(cited := part.value.get("citationsContent"), dict):
            return super().part(part, message)
        why = "the cited text was carried without its sources"
        self.log.lose(part.path, "citations", why)
        where = (*part.path, "citationsContent", "content")
        texts = enumerate(cited.get("content") or ())
        return [TextPart(t["text"], (*where, n, "text")) for n, t in texts if "text" in t]

    def media(self, part: NeutralPart) -> Iterable[TextPart | MediaPart]:
        """The medium, or nothing where its source is none that others have."""
        value, source = part.value[part.type], part.payload or {}
        self.log.rest(value, ("format", "source", "name"), (*part.path, part.type))
        mime = medium.MIME.get(str(value.get("format")), "application/octet-stream")
        data = url = ""
        if "bytes" in source:
            data = medium.base64_of(source["bytes"])
        elif "text" in source:
            data, mime = medium.text_data(source["text"]), "text/plain"
        elif "s3Location" in source:
            url = str(source["s3Location"].get("uri"))
        else:
            self.log.lose(part.path, f"{part.type} of blocks")
            return []
        name, kind = str(value.get("name") or ""), part.type
        return [MediaPart(kind, mime, part.path, data=data, url=url, name=name)]  # type: ignore[arg-type]

    def result_item(self, part: NeutralPart) -> JsonPart:
        """An item may be JSON here."""
        if "json" in part.value:
            return JsonPart(part.value["json"], (*part.path, "json"))
        return super().result_item(part)

    def mark(self, value: Any) -> CacheMark:
        """A block or a tool that is a cache point."""
        if not isinstance(value, dict) or "cachePoint" not in value:
            return None
        return str((value["cachePoint"] or {}).get("ttl") or "")


class BedrockWriter(NeutralWriter):
    """Cache points as blocks of their own, names of documents, and words apart from tools."""

    def model_turn(self, step: OrderedTurn) -> Iterable[Any]:
        """One message, or three for models that refuse words and tools in one."""
        return self._apart(*super().model_turn(step))

    def user_message(self, parts: Iterable[Part]) -> Iterable[Any]:
        """The same for the user's."""
        return self._apart(*super().user_message(parts))

    def _apart(self, message: Any) -> Iterator[Any]:
        tools: list[Any] = []
        words: list[Any] = []
        last = words
        for block in message["content"]:
            if "cachePoint" not in block:
                last = tools if block.keys() & {"toolUse", "toolResult"} else words
            last.append(block)
        if not (tools and words) or dialect(self.target.model) not in APART:
            yield message
            return
        self.log.notes["words and tool blocks told apart, which this model demands"] += 1
        first, second = {**message, "content": words}, {**message, "content": tools}
        if message["role"] == "assistant":
            yield from (first, self.message("user", [self.text(GO_ON)]), second)
        else:
            yield from (second, self.message("assistant", [self.text(BEGIN)]), first)

    def content(self, parts: Iterable[Part]) -> Any:
        """ "A document must be sent together with a text" (API reference, DocumentBlock)."""
        blocks = super().content(parts)
        documents = any("document" in block for block in blocks)
        if documents and not any("text" in block for block in blocks):
            self.log.notes["a text was added next to a document, which Converse demands"] += 1
            blocks.append(self.text("(document)"))
        return blocks

    def marked(self, value: Any, mark: CacheMark) -> list[Any]:
        """The block and its cache point."""
        if mark is None:
            return [value]
        return [value, {"cachePoint": {"type": "default", **({"ttl": mark} if mark else {})}}]

    def result_content(self, result: ResultPart) -> Any:
        """Blocks, and never none."""
        blocks: list[Any] = []
        for item in result.items:
            if isinstance(item, JsonPart):
                blocks.append({"json": item.value})
            elif isinstance(item, MediaPart) or item.text.strip():
                blocks += self.values(item._replace(mark=None))
            elif item.text:
                self.log.lose(item.path, "blank text", "a text of white space alone is refused")
        if not blocks:
            self.log.notes[f"empty tool results given the text {NO_OUTPUT!r}"] += 1
        return blocks or [self.text(NO_OUTPUT)]

    def media(self, part: MediaPart) -> Any:
        """An image, a document or a film, by its bytes or in S3."""
        form = medium.BEDROCK.get(part.mime)
        source: Any = None
        if part.data:
            source = {"bytes": part.data}
        elif part.url.startswith("s3:"):
            source = {"s3Location": {"uri": part.url}}
        if form is None or medium.kind_of(part.mime) != part.kind or source is None:
            return None
        out: dict[str, Any] = {"format": form}
        if part.kind == "document":
            # name: 1–200 of letters, digits, single spaces, hyphens, brackets (API reference)
            name = _SPACES.sub(" ", _ODD_NAME.sub("-", part.name))[:200].strip()
            if part.name and name != part.name:
                self.log.lose(part.path, "name", f"spelled {name!r} here")
            out["name"] = name or f"document-{payload_digest(part.data or part.url)[:8]}"
        return {part.kind: {**out, "source": source}}

    def tool(self, tool: Tool) -> Any:
        """A specification, whose description must not be blank."""
        about = tool.description if tool.description.strip() else ""
        return super().tool(tool._replace(description=about))

    def choice(self, choice: ToolChoice | None) -> Any:
        """There is no shape that forbids calls."""
        if choice is not None and choice.mode == "none":
            self.log.lose(choice.path, "tool choice", "Converse cannot forbid calls")
            return None
        return super().choice(choice)


_ODD_NAME = re.compile(r"[^a-zA-Z0-9\s()\[\]-]+")
_SPACES = re.compile(r"\s{2,}")

TABLE = ConversionTable(
    PARTS,
    settings={
        (): {"modelId": "model"},
        ("inferenceConfig",): {
            "maxTokens": "max_output", "temperature": "temperature", "topP": "top_p",
            "stopSequences": "stop",
        },
    },
    head=("system",),
    choices={"tool": ({"tool": {"name": NAME}},), "any": ({"any": {}},), "auto": ({"auto": {}},)},
    # toolUseId 1–64 of ``[a-zA-Z0-9_.:-]``, tool names 1–64 of ``[a-zA-Z0-9_-]`` (botocore 1.44.5)
    name_rules=NameRules("a-zA-Z0-9_.:-", 64),
    rules=TargetRules(
        joins_users=True, begins_with_user=True, ends_with_user=True, refuses_blanks=True,
        takes_marks=True, declares_tools=True, declares_always=True, unique_ids=True,
        max_temperature=1,
    ),
    mixes_results=True,
)  # fmt: skip
CONVERSION = Conversion(TABLE, BedrockReader, BedrockWriter)
