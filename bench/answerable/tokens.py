"""Tokens of a request, counted without trimtab: o200k of all strings, 4 a message, 10 a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any


@cache
def _tokenizer() -> Any:
    return import_module("splintr").Tokenizer.from_pretrained("o200k_base")


@cache
def of_text(text: str) -> int:
    """Tokens of a text."""
    return len(_tokenizer().encode_ordinary(text))


def of_message(message: Mapping[str, Any]) -> int:
    """Tokens of one message."""
    content = message.get("content") or ""
    parts = content if isinstance(content, list) else [{"text": content}]
    total = 4 + sum(of_text(str(part.get("text") or "")) for part in parts)
    for call in message.get("tool_calls") or []:
        function = call["function"]
        total += 10 + of_text(function["name"]) + of_text(function["arguments"])
    return total + (10 if message["role"] == "tool" else 0)


def count(request: Mapping[str, Any]) -> int:
    """Tokens of a request in the chat format."""
    tools = sum(
        of_text(json.dumps(tool, separators=(",", ":"))) for tool in request.get("tools", [])
    )
    return tools + sum(map(of_message, request["messages"]))
