"""Whether a request gets our tools, and where they stand among the client's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trimtab.formats import FORMATS
from trimtab.formats.engine.parts import ToolTable, camel, value_at
from trimtab.jsontext.paths import Insert, PathOp, Set
from trimtab.rounds.request_layouts import history, texts
from trimtab.transcript.client_requests import begins_with_any

OWN = "own"
"""The client offers a tool under one of our names, and answers it itself."""
INTERNAL = "internal"
"""A request of the client's own: a title, a summary; or one without tools."""
REQUIRED = "tool_choice demands a call, which has to be one of the client's own tools"
SEVERAL = "several answers are asked for at once (n)"
BUILT_IN = "it offers built-in tools only, and then Gemini takes no function"


def why_undeclared(format: str, body: Any, names: Sequence[str], *, alone: bool) -> str:
    """Why a request does not get the tools called ``names``; "" if it gets them.

    ``alone``: whether a request that offers no tool gets them too.
    """
    if not isinstance(body, dict):
        return INTERNAL
    tools = FORMATS[format].table.tools
    offered = tools.of(body)
    if not set(names).isdisjoint(tools.names(offered)):
        return OWN
    if (offered is None and not alone) or _is_internal(format, body):
        return INTERNAL
    if body.get("n", 1) not in (None, 1):
        return SEVERAL
    if reason := _incompatible(format, body, offered):
        return reason
    return REQUIRED if _requires_a_call(format, body) else ""


def _incompatible(format: str, body: Mapping[str, Any], offered: Any) -> str:
    """What a request asks for that its provider does not give together with a tool of ours."""
    if reason := FORMATS[format].why_no_tool(body):
        return reason
    tools = FORMATS[format].table.tools
    return BUILT_IN if tools.listed and offered and _declarations(tools, offered) is None else ""


def asks_for_structure(format: str, body: Mapping[str, Any]) -> bool:
    """Whether the whole text of an answer has to be one JSON value."""
    return any(
        value_at(body, path) in values if values else bool(value_at(body, path))
        for path, values in FORMATS[format].rewriter.answers.structured
    )


def declaring(format: str, body: Any, definitions: Sequence[Mapping[str, Any]]) -> list[PathOp]:
    """The operations that put tools behind those of the client."""
    tools = FORMATS[format].table.tools
    offered, path = tools.of(body), tools.path
    if offered is None:
        holder = body.get(path[0]) if len(path) > 1 else body
        if isinstance(holder, dict):
            return [Set(path, list(definitions))]
        return [Set(path[:1], {path[1]: list(definitions)})]
    if tools.listed and (place := _declarations(tools, offered)) is not None:
        # One tool holds all functions: Vertex takes several tools only if all of them search.
        at, key = place
        functions = [row for one in definitions for row in one[tools.listed]]
        return [Insert((*path, at, key, len(offered[at][key])), row) for row in functions]
    return [Insert((*path, len(offered)), dict(one)) for one in definitions]


def _declarations(tools: ToolTable, offered: Sequence[Any]) -> tuple[int, str] | None:
    """Index and key of the last tool that has functions, where one holds all."""
    for at in reversed(range(len(offered))):
        for key, value in offered[at].items() if isinstance(offered[at], dict) else ():
            if camel(key) == tools.listed and isinstance(value, list):
                return at, key
    return None


def _requires_a_call(format: str, body: Mapping[str, Any]) -> bool:
    """Whether the model has to call some tool, no matter which."""
    wanted = value_at(body, FORMATS[format].table.tools.choice)
    if isinstance(wanted, dict):
        if wanted.get("allowedFunctionNames"):
            return False
        wanted = wanted.get("type") or wanted.get("mode") or next(iter(wanted), "")
    return wanted in ("required", "any", "ANY")


def _is_internal(format: str, body: Mapping[str, Any]) -> bool:
    """Whether the instructions or the last text begin like those of a client's internal request.

    ``compaction_trigger`` is how Codex asks its provider to compact.
    """
    messages = history(format, body)
    last = messages[-1] if messages and isinstance(messages[-1], dict) else {}
    if last.get("type") == "compaction_trigger":
        return True
    content = last.get(FORMATS[format].content_key)
    places = (body.get("system"), body.get("instructions"), content)
    return begins_with_any(text for place in places for text in texts(place))
