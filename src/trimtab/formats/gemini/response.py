"""Gemini's ``functionResponse.response`` as the items of a tool result, and back.

``{"output": text}`` and ``{"error": text}`` are the documented keys.  Several items are written as
tool servers write theirs: ``{"content": [{"type": "text", …}], "isError": …}``.  Any other object
is the output itself, as JSON.  Reading what was written gives the same items.
"""

from __future__ import annotations

from typing import Any

from trimtab.formats.neutral.request import (
    ConversionLog,
    JsonPart,
    MediaPart,
    ResultPart,
    TextPart,
)
from trimtab.jsontext.paths import Path

Item = TextPart | JsonPart | MediaPart


def read_response(response: Any, path: Path) -> tuple[list[Item], bool]:
    """(items, whether it is an error)."""
    if not isinstance(response, dict):
        return ([] if response is None else [JsonPart(response, path)]), False
    if len(response) == 1:
        for key in ("output", "error"):
            value = response.get(key)
            if isinstance(value, str):
                return ([TextPart(value, (*path, key))] if value else []), key == "error"
        if isinstance(response.get("error"), dict):
            return [JsonPart(response["error"], (*path, "error"))], True
    items = _typed(response, (*path, "content"))
    if items is not None:
        return items, response.get("isError") is True
    return [JsonPart(response, path)] if response else [], False


def _typed(response: Any, path: Path) -> list[Item] | None:
    """The items of a tool server's content list, None if this is not one."""
    content = response.get("content")
    if not (isinstance(content, list) and content) or response.keys() - {"content", "isError"}:
        return None
    items: list[Item] = []
    for number, item in enumerate(content):
        if not isinstance(item, dict) or len(item) != 2:
            return None
        if item.get("type") == "text" and isinstance(item.get("text"), str):
            items.append(TextPart(item["text"], (*path, number, "text")))
        elif item.get("type") == "json" and "json" in item:
            items.append(JsonPart(item["json"], (*path, number, "json")))
        else:
            return None
    return items


def write_response(result: ResultPart, log: ConversionLog) -> dict[str, Any]:
    """The response object of a result; its media stand beside it."""
    items = [item for item in result.items if not isinstance(item, MediaPart)]
    key = "error" if result.error else "output"
    if not items:
        return {} if len(result.items) and not result.error else {key: ""}
    if len(items) == 1:
        item = items[0]
        if isinstance(item, TextPart):
            return {key: item.text}
        if isinstance(item.value, dict) and item.value:
            written = {"error": item.value} if result.error else item.value
            if read_response(written, ()) == ([JsonPart(item.value, _place(result))], result.error):
                return written
    typed = [
        {"type": "text", "text": item.text}
        if isinstance(item, TextPart)
        else {"type": "json", "json": item.value}
        for item in items
    ]
    return {"content": typed, **({"isError": True} if result.error else {})}


def _place(result: ResultPart) -> Path:
    """Where ``read_response`` finds the value of a lone JSON item."""
    return ("error",) if result.error else ()
