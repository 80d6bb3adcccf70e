"""What a Gemini ``functionResponse.response`` says, as items of a result, and the way back.

``{"output": text}`` and ``{"error": text}`` are the documented keys; several items are written as
tool servers write theirs: ``{"content": [{"type": "text", …}], "isError": …}``.  Any other object
is the output itself, as JSON.  Reading what was written gives the same items.  Knows this one
object; no calls, ids or messages.
"""

from __future__ import annotations

from typing import Any

from trimtab.conversion.neutral import Account, Json, Media, Result, Text
from trimtab.model import Path

Item = Text | Json | Media


def read_response(response: Any, path: Path) -> tuple[list[Item], bool]:
    """(items, whether it is an error)."""
    if not isinstance(response, dict):
        return ([] if response is None else [Json(response, path)]), False
    if len(response) == 1:
        for key in ("output", "error"):
            value = response.get(key)
            if isinstance(value, str):
                return ([Text(value, (*path, key))] if value else []), key == "error"
        if isinstance(response.get("error"), dict):
            return [Json(response["error"], (*path, "error"))], True
    items = _typed(response, (*path, "content"))
    if items is not None:
        return items, response.get("isError") is True
    return [Json(response, path)] if response else [], False


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
            items.append(Text(item["text"], (*path, number, "text")))
        elif item.get("type") == "json" and "json" in item:
            items.append(Json(item["json"], (*path, number, "json")))
        else:
            return None
    return items


def write_response(result: Result, account: Account) -> dict[str, Any]:
    """The response object of a result; its media stand beside it."""
    items = [item for item in result.items if not isinstance(item, Media)]
    key = "error" if result.error else "output"
    if not items:
        return {} if len(result.items) and not result.error else {key: ""}
    if len(items) == 1:
        item = items[0]
        if isinstance(item, Text):
            return {key: item.text}
        if isinstance(item.value, dict) and item.value:
            written = {"error": item.value} if result.error else item.value
            if read_response(written, ()) == ([Json(item.value, _place(result))], result.error):
                return written
    typed = [
        {"type": "text", "text": item.text}
        if isinstance(item, Text)
        else {"type": "json", "json": item.value}
        for item in items
    ]
    return {"content": typed, **({"isError": True} if result.error else {})}


def _place(result: Result) -> Path:
    """Where ``read_response`` finds the value of a lone JSON item."""
    return ("error",) if result.error else ()
