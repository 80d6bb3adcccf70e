"""A tool of ours that the model calls, in each of the six formats: its declaration, its calls and
their results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from trimtab.errors import expect_text
from trimtab.formats.engine.parts import PartTable, camel
from trimtab.formats.misnamed import no_format
from trimtab.formats.registry import FORMATS
from trimtab.jsontext.paths import Path


class Declaration(NamedTuple):
    """What a tool's declaration says; the same bytes in every request and release, because a
    changed tool moves the whole prompt cache."""

    name: str
    description: str
    schema: Mapping[str, Any]


BARE = ""
"""The name of what a model wrote in place of an object of arguments."""


class ToolAnswer(Protocol):
    """An answer to a model, and whether it reports an error."""

    @property
    def text(self) -> str: ...
    @property
    def failed(self) -> bool: ...


@dataclass(frozen=True)
class OwnTool:
    """A tool of ours in one format.

    ``definition`` goes among the tools of the request; calls are taken as JSON or as the objects
    of the provider's client, the part of a message that holds the call as well as the call itself.
    """

    format: str
    declared: Declaration

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.declared.name

    @property
    def _table(self) -> PartTable:
        return FORMATS[self.format].table

    @property
    def definition(self) -> dict[str, Any]:
        """The tool's declaration for a request; a new copy, always with the same bytes."""
        name, description, schema = self.declared
        return self._table.tools.define(name, description, deepcopy(dict(schema)))

    def is_call(self, call: Any) -> bool:
        """Whether this is a call of the tool."""
        return self.read(call)[1] == self.name

    def read(self, call: Any) -> tuple[Any, str, Mapping[str, Any]]:
        """Id, name and arguments of any tool's call."""
        type, row = self._table.call
        part = _plain(call)
        if self._table.by_key:  # the value under the key may be given alone
            part = {type: next((part[key] for key in part if camel(key) == type), part)}
        call_id, name, arguments = (_at(part, path) for path in (row.id, row.name, row.payload))
        return call_id, str(name or ""), _arguments(arguments)

    def part(self, call_id: Any, said: ToolAnswer, name: str = "") -> dict[str, Any]:
        """A text as the result part of a call of the tool ``name``; of this one if "".  It can be
        placed beside those of other calls."""
        return self._table.write_result(call_id, name or self.name, said.text, said.failed)

    def message(self, part: dict[str, Any]) -> dict[str, Any]:
        """A result part as a separate message, to be appended to the conversation."""
        format = FORMATS[self.format]
        return format.results_message([part]) if format.results_in_user else part


def format_named(format: str) -> str:
    """The format of a name (``"openai-chat:deepseek"`` too).  Raises InvalidSetting."""
    expect_text("format", format)
    name = format.partition(":")[0]
    if name not in FORMATS:
        raise no_format(format)
    return name


def _plain(value: Any) -> Mapping[str, Any]:
    """A call as a mapping: JSON as it is, an object of a client by its fields."""
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    fields = dump() if callable(dump) else getattr(value, "__dict__", {})
    return fields if isinstance(fields, Mapping) else {}


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = _plain(value).get(str(step))
    return value


def _arguments(value: Any) -> Mapping[str, Any]:
    """Arguments as an object, whether they came as one or as its JSON; a bare text under BARE, {}
    for anything else."""
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {BARE: value} if isinstance(value, str) else {}
        if isinstance(value, str):
            return {BARE: value}
    return value if isinstance(value, Mapping) else {}
