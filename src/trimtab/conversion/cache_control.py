"""Cache breakpoints spelled ``cache_control``, by Anthropic and by chat servers in front of it.

Bedrock's cache points are blocks of their own; bedrock.py reads and writes them.
"""

from __future__ import annotations

from typing import Any


def mark_of(value: Any) -> str | None:
    """The lifetime that a part's ``cache_control`` names, "" if it names none; None for a part that
    has no ``cache_control``."""
    mark = value.get("cache_control") if isinstance(value, dict) else None
    return str(mark.get("ttl") or "") if isinstance(mark, dict) else None


def with_mark(value: dict[str, Any], mark: str | None) -> dict[str, Any]:
    """The same part, which is given a breakpoint of this lifetime; None: no breakpoint."""
    if mark is not None:
        ttl = {"ttl": mark} if mark else {}
        value["cache_control"] = {"type": "ephemeral", **ttl}
    return value
