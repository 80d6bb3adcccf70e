"""The request that keeps the prompt cache of OpenAI Responses warm."""

from __future__ import annotations

from typing import Any

MIN_OUTPUT = 16
"""Tokens: the smallest ``max_output_tokens`` that OpenAI takes.  It bounds what a ping costs where
a gateway ignores ``prewarm``."""


def warm_request(tree: dict[str, Any], most: int) -> dict[str, Any] | None:
    """``prompt_cache_options.prewarm`` "prepares the prompt cache without generating output".  Not
    for a ``conversation``, which the request would become a part of, nor where the client asks for
    the longer lifetime."""
    asked_options = tree.get("prompt_cache_options")
    options = asked_options if isinstance(asked_options, dict) else {}
    if tree.get("conversation") or options.get("ttl") == "12h":
        return None
    left_out = ("stream_options", "background")
    fields = {key: value for key, value in tree.items() if key not in left_out}
    kept_options = {key: v for key, v in options.items() if key != "comparison_response_id"}
    return {
        **fields, "max_output_tokens": MIN_OUTPUT, "store": False,
        "prompt_cache_options": {**kept_options, "prewarm": True},
    }  # fmt: skip
