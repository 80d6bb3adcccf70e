"""LangChain's content blocks as parts that our formats read, and back.

Unknown blocks are passed on unchanged: our formats keep unknown parts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

MEDIA = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "file": "document",
    "document": "document",
    "audio": "document",
    "input_audio": "document",
    "video": "document",
    "media": "document",
}
"""Block types that hold an image or a file; their tokens are counted per piece, not as text."""

CALLS = ("tool_use", "function_call", "tool_call", "custom_tool_call")
"""Block types that repeat ``tool_calls``."""


class PartOrigins:
    """The origin of each part of a body, found again by the identity of the part."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[Any, Any]] = {}

    def put(self, part: Any, original: Any) -> Any:
        """Remember the origin of a part; returns the part."""
        self._of[id(part)] = (part, original)  # the part is kept, so that its id stays its own
        return part

    def original(self, part: Any) -> Any:
        """The origin of ``part``; ``part`` itself if it has none."""
        return self._of[id(part)][1] if id(part) in self._of else part


def call_id(block: Any) -> str:
    """The id of the call that a block repeats; "" for any other block."""
    if not isinstance(block, Mapping) or block.get("type") not in CALLS:
        return ""
    id = block.get("call_id") if block["type"] != "tool_use" else None
    return str(id or block.get("id") or "")


def blocks(message: BaseMessage) -> list[Any]:
    """The content as a list of blocks; a text becomes a list of one."""
    content = message.content
    if isinstance(content, str):
        return [content] if content else []
    return list(content)


def calls(message: BaseMessage) -> list[tuple[str, str, str | dict[str, Any]]]:
    """(id, name, arguments) of every call: valid ones, then those with invalid JSON as text."""
    if not isinstance(message, AIMessage):
        return []
    sound = [(c["id"] or "", c["name"], dict(c["args"])) for c in message.tool_calls]
    broken = [(c["id"] or "", c["name"] or "", c["args"] or "") for c in message.invalid_tool_calls]
    return [*sound, *broken]


def spelled(arguments: str | Mapping[str, Any]) -> str:
    """Arguments as the JSON text that is sent."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments, ensure_ascii=False, default=str)


def with_calls(
    message: AIMessage, content: Any, calls: Sequence[tuple[str, str, str | dict[str, Any]]]
) -> AIMessage:
    """``message`` with new content and calls, without the raw calls that repeat the old ones."""
    sound = [
        {"name": name, "args": args, "id": id or None, "type": "tool_call"}
        for id, name, args in calls if isinstance(args, dict)
    ]  # fmt: skip
    broken = [
        {"name": name, "args": args, "id": id or None, "error": None, "type": "invalid_tool_call"}
        for id, name, args in calls if isinstance(args, str)
    ]  # fmt: skip
    other_kwargs = {k: v for k, v in message.additional_kwargs.items() if k not in _REPEATED}
    return message.model_copy(update={
        "content": content, "tool_calls": sound, "invalid_tool_calls": broken,
        "additional_kwargs": other_kwargs,
    })  # fmt: skip


_REPEATED = ("tool_calls", "function_call")
"""Keys of ``additional_kwargs`` under which providers' packages keep the raw calls."""


def fresh_id(message: Mapping[str, Any], used: set[str]) -> str:
    """A new id for a message: deterministic for its content, and not in ``used``."""
    data = json.dumps(message, sort_keys=True, default=str).encode("utf-8", "surrogatepass")
    base = f"trimtab-{hashlib.blake2b(data, digest_size=8).hexdigest()}"
    fresh, number = base, 1
    while fresh in used:
        number += 1
        fresh = f"{base}-{number}"
    used.add(fresh)
    return fresh
