"""Pairs and texts of a request in any of the six formats.

Knows the wire formats.  Does not know the library under test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from shapes import items_of, parts


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
