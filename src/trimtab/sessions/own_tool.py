"""A tool of ours that the model calls, in each of the six formats: its declaration, its calls and
their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from trimtab.errors import expect_text
from trimtab.formats.misnamed import no_format
from trimtab.formats.openai_chat.dialects import DIALECTS


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


_Call = tuple[Any, Any, Any]


@dataclass(frozen=True)
class _Shape:
    """One format's way to ``define`` a tool, read a ``call`` as (id, name, arguments), make a
    result ``part``, and the ``message`` around it."""

    define: Callable[[Declaration], dict[str, Any]]
    call: Callable[[Mapping[str, Any]], _Call]
    part: Callable[[Any, str, ToolAnswer], dict[str, Any]]
    message: Callable[[dict[str, Any]], dict[str, Any]]


def _schema(tool: Declaration) -> dict[str, Any]:
    return deepcopy(dict(tool.schema))


def _function(tool: Declaration) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": _schema(tool)}


def _chat_call(call: Mapping[str, Any]) -> _Call:
    function = _plain(call.get("function"))
    return call.get("id"), function.get("name"), function.get("arguments")


def _call(call_id: str, arguments: str, *within: str) -> Callable[[Mapping[str, Any]], _Call]:
    """A reader of calls with these keys, whether given alone or inside a part."""

    def read(call: Mapping[str, Any]) -> _Call:
        inner = next((_plain(call[key]) for key in within if call.get(key)), call)
        return inner.get(call_id), inner.get("name"), inner.get(arguments)

    return read


def _gemini_part(call_id: Any, name: str, said: ToolAnswer) -> dict[str, Any]:
    key = "error" if said.failed else "result"
    own = {"id": call_id} if call_id else {}
    return {"functionResponse": {**own, "name": name, "response": {key: said.text}}}


def _interactions_step(call_id: Any, name: str, said: ToolAnswer) -> dict[str, Any]:
    step = {"type": "function_result", "call_id": call_id, "name": name, "result": said.text}
    return {**step, "is_error": True} if said.failed else step


def _anthropic_part(call_id: Any, name: str, said: ToolAnswer) -> dict[str, Any]:
    failed = {"is_error": True} if said.failed else {}
    return {"type": "tool_result", "tool_use_id": call_id, "content": said.text, **failed}


def _bedrock_part(call_id: Any, name: str, said: ToolAnswer) -> dict[str, Any]:
    failed = {"status": "error"} if said.failed else {}
    content = [{"text": said.text}]
    return {"toolResult": {"toolUseId": call_id, "content": content, **failed}}


_SHAPES: Mapping[str, _Shape] = {
    "openai-chat": _Shape(
        lambda tool: {"type": "function", "function": _function(tool)},
        _chat_call,
        lambda call_id, name, said: {"role": "tool", "tool_call_id": call_id, "content": said.text},
        lambda part: part,
    ),
    "openai-responses": _Shape(
        lambda tool: {"type": "function", **_function(tool), "strict": False},
        _call("call_id", "arguments"),
        lambda call_id, name, said: {
            "type": "function_call_output", "call_id": call_id, "output": said.text,
        },
        lambda part: part,
    ),
    "anthropic": _Shape(
        lambda tool: {
            "name": tool.name, "description": tool.description, "input_schema": _schema(tool),
        },
        _call("id", "input"),
        _anthropic_part,
        lambda part: {"role": "user", "content": [part]},
    ),
    "bedrock": _Shape(
        lambda tool: {
            "toolSpec": {
                "name": tool.name, "description": tool.description,
                "inputSchema": {"json": _schema(tool)},
            }
        },
        _call("toolUseId", "input", "toolUse", "tool_use"),
        _bedrock_part,
        lambda part: {"role": "user", "content": [part]},
    ),
    "gemini": _Shape(
        lambda tool: {"functionDeclarations": [_function(tool)]},
        _call("id", "args", "functionCall", "function_call"),
        _gemini_part,
        lambda part: {"role": "user", "parts": [part]},
    ),
    "gemini-interactions": _Shape(
        lambda tool: {"type": "function", **_function(tool)},
        _call("id", "arguments"),
        _interactions_step,
        lambda part: part,
    ),
}  # fmt: skip


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
    def definition(self) -> dict[str, Any]:
        """The tool's declaration for a request; a new copy, always with the same bytes."""
        return _SHAPES[self.format].define(self.declared)

    def is_call(self, call: Any) -> bool:
        """Whether this is a call of the tool."""
        return self.read(call)[1] == self.name

    def read(self, call: Any) -> tuple[Any, str, Mapping[str, Any]]:
        """Id, name and arguments of any tool's call."""
        call_id, name, arguments = _SHAPES[self.format].call(_plain(call))
        return call_id, str(name or ""), _arguments(arguments)

    def part(self, call_id: Any, said: ToolAnswer, name: str = "") -> dict[str, Any]:
        """A text as the result part of a call of the tool ``name``; of this one if "".  It can be
        placed beside those of other calls."""
        return _SHAPES[self.format].part(call_id, name or self.name, said)

    def message(self, part: dict[str, Any]) -> dict[str, Any]:
        """A result part as a separate message, to be appended to the conversation."""
        return _SHAPES[self.format].message(part)


def format_named(format: str) -> str:
    """The format of a name (``"openai-chat:deepseek"`` too).  Raises InvalidSetting."""
    expect_text("format", format)
    name = format.partition(":")[0]
    if name not in _SHAPES:
        raise no_format(format, _SHAPES, DIALECTS)
    return name


def _plain(value: Any) -> Mapping[str, Any]:
    """A call as a mapping: JSON as it is, an object of a client by its fields."""
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    fields = dump() if callable(dump) else getattr(value, "__dict__", {})
    return fields if isinstance(fields, Mapping) else {}


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
