"""The arguments of LiteLLM's functions, as its hooks get them.  Asserts nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tool_calls import Step, conversation

STEPS = [Step("read", {"path": f"{n}.py"}, f"line {n} token {n * 7919}\n" * 40) for n in range(30)]
CALLS = {
    "acompletion": ("openai-chat", "messages"),
    "anthropic_messages": ("anthropic", "messages"),
    "aresponses": ("openai-responses", "input"),
}
"""Function → (format, argument with the history)."""
KINDS = pytest.mark.parametrize("call", CALLS)


def arguments(call: str, id: str = "call-1", model: str = "house-model") -> dict[str, Any]:
    """Those of a request of some 9,000 tokens."""
    request = conversation(CALLS[call][0], *STEPS)
    metadata = {"user_api_key_hash": "abc"}
    return {**request, "model": model, "api_base": "http://x", "litellm_call_id": id,
            "metadata": metadata, "caching": False, "max_tokens": None}  # fmt: skip
