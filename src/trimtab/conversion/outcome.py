"""The error flag of a tool result where the target has none, and call arguments as text or object.

Knows the mark in front of the text, and what becomes of arguments that are no JSON object.
Does not know any provider's keys.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn

from trimtab import paths
from trimtab.conversion.neutral import Account, Media, Text
from trimtab.conversion.neutral import Json as JsonItem
from trimtab.model import Path

ERROR = "[tool error]"
"""Stands on a line of its own before the text of a failed result.  The model reads it, and on the
way back it becomes the flag again.  A tool that prints it only flags itself."""

NO_OUTPUT = "(no output)"
"""Stands for an empty result where the target refuses one."""


def flagged(text: str) -> str:
    """The text of a failed result, marked."""
    return f"{ERROR}\n{text}" if text else ERROR


def unflagged(text: str) -> tuple[str, bool]:
    """The text without its mark, and whether it had one."""
    if not text.startswith(ERROR):
        return text, False
    if text == ERROR:
        return "", True
    if text[len(ERROR)] == "\n":
        return text[len(ERROR) + 1 :], True
    return text, False


def unflagged_items(
    items: list[Text | JsonItem | Media],
) -> tuple[tuple[Text | JsonItem | Media, ...], bool]:
    """The items of a result without the mark on the first, and whether it was there."""
    if items and isinstance(items[0], Text):
        text, error = unflagged(items[0].text)
        if error:
            first = (items[0]._replace(text=text),) if text else ()
            return (*first, *items[1:]), True
    return tuple(items), False


def item_texts(
    items: tuple[Text | JsonItem | Media, ...], account: Account
) -> tuple[list[str], list[Media]]:
    """Texts and media of a result; JSON is written as compact text, which is listed."""
    texts: list[str] = []
    media: list[Media] = []
    for item in items:
        if isinstance(item, Media):
            media.append(item)
        else:
            texts.append(item.text if isinstance(item, Text) else json_text(item, account))
    return texts, media


def json_text(item: JsonItem, account: Account) -> str:
    """A JSON value as the model of a target without JSON results reads it."""
    account.lose(item.path, "json", "written as JSON text")
    return paths.dump(item.value)


def arguments_of(text: Any, path: Path, account: Account) -> Any:
    """Call arguments as an object.  What is none is kept under ``text`` and listed."""
    if isinstance(text, dict):
        return text
    if text is None or (isinstance(text, str) and not text.strip()):
        return {}
    if not isinstance(text, str):
        account.lose(path, "arguments", "no JSON object; kept as text under 'text'")
        return {"text": paths.dump(text)}
    try:
        value = _strict(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        account.lose(path, "arguments", "no JSON object; kept as text under 'text'")
        return {"text": text}
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_strict = json.JSONDecoder(parse_constant=_refuse).decode
