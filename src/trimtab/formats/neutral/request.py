"""The neutral request that conversions go through: turns, parts, tools and settings.

Every value carries its path in the source.  ``ConversionLog`` lists losses and notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from trimtab.jsontext.paths import Path

Role = Literal["system", "user", "assistant"]
CacheMark = str | None
"""A cache breakpoint behind a part: its lifetime ("5m", "1h", "" for the provider's own), or None
where there is none."""


class Loss(NamedTuple):
    """One thing that could not be carried, or only in another form.

    ``path`` is its place in the request that was given, ``what`` it is, ``why`` says what became
    of it.
    """

    path: Path
    what: str
    why: str


@dataclass
class ConversionLog:
    """What a conversion reports: losses with their places, notes with their counts."""

    to: str
    losses: list[Loss] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    repeated: dict[str, str] = field(default_factory=dict)
    """New id → the id that was given, of calls whose id another call had already."""

    def lose(self, path: Path, what: str, why: str = "") -> None:
        """List one loss; without a reason, that the target has no place for it."""
        self.losses.append(Loss(path, what, why or f"{self.to} has no place for it"))

    def rest(self, source: Any, known_keys: Container[str], path: Path) -> None:
        """List every key of an object that is not a known one and has a value."""
        for key, value in source.items():
            if key not in known_keys and value not in (None, "", [], {}):
                self.lose((*path, key), key)


class TextPart(NamedTuple):
    """A text of a speaker, or of a tool."""

    text: str
    path: Path
    mark: CacheMark = None


class JsonPart(NamedTuple):
    """A JSON value in a tool result."""

    value: Any
    path: Path


class MediaPart(NamedTuple):
    """An image, document, sound or film: ``data`` in base64, or a ``url``, or a stored ``file``
    ("openai:file-1": whose, and its id)."""

    kind: Literal["image", "document", "audio", "video"]
    mime: str
    path: Path
    data: str = ""
    url: str = ""
    file: str = ""
    name: str = ""
    mark: CacheMark = None


ResultItem = TextPart | JsonPart | MediaPart


class CallPart(NamedTuple):
    """A tool call.  ``arguments`` is an object, or the text of a ``custom`` (free-form) tool."""

    id: str
    name: str
    arguments: Any
    path: Path
    custom: bool = False
    mark: CacheMark = None


class ResultPart(NamedTuple):
    """The result of a tool call; ``name`` is the tool's where the source has it."""

    id: str
    name: str
    items: tuple[ResultItem, ...]
    path: Path
    error: bool = False
    mark: CacheMark = None


class ReasoningPart(NamedTuple):
    """Thinking, readable or encrypted."""

    text: str
    path: Path
    sealed: bool = True


Part = TextPart | MediaPart | CallPart | ResultPart | ReasoningPart


class NeutralTurn(NamedTuple):
    """One message of one speaker; ``name`` is the role as the source spells it (developer)."""

    role: Role
    parts: tuple[Part, ...]
    path: Path
    name: str = ""


class Tool(NamedTuple):
    """A declared tool.  ``schema`` is JSON Schema, None where the source has none."""

    name: str
    description: str
    schema: Any
    path: Path
    strict: bool | None = None
    custom: Any = None
    """The declaration of a free-form tool as it stood, for targets that have them."""
    mark: CacheMark = None


class ToolChoice(NamedTuple):
    """Which tool has to be called: ``mode`` "tool" names one, "any" leaves it open."""

    mode: Literal["auto", "none", "any", "tool"]
    path: Path
    name: str = ""


class Setting(NamedTuple):
    """The value of a parameter and where it stood."""

    value: Any
    path: Path


@dataclass(frozen=True)
class NeutralRequest:
    """One request, read.  ``settings`` by our names: model, max_output, temperature, top_p, top_k,
    stop, stream, seed, parallel (whether several calls may be made at once)."""

    turns: tuple[NeutralTurn, ...]
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice | None = None
    settings: Mapping[str, Setting] = field(default_factory=dict)
    bare: bool = False

    @property
    def calls(self) -> tuple[CallPart, ...]:
        """Every tool call, in order."""
        return tuple(p for turn in self.turns for p in turn.parts if isinstance(p, CallPart))

    @property
    def has_tool_blocks(self) -> bool:
        """Whether there is any call or result."""
        return any(isinstance(p, (CallPart, ResultPart)) for turn in self.turns for p in turn.parts)
