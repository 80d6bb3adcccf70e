"""Text that cannot go over the wire, told without the library: a lone half of a character, or NUL.

Knows nothing of formats.  What JSON escapes as two halves is one character.
"""

from __future__ import annotations

import json
from typing import Any


def problems(request: Any) -> list[str]:
    """One line where a string or a key of the request has no UTF-8 form or holds NUL."""
    return ["text: no provider reads it"] if any(map(_bad, _strings(request))) else []


def as_sent(text: str) -> str:
    """The text with U+FFFD for what cannot be sent."""
    whole = json.loads(json.dumps(text))  # joins halves that belong together
    return "".join("\ufffd" if _bad(char) else char for char in whole)


def all_as_sent(value: Any) -> Any:
    """A value of JSON with each of its strings so."""
    if isinstance(value, str):
        return as_sent(value)
    if isinstance(value, dict):
        return {key: all_as_sent(item) for key, item in value.items()}
    return [all_as_sent(item) for item in value] if isinstance(value, list) else value


def _bad(text: str) -> bool:
    if text.isascii():
        return "\0" in text
    whole = json.loads(json.dumps(text))
    return any(char == "\0" or 0xD800 <= ord(char) < 0xE000 for char in whole)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [*filter(None, value), *(s for item in value.values() for s in _strings(item))]
    return [s for item in value for s in _strings(item)] if isinstance(value, list) else []
