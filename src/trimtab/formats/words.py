"""Words of all formats together, by their tables: for texts of which nobody knows the format."""

from __future__ import annotations

from typing import Any

from trimtab.formats.engine.parts import PartRow
from trimtab.formats.registry import FORMATS, MESSAGE_LISTS

_TABLES = [format.table for format in FORMATS.values()]
_ROWS = [row for table in _TABLES for row in table.rows]
ID_KEYS = frozenset(row.id[-1] for row in _ROWS if row.id)
"""Keys of the ids of calls and results."""
SIGNATURE_KEYS = frozenset(row.seal[-1] for row in _ROWS if row.seal and row.payload)
"""Keys of what seals a text."""
ARGUMENT_KEYS = tuple(dict.fromkeys(str(table.call[1].payload[-1]) for table in _TABLES))
"""Keys of a function's arguments."""
RESULT_KEYS = tuple(table.result[0] for table in _TABLES if table.by_key)
"""Keys by which a part is known as a result."""
LIST_KEYS = frozenset(
    key for table in _TABLES for key, rows in table.parts.items() if not isinstance(rows, PartRow)
)
"""Keys of a message that hold lists of parts."""


def messages_of(body: Any) -> list[Any]:
    """The messages of a body, or of a bare list of messages; a text in their place is the user's.
    [] where there is none."""
    values = [body.get(key) for key in MESSAGE_LISTS] if isinstance(body, dict) else [body]
    messages = next((value for value in values if value), None)
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return messages if isinstance(messages, list) else []


def content_of(message: Any) -> Any:
    """The parts of a message, or its text; None where it has none."""
    values = (message.get(key) for key in _CONTENT_KEYS) if isinstance(message, dict) else ()
    return next((value for value in values if value), None)


_CONTENT_KEYS = tuple(dict.fromkeys(table.content for table in reversed(_TABLES)))
