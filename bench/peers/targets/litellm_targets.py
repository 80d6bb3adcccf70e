"""LiteLLM: ``trim_messages`` and ``compress``."""

from __future__ import annotations

import os
from importlib import import_module
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

from common import TRIGGER, nulled, room


def trim(request: dict[str, Any], window: int) -> Any:
    """``litellm.utils.trim_messages`` with what the tools leave as ``max_tokens``."""
    found = import_module("litellm.utils").trim_messages(
        request["messages"], model="gpt-4o", max_tokens=room(request, window)
    )
    return {**request, "messages": found}


class Compress:
    """``litellm.compress``: BM25; its retrieval tool stands beside the request's tools, and what
    was taken out is in its ``cache``."""

    def __init__(self, window: int) -> None:
        self._trigger = int(TRIGGER * window)
        self._cache: dict[str, str] = {}

    def __call__(self, request: dict[str, Any]) -> Any:
        messages = [
            {**one, "content": ""} if one.get("content", "") is None else one  # it raises on null
            for one in request["messages"]
        ]
        done = import_module("litellm").compress(
            messages, model="gpt-4o", compression_trigger=self._trigger
        )
        self._cache |= {key: str(text) for key, text in (done.get("cache") or {}).items()}
        tools = [*request["tools"], *(done.get("tools") or ())]
        sent = {**request, "tools": tools, "messages": nulled(done["messages"])}
        return SimpleNamespace(request=sent, handles=list(self._cache))

    def recall(self, handle: str) -> str:
        """What its retrieval tool would return."""
        return self._cache[handle]
