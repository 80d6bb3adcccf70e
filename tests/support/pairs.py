"""Calls and results of a request in any of the six formats, and ways to break them.

Knows the wire formats.  Does not know the library under test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from five_formats import items_of


def parts(body: Any) -> Iterator[tuple[str, str, Any]]:
    """("call" | "result", id, the object) of every call and result, in order."""
    for item in body if isinstance(body, list) else items_of(body):
        if item.get("type") == "function_call":
            yield "call", item.get("call_id", item.get("id")), item
        elif item.get("type") in ("function_call_output", "function_result"):
            yield "result", item["call_id"], item
        elif item.get("role") == "tool":
            yield "result", item.get("tool_call_id", ""), item
        for call in item.get("tool_calls") or ():
            yield "call", call["id"], call
        content = item.get("content")
        for part in item.get("parts") or (content if isinstance(content, list) else ()):
            if "toolUse" in part:
                yield "call", part["toolUse"]["toolUseId"], part
            elif "toolResult" in part:
                yield "result", part["toolResult"]["toolUseId"], part
            elif "functionCall" in part:
                yield "call", part["functionCall"].get("id", ""), part
            elif "functionResponse" in part:
                yield "result", part["functionResponse"].get("id", ""), part
            elif part.get("type") == "tool_use":
                yield "call", part["id"], part
            elif part.get("type") == "tool_result":
                yield "result", part["tool_use_id"], part


def orphans(body: Any) -> list[str]:
    """Ids of results without an open call before them, and of calls without a result."""
    open_, lost = Counter[str](), list[str]()
    for kind, name, _ in parts(body):
        if kind == "call":
            open_[name] += 1
        elif open_[name]:
            open_[name] -= 1
        else:
            lost.append(name)
    return [*lost, *open_.elements()]


def texts(value: Any) -> Iterator[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def user_texts(format: str, body: Any) -> list[str]:
    """What stands as words in the user's messages."""
    found = []
    for item in items_of(body):
        if item.get("role") != "user":
            continue
        content = item.get("parts") or item.get("content")
        if isinstance(content, str):
            found.append(content)
            continue
        found += [part["text"] for part in content or () if "text" in part]
    return found
