"""What the targets of several libraries share: how tokens are counted, and what is no message."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from importlib import import_module
from typing import Any

Body = dict[str, Any]

MESSAGE_TOKENS, CALL_TOKENS = 4, 10

SUMMARY = "The user asked for work on the parser; files were read and the search goes on. " * 15
"""What the model of summarizing peers answers.  It quotes nobody: what fails is not its doing."""

TRIGGER = 0.9
"""Share of the window at which peers act that ask for a trigger."""


@functools.cache
def _encoder() -> Callable[[str], bytes]:
    load = import_module("splintr").Tokenizer.from_pretrained
    encode: Callable[[str], bytes] = load("o200k_base").encode_flat
    return encode


def tokens_of(text: str) -> int:
    """o200k tokens of a text; the encoder packs four bytes a token."""
    return len(_encoder()(text)) // 4


def message_tokens(message: Body) -> int:
    """Of one OpenAI chat message, as the suite counts it or a little more."""
    total = MESSAGE_TOKENS
    content = message.get("content")
    total += tokens_of(content if isinstance(content, str) else json.dumps(content or ""))
    for call in message.get("tool_calls") or ():
        total += CALL_TOKENS + tokens_of(call["function"]["name"] + call["function"]["arguments"])
    return total + (CALL_TOKENS if message.get("role") == "tool" else 0)


def room(request: Body, window: int) -> int:
    """The window without the tools of the request: what is left for messages."""
    return window - tokens_of(json.dumps(request.get("tools", []))) - 50


def nulled(messages: list[Body]) -> list[Body]:
    """As OpenAI's API takes them: no content beside calls is null, not an empty text."""
    return [
        {**one, "content": None} if one.get("tool_calls") and not one.get("content") else one
        for one in messages
    ]
