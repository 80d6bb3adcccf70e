"""Finds the blocks that load or withdraw tools (Anthropic's, also inside chat messages).

They are no talk: without them a tool that is called later is not loaded, and one that is named but
not declared is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trimtab.jsontext.paths import Path

_CHANGES = ("mcp_tool_listing", "tool_addition", "tool_removal")


def tool_state(content: Any, path: Path = ("content",)) -> Iterator[tuple[Path, str]]:
    """(path, name of the tool or "") of each such block in a message's content, also inside tool
    results and the results of a tool search."""
    for index, item in enumerate(content if isinstance(content, list) else ()):
        kind = item.get("type") if isinstance(item, dict) else None
        if kind == "tool_reference":
            name = item.get("tool_name")
            yield (*path, index), name if isinstance(name, str) else ""
        elif kind in _CHANGES:
            yield (*path, index), ""
        elif kind == "tool_result":
            yield from tool_state(item.get("content"), (*path, index, "content"))
        elif kind == "tool_search_tool_result" and isinstance(item.get("content"), dict):
            found = item["content"].get("tool_references")
            yield from tool_state(found, (*path, index, "content", "tool_references"))
