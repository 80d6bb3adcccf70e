"""Shapes of a tool choice: JSON with ``NAME`` at the place of the tool's name.

>>> shape = {"type": "function", "function": {"name": NAME}}
>>> filled(shape, "read")
{'type': 'function', 'function': {'name': 'read'}}
>>> matched(shape, {"type": "function", "function": {"name": "read"}})
'read'
"""

from __future__ import annotations

from typing import Any

NAME: Any = object()


def filled(shape: Any, name: str) -> Any:
    """The choice of this tool."""
    if shape is NAME:
        return name
    if isinstance(shape, dict):
        return {key: filled(inner, name) for key, inner in shape.items()}
    return [filled(inner, name) for inner in shape] if isinstance(shape, list) else shape


def matched(shape: Any, value: Any) -> str | None:
    """The tool that a choice names, "" if none; None if it has not this shape.  It may have more
    keys, and its words may be in another case."""
    if shape is NAME:
        return value if isinstance(value, str) else None
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return None
        names = [matched(inner, value.get(key)) for key, inner in shape.items()]
        return None if None in names else "".join(name for name in names if name)
    if isinstance(shape, list):
        fits = isinstance(value, list) and len(value) == len(shape)
        return matched(shape[0], value[0]) if fits else None
    return "" if isinstance(value, str) and value.upper() == shape.upper() else None
