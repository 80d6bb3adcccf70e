"""How Gemini generateContent is converted.

Takes both spellings of keys, camelCase and snake_case.  A call without a signature is sent with
the placeholder that Google documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from trimtab.formats.engine.parts import NeutralPart, camel
from trimtab.formats.gemini.parts import PART, PARTS
from trimtab.formats.gemini.response import read_response, write_response
from trimtab.formats.neutral import media as medium
from trimtab.formats.neutral.choice_shapes import NAME
from trimtab.formats.neutral.conversion import Conversion
from trimtab.formats.neutral.ids import NameRules
from trimtab.formats.neutral.reader import NeutralReader
from trimtab.formats.neutral.request import MediaPart, Part, ResultItem, ResultPart, TextPart, Tool
from trimtab.formats.neutral.table import ConversionTable, TargetRules
from trimtab.formats.neutral.turn_order import OrderedTurn
from trimtab.formats.neutral.writer import NeutralWriter

SKIP = "skip_thought_signature_validator"
"""Documented for calls that another model made (also used by gemini-cli and vercel/ai)."""
_SKIPS = frozenset((SKIP, "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=",
                    "context_engineering_is_the_way_to_go"))  # fmt: skip
_OPAQUE = frozenset(("args", "response", "parameters", "parametersJsonSchema"))
"""Keys of the user's own objects, whose keys are no words of the format."""


class GeminiReader(NeutralReader):
    """Its spellings, signatures and response objects."""

    def plain(self, tree: Any) -> Any:
        """The request with its keys in camelCase."""
        if isinstance(tree, list):
            return [self.plain(value) for value in tree]
        if not isinstance(tree, dict):
            return tree
        named = ((camel(key), value) for key, value in tree.items())
        return {key: value if key in _OPAQUE else self.plain(value) for key, value in named}

    def part(self, part: NeutralPart, message: Any) -> list[Part]:
        """A part, whose signature no other provider accepts."""
        signature = part.value.get("thoughtSignature")
        if signature and signature not in _SKIPS:
            why = "another provider refuses it"
            self.log.lose((*part.path, "thoughtSignature"), "signature", why)
        return super().part(part, message)

    def lose(self, part: NeutralPart) -> None:
        """Each key of the part is named."""
        self.log.rest(part.value, self.table.quiet, part.path)

    def media(self, part: NeutralPart) -> Iterable[TextPart | MediaPart]:
        self.log.rest(part.value, {part.type, *self.table.quiet}, part.path)
        inner, url = part.payload, ""
        mime = str(inner.get("mimeType") or "application/octet-stream")
        data = medium.base64_of(inner.get("data")) if part.type == "inlineData" else ""
        if part.type == "fileData":
            url = str(inner.get("fileUri"))
        name = str(inner.get("displayName") or "")
        return [MediaPart(medium.kind_of(mime), mime, part.path, data=data, url=url, name=name)]

    def result_value(self, part: NeutralPart) -> tuple[list[ResultItem], bool]:
        """The response object, and the media beside it."""
        items, error = read_response(part.payload, part.path_of(part.row.payload))
        where = (*part.path, "functionResponse", "parts")
        beside = part.value["functionResponse"].get("parts")
        for item in self.parts.read_content(PART, beside, where):
            if item.kind == "media":
                items += self.media(item)
            else:
                self.log.lose(item.path, "part of a result")
        return items, error

    def schema(self, declaration: Any) -> Any:
        """JSON Schema, or an OpenAPI schema."""
        return super().schema(declaration) or _plain(declaration.get("parameters"))


def _plain(schema: Any) -> Any:
    """An OpenAPI schema as JSON Schema: types in lower case (keys of ``properties`` are names)."""
    if not isinstance(schema, dict):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, str):
            out[key] = value.lower()
        elif key == "properties" and isinstance(value, dict):
            out[key] = {name: _plain(inner) for name, inner in value.items()}
        elif key in ("anyOf", "any_of") and isinstance(value, list):
            out["anyOf"] = [_plain(inner) for inner in value]
        else:
            out[key] = _plain(value) if key == "items" else value
    return out


class GeminiWriter(NeutralWriter):
    """Its response objects, and what only models from Gemini 3 on take."""

    @property
    def _is_new(self) -> bool:
        return not self.target.is_of("gemini-1", "gemini-2")

    def model_turn(self, step: OrderedTurn) -> Iterable[Any]:
        """Only the first call of a step has a signature."""
        [message] = super().model_turn(step)
        call = next((part for part in message["parts"] if "functionCall" in part), None)
        if call is not None and self._is_new:
            call["thoughtSignature"] = SKIP
            self.log.notes["calls given the signature that asks for no check"] += 1
        yield message

    def result_content(self, result: ResultPart) -> Any:
        """The response object."""
        return write_response(result, self.log)

    def result(self, result: ResultPart, id: str) -> list[Any]:
        """Media are parts of a result, for older models they are behind it."""
        [out] = super().result(result, id)
        media = [item for item in result.items if isinstance(item, MediaPart)]
        if media and self._is_new:
            written = [(item, self.media(item)) for item in media]
            out["functionResponse"]["parts"] = [value for _, value in written if value]
            for item in (item for item, value in written if not value):
                medium.named(item, self.log)
        elif media:
            for item in media:
                self.log.lose(item.path, f"{item.kind} in a result", "stands behind it")
            self.moved += media
        return [out]

    def media(self, part: MediaPart) -> Any:
        """Data, or the address of a file."""
        if part.data:
            named = {"displayName": part.name} if part.name else {}
            return {"inlineData": {"mimeType": part.mime, "data": part.data, **named}}
        if part.url.startswith(("http:", "https:", "gs:")):
            return {"fileData": {"mimeType": part.mime, "fileUri": part.url}}
        return None

    def strict(self, tool: Tool) -> bool | None:
        """No function is strict."""
        return None


_TOOLS = replace(PARTS.tools, schema=("parametersJsonSchema",))
"""``parameters`` takes only a part of JSON Schema, in spellings of OpenAPI."""

TABLE = ConversionTable(
    replace(PARTS, tools=_TOOLS),
    settings={
        (): {"model": "model"},  # where a library has it; the API has it in the URL
        ("generationConfig",): {
            "maxOutputTokens": "max_output", "temperature": "temperature", "topP": "top_p",
            "topK": "top_k", "stopSequences": "stop", "seed": "seed",
        },
    },
    only_read=frozenset(("model",)),
    head=("systemInstruction", "parts"),
    choices={
        "tool": ({"mode": "ANY", "allowedFunctionNames": [NAME]},),
        "any": ({"mode": "ANY"},),
        "none": ({"mode": "NONE"},),
        "auto": ({"mode": "AUTO"}, {"mode": "VALIDATED"}),
    },
    # names begin with a letter or underscore, 64 chars of letters, digits, ``_.:-`` (API
    # reference, FunctionDeclaration); ids are free
    name_rules=NameRules(names="a-zA-Z0-9_.:-", longest_name=64, first_of_name="a-zA-Z_"),
    rules=TargetRules(begins_with_user=True, ends_with_user=True),
    quiet=frozenset(("thought", "thoughtSignature", "parts", "parameters")),
)  # fmt: skip
CONVERSION = Conversion(TABLE, GeminiReader, GeminiWriter)
