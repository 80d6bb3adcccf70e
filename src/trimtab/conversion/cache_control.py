"""Cache breakpoints spelled ``cache_control``: Anthropic's, and of chat servers in front of it.

Bedrock's cache points are blocks of their own; bedrock.py reads and writes them.
"""

from __future__ import annotations

from typing import Any


def mark_of(value: Any) -> str | None:
    """The lifetime of a ``cache_control`` ("" where it names none), None where there is none."""
    mark = value.get("cache_control") if isinstance(value, dict) else None
    return str(mark.get("ttl") or "") if isinstance(mark, dict) else None


def with_mark(value: dict[str, Any], mark: str | None) -> dict[str, Any]:
    """The same part, with the breakpoint it carries."""
    if mark is not None:
        ttl = {"ttl": mark} if mark else {}
        value["cache_control"] = {"type": "ephemeral", **ttl}
    return value
