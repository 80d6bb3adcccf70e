"""The request that keeps Anthropic's prompt cache warm."""

from __future__ import annotations

from typing import Any


def warm_request(tree: dict[str, Any], most: int) -> dict[str, Any] | None:
    """For ``most`` output tokens.  A budget for thinking has to lie below that limit, and another
    budget loses the cache."""
    thinking = tree.get("thinking")
    if isinstance(thinking, dict) and thinking.get("type") == "enabled":
        return None
    return {**tree, "max_tokens": most}
