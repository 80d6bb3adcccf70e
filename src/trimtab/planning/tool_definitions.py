"""Which definitions of tools fill a request, and what helps against it.

No edit makes a definition smaller: the model calls what it reads there.  So who sends the request
is told which they are, and how the provider loads them only when they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from trimtab.formats.engine.base import Format
from trimtab.transcript.model import Block, Place

MAX_SHARE = 0.5
"""Share of the room, or of what fills it, above which the definitions are named."""
FEW_TOKENS = 5_000
"""Definitions of fewer are not worth a change of the request that has room for them."""
NAMED, NAME_CHARS = 10, 64
"""How many are named, and characters of a name."""


class ToolSize(NamedTuple):
    """The size of one definition: in tokens, or in bytes where those are what is too many."""

    name: str
    size: int


def definition_name(block: Block) -> str:
    """The name of the tool that a block defines: its function's, else its type; "" if it defines
    none (a schema of the answer is in no list)."""
    if block.kind != "tools" or not any(isinstance(key, int) for key in block.path):
        return ""
    tool = json.loads(block.text) if block.text else None
    if not isinstance(tool, dict):
        return "tool"
    within = (one for one in (tool, *tool.values()) if isinstance(one, dict))
    names = (one.get("name") for one in within)
    kind: Any = tool.get("server_label") or tool.get("type") or next(iter(tool), "tool")
    name = next((name for name in names if isinstance(name, str) and name), str(kind))
    return "".join(c for c in name if c.isprintable())[:NAME_CHARS]


def tool_sizes(places: Iterable[Place], size: Callable[[Place], int]) -> list[ToolSize]:
    """The definitions among these blocks, largest first."""
    named = ((definition_name(place.block), place) for place in places if place.message < 0)
    sized = (ToolSize(name, size(place)) for name, place in named if name)
    rows = [tool for tool in sized if tool.size]  # a deferred one takes nothing
    return sorted(rows, key=lambda row: (-row.size, row.name))


def tools_take(tools: list[ToolSize], of: str, format: Format) -> str:
    """Two sentences: "The definitions of 120 tools take 51,125 of …: the 10 largest are …", and
    what helps.  ``of``: of how much, with its unit."""
    total, largest = sum(tool.size for tool in tools), tools[:NAMED]
    named = ", ".join(f"{name} ({size:,})" for name, size in largest)
    which = f"the {NAMED} largest are {named}" if len(tools) > NAMED else named
    take = "The definition of 1 tool takes"
    if len(tools) > 1:
        take = f"The definitions of {len(tools):,} tools take"
    fewer = "declare fewer of them, or connect fewer MCP servers"
    help = f"{fewer[0].upper()}{fewer[1:]}."
    if format.deferred_tools:
        help = f"Have the provider load them when needed ({format.deferred_tools}), or {fewer}."
    return f"{take} {total:,} of {of}: {which}. {help}"
