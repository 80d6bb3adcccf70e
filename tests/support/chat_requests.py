"""Small chat requests for tests, and Mistral's own validators as a judge of them.

Knows the wire format.  Does not know the library under test.
"""

from __future__ import annotations

import copy
from typing import Any

from world_needs import module

CHUNKS = {
    "text": ("type", "text"),
    "image_url": ("type", "image_url"),
    "thinking": ("type", "thinking", "closed"),
}
"""Content parts that mistral-common knows, and the keys it takes of them."""
MISTRAL_KEYS = ("role", "content", "tool_calls", "tool_call_id", "prefix")


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": "gpt-5.1", **more, "messages": list(messages)}


def user(content: Any = "read a.py") -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(content: Any = "It is a parser.", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


def call(call_id: str = "abcdefgh1", arguments: Any = '{"path": "a.py"}') -> dict[str, Any]:
    function = {"name": "read", "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def calls(*made: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(made), **more}


def result(call_id: str = "abcdefgh1", content: Any = "x = 1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def use(call_id: str = "toolu_1", value: Any = None) -> dict[str, Any]:
    value = {"path": "a.py"} if value is None else value
    return {"type": "tool_use", "id": call_id, "name": "read", "input": value}


def used(call_id: str = "toolu_1", content: Any = "x = 1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def mistral_says(request: Any, version: int) -> str:
    """Why mistral-common (that version's validator, serving mode) refuses; "" if it does not."""
    module("mistral_common", "sdks")
    from mistral_common.exceptions import MistralCommonException
    from mistral_common.protocol.instruct import validator
    from mistral_common.protocol.instruct.request import ChatCompletionRequest

    name = f"MistralRequestValidatorV{version}" if version > 1 else "MistralRequestValidator"
    judge = getattr(validator, name)(validator.ValidationMode.serving)
    messages = [_known(message) for message in copy.deepcopy(request["messages"])]
    try:
        # The message types take no null; the hosted API does.
        judge.validate_request(ChatCompletionRequest(model="m", messages=messages))
    except MistralCommonException as error:
        return str(error)
    return ""


def _known(message: dict[str, Any]) -> dict[str, Any]:
    kept = {key: message[key] for key in MISTRAL_KEYS if message.get(key) is not None}
    if isinstance(kept.get("content"), list):
        kept["content"] = [_chunk(part) for part in kept["content"]]
    if message["role"] != "tool":
        kept.setdefault("content", "")
    return kept


def _chunk(part: dict[str, Any]) -> dict[str, Any]:
    keys = CHUNKS.get(part.get("type", ""))
    return {k: part[k] for k in part if k in (*keys, part["type"])} if keys else text(str(part))
