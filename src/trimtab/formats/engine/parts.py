"""Part tables: where a format writes the parts of a message, and one reader of them.

A format's table (``parts.py`` in its folder) has one row for each type of part: its kind, and where
its id, name, payload, error and seal are.
What no table gives (flaws, tokens, what an edit may target) stays in its ``format.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import PartKind, Spelling

Speaker = Literal["system", "user", "assistant", "tool", "other"]


@dataclass(frozen=True, slots=True)
class PartRow:
    """One type of part.  Paths are relative to the part; ``()`` as ``id``, ``name``, ``error`` or
    ``seal``: it has none."""

    kind: PartKind
    id: Path = ()
    """The id by which a call and its result are paired."""
    name: Path = ()
    payload: Path = ()
    """Text, arguments, content of a result, source of a medium; ``()``: the part itself."""
    spelling: Spelling = "json"
    """Of a call's arguments: an object, its JSON as a string, or a free text."""
    error: Path = ()
    failed: tuple[Any, ...] = ()
    """The values at ``error`` that mean failure; none listed: any that is true."""
    seal: Path = ()
    """The signature, or the encrypted content."""
    text: Path = ()
    """Where a plain text goes if not at ``payload``."""
    written: tuple[str, ...] = ("id", "payload", "error")
    """What a result of ours says, in this order; an error without ``failed`` is its text."""
    medium: Literal["", "image", "document", "audio", "video"] = ""
    named: str = ""
    """The name of a part that has none in it."""
    speaker: Literal["", "user", "assistant"] = ""
    """Who alone can say it: the row fits no message of anybody else."""
    when: tuple[Path, Any] | None = None
    """(path, value) that the part must have for this row."""


Rows = Mapping[str, PartRow | tuple[PartRow, ...]]
"""Type (or key) of a part → its row, or variants of it, of which the first that fits is taken.
``"*_result"``: every other type with this end; ``"*"``: all others."""
_TEXT, OTHER = PartRow("text"), PartRow("other")


class NeutralPart(NamedTuple):
    """One part of a message, by its row."""

    kind: PartKind
    path: Path
    """Relative to the message; ``()`` if the message is the part."""
    type: str
    """The format's word for it, as it is spelled: the value of ``type``, or the key."""
    row: PartRow
    value: Any
    """The part itself."""

    @property
    def id(self) -> str:
        """The id that pairs a call and its result; "" if it has none."""
        value = self._get(self.row.id)
        return value if isinstance(value, str) else "" if value is None else paths.dump(value)

    @property
    def name(self) -> str:
        """The tool's name; "" if it has none."""
        return str(self._get(self.row.name) or self.row.named)

    @property
    def payload(self) -> Any:
        """Its text, arguments, content or source; None if there is none."""
        return self._get(self.row.payload) if self.row.payload else self.value

    @property
    def failed(self) -> bool:
        """Whether it is a result that reports an error."""
        value = self._get(self.row.error)
        return value in self.row.failed if self.row.failed else bool(value)

    @property
    def seal(self) -> Any:
        """Its signature or encrypted content; None if there is none."""
        return self._get(self.row.seal)

    def path_of(self, place: Path) -> Path:
        """A path of the row (``part.path_of(part.row.id)``) relative to the message."""
        return (*self.path, *place)

    def _get(self, place: Path) -> Any:
        return value_at(self.value, place) if place else None


@dataclass(frozen=True)
class ToolTable:
    """How a request declares its tools."""

    path: Path = ("tools",)
    """The list of tools."""
    outer: Mapping[str, Any] = field(default_factory=dict)
    """What a function's declaration begins with."""
    within: Path = ()
    """Where its name and description are; a number at the end: one tool holds all functions."""
    schema: Path = ("parameters",)
    after: Mapping[str, Any] = field(default_factory=dict)
    choice: Path = ("tool_choice",)
    """Where a request says whether a tool has to be called."""

    def define(self, name: str, description: str, schema: Any) -> dict[str, Any]:
        """A declaration."""
        inner = put({"name": name, "description": description}, self.schema, schema)
        if self.within:
            return put(self.outer, self.within, inner)  # type: ignore[no-any-return]
        return {**self.outer, **inner, **self.after}

    @property
    def listed(self) -> str:
        """The key under which one tool holds all functions; "" if each is a tool."""
        return str(self.within[0]) if self.within and isinstance(self.within[-1], int) else ""

    def of(self, body: Any) -> list[Any] | None:
        """The list of tools of a request; None where it has none."""
        tools = value_at(body, self.path)
        return tools if isinstance(tools, list) and tools else None

    def names(self, tools: Any) -> list[str]:
        """The names of the declared functions."""
        names = []
        for tool in tools if isinstance(tools, list) else ():
            inner = (
                tool.get(self.within[0], tool) if self.within and isinstance(tool, dict) else tool
            )
            rows = inner if isinstance(inner, list) else [inner]
            names += [str(row.get("name")) for row in rows if isinstance(row, dict)]
        return names


@dataclass(frozen=True)
class PartTable:
    """One format's messages and parts."""

    messages: str
    """The key of the list of messages."""
    roles: Mapping[Any, Speaker]
    """The role of a message, or the type of an item that holds parts → who speaks."""
    parts: Mapping[str, Rows | PartRow]
    """Key of a message → the rows of the parts in its list, or the row of the one part there."""
    call: tuple[str, PartRow]
    """Type and row of a function's call."""
    result: tuple[str, PartRow]
    """Type and row of its result."""
    tools: ToolTable
    by_key: bool = False
    """Whether a part is known by the key that it has, instead of its ``type``."""
    ids_optional: bool = False
    """Whether calls may have no id, so that they are known by name and arguments."""
    items: Rows = field(default_factory=dict)
    """Messages that are one part by themselves."""
    item_by: str = "type"
    """The key that tells which of ``items`` a message is."""
    mark: str = ""
    """The key of a cache breakpoint (where parts are known by key: a part by itself); "" if the
    format has none."""

    def item(self, message: Any) -> PartRow | None:
        """The row of a message that is one part by itself; None if it is not."""
        return row_of(self.items, message.get(self.item_by), message)

    @property
    def content(self) -> str:
        """The key of a message that holds its parts."""
        return next(iter(self.parts))

    @property
    def rows(self) -> Iterator[PartRow]:
        """Every row, of items and of parts."""
        for rows in (self.items, *self.parts.values()):
            yield from _each(rows)

    @property
    def call_keys(self) -> list[str]:
        """Keys of a message that hold calls and nothing else."""
        return [
            key for key, rows in self.parts.items() if {r.kind for r in _each(rows)} == {"call"}
        ]

    @property
    def of_items(self) -> bool:
        """Whether a model's turn is several items in a row, instead of one message."""
        return bool(self.items) and self.item_by == "type"

    def model_message(self, parts: list[Any]) -> dict[str, Any]:
        role = next(role for role, speaker in self.roles.items() if speaker == "assistant")
        return {"role": role, self.content: parts}

    def write_call(self, id: str, name: str, arguments: Any) -> dict[str, Any]:
        """A function's call: a part, or an item; ``arguments`` as the format has them."""
        type, row = self.call
        part: dict[str, Any] = {} if self.by_key else {"type": type}
        if id or not self.ids_optional:
            part = put(part, row.id, id)
        part = put(part, row.name, name)
        return put(part, row.payload, arguments)  # type: ignore[no-any-return]

    def write_result(self, id: Any, name: str, text: str, failed: bool) -> dict[str, Any]:
        """A result with this text: a part, or a message where results are messages."""
        type, row = self.result
        part: dict[str, Any] = {} if self.by_key else {self.item_by: type}
        has_text_error = failed and "error" in row.written and not row.failed
        values = {"name": (row.name, name)}
        values["payload"] = (row.error if has_text_error else row.text or row.payload, text)
        if id or not self.ids_optional:
            values["id"] = (row.id, id)
        if failed and row.failed:
            values["error"] = (row.error, row.failed[0])
        for what in row.written:
            part = put(part, *values[what]) if what in values else part
        return part

    def speaker(self, message: Any) -> Speaker:
        """Who speaks."""
        if (row := self.item(message)) is not None:
            return "tool" if row.kind == "result" else row.speaker or "other"
        type, role = message.get("type"), message.get("role")
        word = type if isinstance(type, str) and type in self.roles else role
        return self.roles.get(word, "other") if isinstance(word, str | None) else "other"

    def read(self, message: Any) -> Iterator[NeutralPart]:
        """The parts of one message, in order; one without a row is of kind "other"."""
        if (row := self.item(message)) is not None:
            yield NeutralPart(row.kind, (), message[self.item_by], row, message)
            return
        speaker = self.speaker(message)
        for key, rows in self.parts.items():
            value = message.get(key)
            if not isinstance(rows, PartRow):
                yield from self.read_content(rows, value, (key,), speaker)
            elif value:
                yield NeutralPart(rows.kind, (key,), key, rows, value)

    def read_one(self, part: Any) -> NeutralPart:
        """A part, or an item, by itself."""
        rows = self.items if self.of_items else self.parts[self.content]
        assert not isinstance(rows, PartRow)
        type, row = self.part(rows, part)
        return NeutralPart(row.kind, (), type, row, part)

    def read_content(
        self, rows: Rows, content: Any, path: Path, speaker: Speaker = "other"
    ) -> Iterator[NeutralPart]:
        """The parts of a text or of a list: of a message's content, or of a result's."""
        if isinstance(content, str) and content:
            yield NeutralPart("text", path, "text", _TEXT, content)
        for index, part in enumerate(content if isinstance(content, list) else ()):
            type, row = self.part(rows, part, speaker)
            yield NeutralPart(row.kind, (*path, index), type, row, part)

    def part(self, rows: Rows, part: Any, speaker: Speaker = "other") -> tuple[str, PartRow]:
        """The type and the row of one item of a list of parts."""
        if not isinstance(part, dict):
            return "", OTHER
        if not self.by_key:
            type = part["type"] if isinstance(part.get("type"), str) else ""
            return type, row_of(rows, type, part, speaker) or OTHER
        type = next((key for key in part if _is_part_key(rows, key, part[key])), "")
        row = row_of(rows, camel(type), part, speaker) or OTHER
        return type, row if type == camel(type) else _spelled(row, type)


def _each(rows: Rows | PartRow) -> Iterator[PartRow]:
    for row in (rows,) if isinstance(rows, PartRow) else rows.values():
        yield from row if isinstance(row, tuple) else (row,)


def _is_part_key(rows: Rows, key: str, value: Any) -> bool:
    return camel(key) in rows and isinstance(value, (str, dict))


def camel(key: str) -> str:
    """``function_call`` → ``functionCall``."""
    first, *rest = key.split("_")
    return first + "".join(word.capitalize() for word in rest)


@lru_cache(256)
def _spelled(row: PartRow, key: str) -> PartRow:
    """The row of a part whose own key is spelled so: ``function_call``."""
    paths = ("id", "name", "payload", "error", "seal", "text")
    places: dict[str, Path] = {name: getattr(row, name) for name in paths}
    own: dict[str, Any] = {
        name: (key, *at[1:]) for name, at in places.items() if at[:1] == (camel(key),)
    }
    return replace(row, **own)


def row_of(rows: Rows, type: Any, part: Any, speaker: Speaker = "other") -> PartRow | None:
    """The row of a type of part, as this speaker may have it."""
    if not isinstance(type, str):
        return None
    found = rows.get(type)
    if found is None:
        ends = (key for key in rows if key[0] == "*" and type.endswith(key[1:]))
        found = rows.get(next(ends, ""), ())
    variants = found if isinstance(found, tuple) else (found,)
    return next((row for row in variants if _fits(row, part, speaker)), None)


def _fits(row: PartRow, part: Any, speaker: Speaker) -> bool:
    if row.kind == "text" and not isinstance(value_at(part, row.payload), str):
        return False
    if row.speaker and row.speaker != speaker != "other":
        return False
    return row.when is None or bool(value_at(part, row.when[0]) == row.when[1])


def value_at(tree: Any, path: Path) -> Any:
    """The value at a path; None if there is none."""
    for step in path:
        try:
            tree = tree[step]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def put(tree: Any, path: Path, value: Any) -> Any:
    """A copy with this value at a path, whose objects and lists are made where they lack."""
    if not path:
        return value
    key = path[0]
    if isinstance(key, int):
        items = list(tree or ())
        items[key : key + 1] = [put(items[key] if key < len(items) else None, path[1:], value)]
        return items
    return {**(tree or {}), key: put((tree or {}).get(key), path[1:], value)}
