"""A tool with which the model fetches originals, for each of the six formats.

Put ``definition`` among the tools of a request and fit it with ``recall=True``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from trimtab.errors import expect, expect_text
from trimtab.journal.archive import Originals
from trimtab.journal.excerpts import Said, answer
from trimtab.wire.dialects import DIALECTS
from trimtab.wire.misnamed import no_format

NAME = "recall"
DESCRIPTION = (
    "Looks up what was shortened or left out of this conversation to make room: use it before you "
    "run a tool again or say that something is lost. Without arguments: a list of what was left "
    "out. search: the best lines in all of it. file: the last reading of a file, and edits since. "
    'handle, as notes name it (recall("handle")): the original, whole or the steps, lines or '
    "characters asked for."
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "search": {"type": "string", "description": "words, rare ones best; with a handle, in it"},
        "file": {"type": "string", "description": "a path"},
        "handle": {"type": "string", "description": "as a note, a list or a search names it"},
        "steps": {"type": "string", "description": 'of folded steps: "3" or "3-5"'},
        "lines": {"type": "string", "description": '"40-80"'},
        "start": {"type": "integer", "description": "first character, from 0"},
        "end": {"type": "integer", "description": "the character to stop before"},
    },
}
"""The same bytes in every request and release: a changed tool moves the whole prompt cache."""

_Call = tuple[Any, Any, Any]


@dataclass(frozen=True)
class _Shape:
    """One format's way to ``define`` a tool, read a ``call`` as (id, name, arguments), make a
    result ``part``, and the ``message`` around it."""

    define: Callable[[], dict[str, Any]]
    call: Callable[[Mapping[str, Any]], _Call]
    part: Callable[[Any, Said], dict[str, Any]]
    message: Callable[[dict[str, Any]], dict[str, Any]]


def _schema() -> dict[str, Any]:
    return deepcopy(dict(SCHEMA))


def _function() -> dict[str, Any]:
    return {"name": NAME, "description": DESCRIPTION, "parameters": _schema()}


def _chat_call(call: Mapping[str, Any]) -> _Call:
    function = _plain(call.get("function"))
    return call.get("id"), function.get("name"), function.get("arguments")


def _call(call_id: str, arguments: str, *within: str) -> Callable[[Mapping[str, Any]], _Call]:
    """A reader of calls with these keys, whether given alone or inside a part."""

    def read(call: Mapping[str, Any]) -> _Call:
        inner = next((_plain(call[key]) for key in within if call.get(key)), call)
        return inner.get(call_id), inner.get("name"), inner.get(arguments)

    return read


def _gemini_part(call_id: Any, said: Said) -> dict[str, Any]:
    key = "error" if said.failed else "result"
    own = {"id": call_id} if call_id else {}
    return {"functionResponse": {**own, "name": NAME, "response": {key: said.text}}}


def _interactions_step(call_id: Any, said: Said) -> dict[str, Any]:
    step = {"type": "function_result", "call_id": call_id, "name": NAME, "result": said.text}
    return {**step, "is_error": True} if said.failed else step


def _anthropic_part(call_id: Any, said: Said) -> dict[str, Any]:
    failed = {"is_error": True} if said.failed else {}
    return {"type": "tool_result", "tool_use_id": call_id, "content": said.text, **failed}


def _bedrock_part(call_id: Any, said: Said) -> dict[str, Any]:
    failed = {"status": "error"} if said.failed else {}
    content = [{"text": said.text}]
    return {"toolResult": {"toolUseId": call_id, "content": content, **failed}}


_SHAPES: Mapping[str, _Shape] = {
    "openai-chat": _Shape(
        lambda: {"type": "function", "function": _function()},
        _chat_call,
        lambda call_id, said: {"role": "tool", "tool_call_id": call_id, "content": said.text},
        lambda part: part,
    ),
    "openai-responses": _Shape(
        lambda: {"type": "function", **_function(), "strict": False},
        _call("call_id", "arguments"),
        lambda call_id, said: {
            "type": "function_call_output", "call_id": call_id, "output": said.text,
        },
        lambda part: part,
    ),
    "anthropic": _Shape(
        lambda: {"name": NAME, "description": DESCRIPTION, "input_schema": _schema()},
        _call("id", "input"),
        _anthropic_part,
        lambda part: {"role": "user", "content": [part]},
    ),
    "bedrock": _Shape(
        lambda: {
            "toolSpec": {
                "name": NAME, "description": DESCRIPTION,
                "inputSchema": {"json": _schema()},
            }
        },
        _call("toolUseId", "input", "toolUse", "tool_use"),
        _bedrock_part,
        lambda part: {"role": "user", "content": [part]},
    ),
    "gemini": _Shape(
        lambda: {"functionDeclarations": [_function()]},
        _call("id", "args", "functionCall", "function_call"),
        _gemini_part,
        lambda part: {"role": "user", "parts": [part]},
    ),
    "gemini-interactions": _Shape(
        lambda: {"type": "function", **_function()},
        _call("id", "arguments"),
        _interactions_step,
        lambda part: part,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class RecallTool:
    """The recall tool in one format.

    ``definition`` goes among the tools of the request; calls are taken as JSON or as the objects
    of the provider's client, the part of a message that holds the call as well as the call itself.
    """

    format: str
    name: str = NAME

    @property
    def definition(self) -> dict[str, Any]:
        """The tool's declaration for a request; a new copy, always with the same bytes."""
        return _SHAPES[self.format].define()

    def is_call(self, call: Any) -> bool:
        """Whether this is a call of the recall tool."""
        return bool(_SHAPES[self.format].call(_plain(call))[1] == NAME)

    def read(self, call: Any) -> tuple[Any, str, Mapping[str, Any]]:
        """Id, name and arguments of any tool's call."""
        call_id, name, arguments = _SHAPES[self.format].call(_plain(call))
        return call_id, str(name or ""), _arguments(arguments)

    def part(self, call_id: Any, said: Said, name: str = NAME) -> dict[str, Any]:
        """A text as the result part of a call of the tool ``name``."""
        part = _SHAPES[self.format].part(call_id, said)
        for inner in (part, *part.values()):
            if isinstance(inner, dict) and inner.get("name") == NAME:
                inner["name"] = name
        return part

    def result(self, originals: Originals, call: Any) -> dict[str, Any]:
        """The result of one call, as a part that can be placed beside those of other calls.

        ``originals``: what ``fit`` returned, or a ``Session``, which answers for the conversation
        that it fitted last.  For an unknown handle or invalid arguments the result says so.
        """
        has_recall = callable(getattr(originals, "recall", None))
        expect(has_recall, "originals", originals, "a Session, or what fit returned")
        shape = _SHAPES[self.format]
        call_id, _, arguments = shape.call(_plain(call))
        return shape.part(call_id, answer(originals, _arguments(arguments)))

    def execute(self, originals: Originals, call: Any) -> dict[str, Any]:
        """The result of one call as a separate message, to be appended to the conversation."""
        return _SHAPES[self.format].message(self.result(originals, call))


def recall_tool(format: str) -> RecallTool:
    """The tool for a format (``"openai-chat:deepseek"`` too).  Raises InvalidSetting."""
    expect_text("format", format)
    name = format.partition(":")[0]
    if name not in _SHAPES:
        raise no_format(format, _SHAPES, DIALECTS)
    return RecallTool(name)


def _plain(value: Any) -> Mapping[str, Any]:
    """A call as a mapping: JSON as it is, an object of a client by its fields."""
    if isinstance(value, Mapping):
        return value
    dump = getattr(value, "model_dump", None)
    fields = dump() if callable(dump) else getattr(value, "__dict__", {})
    return fields if isinstance(fields, Mapping) else {}


def _arguments(value: Any) -> Mapping[str, Any]:
    """Arguments as an object, whether they came as one or as its JSON; {} for anything else."""
    if isinstance(value, (str, bytes)):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {"handle": value} if isinstance(value, str) and _is_name(value) else {}
        if isinstance(value, str):
            return {"handle": value}
    return value if isinstance(value, Mapping) else {}


def _is_name(text: str) -> bool:
    """Whether arguments that are no JSON can be a handle: ``{`` is JSON that broke off."""
    return text.isprintable() and text[:1].isalnum()
