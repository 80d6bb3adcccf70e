"""Tool results and call arguments: the error flag as text, arguments as text or object."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from trimtab.formats.neutral.request import ConversionLog, JsonPart, ResultItem, TextPart
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path

ERROR = "[tool error]"
"""Written on a line of its own before the text of a failed result.  The model reads it, and on the
way back it becomes the flag again.  A tool that prints it only flags itself."""

NO_OUTPUT = "(no output)"
"""Replaces an empty result where the target refuses one."""


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
    items: list[ResultItem],
) -> tuple[list[ResultItem], bool]:
    """The items of a result without the mark on the first, and whether it was there."""
    if items and isinstance(items[0], TextPart):
        text, error = unflagged(items[0].text)
        if error:
            first = [items[0]._replace(text=text)] if text else []
            return [*first, *items[1:]], True
    return items, False


def json_text(item: JsonPart, log: ConversionLog) -> str:
    """A JSON value as the model of a target without JSON results reads it."""
    log.lose(item.path, "json", "written as JSON text")
    return paths.dump(item.value)


def arguments_of(text: Any, path: Path, log: ConversionLog) -> Any:
    """Call arguments as an object.  What is none is kept under ``text`` and listed."""
    if isinstance(text, dict):
        return text
    if text is None or (isinstance(text, str) and not text.strip()):
        return {}
    if not isinstance(text, str):
        log.lose(path, "arguments", "no JSON object; kept as text under 'text'")
        return {"text": paths.dump(text)}
    try:
        value = _strict(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        log.lose(path, "arguments", "no JSON object; kept as text under 'text'")
        return {"text": text}
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_strict = json.JSONDecoder(parse_constant=_refuse).decode
