"""Shows a request, or part of one, as statements with their speakers, without the format's JSON.

Uses the library's own readers, so it knows every format.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from trimtab.errors import TrimtabError
from trimtab.formats import FORMATS
from trimtab.jsontext import paths
from trimtab.transcript.model import Block

MAX_STATEMENTS = 60
STATEMENT_CHARS = 6_000
SHOWN_CHARS = 60_000
_SPEAKERS = {"assistant": "model", "tool": "tool"}


class Statement(NamedTuple):
    """One text and its speaker: ``kind`` is user, model, tool or system."""

    kind: str
    speaker: str
    text: str


class Statements(NamedTuple):
    """Statements, and the number of those before them."""

    rows: tuple[Statement, ...]
    earlier: int

    @property
    def last(self) -> Statements:
        """The last of them."""
        return Statements(self.rows[-MAX_STATEMENTS:], max(len(self.rows) - MAX_STATEMENTS, 0))


def statements(text: str, format: str) -> Statements | None:
    """The messages of a JSON text: a request or a list of messages; None if it is neither."""
    try:
        tree = paths.parse(text)
        reader = FORMATS[format.partition(":")[0]]
        messages = paths.get(tree, reader.base(tree))
        head = reader.read_head(tree) if isinstance(tree, dict) else ()
        spoken = [(message.role, message.blocks) for message in map(reader.read_message, messages)]
    except (TrimtabError, LookupError, TypeError, ValueError, AttributeError):
        return None
    rows = [_statement("system", block) for block in head]
    rows += [_statement(role, block) for role, blocks in spoken for block in blocks]
    shown = [row for row in rows if row.text or row.kind != "user"]
    return Statements(tuple(shown), 0)


def _statement(role: str, block: Block) -> Statement:
    kind = _SPEAKERS.get(role, role)
    if block.kind == "call":
        return Statement(
            "model", f"model calls {block.tool or block.label}", _cut(_flat(block.text))
        )
    if block.kind == "result":
        failed = " (an error)" if block.error else ""
        of = f" of {block.tool}" if block.tool else ""
        return Statement("tool", f"result{of}{failed}", _cut(block.text))
    if block.kind == "reasoning":
        return Statement("model", "model thinks", _cut(block.text) or "(sealed)")
    if block.kind == "media":
        return Statement(kind, f"{kind}: {block.media or 'media'}", "")
    if block.kind == "tools":
        return Statement("system", "tools", _cut(block.text))
    return Statement(kind, kind, _cut(block.text))


def _flat(arguments: str) -> str:
    """``{"command": "ls"}`` → ``command: ls``; anything else as it is."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    if not isinstance(values, dict):
        return arguments
    return "\n".join(f"{name}: {_plain(value)}" for name, value in values.items())


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    if len(text) <= STATEMENT_CHARS:
        return text
    return f"{text[:STATEMENT_CHARS]}\n… {len(text) - STATEMENT_CHARS:,} more characters"


def indented(text: str) -> str:
    """JSON with a line for each value; any other text as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def cut(value: str) -> str:
    """The beginning of a text, as much as a page shows."""
    if len(value) <= SHOWN_CHARS:
        return value
    note = f"\n… {len(value) - SHOWN_CHARS:,} more characters: trimtab recall has them all"
    return value[:SHOWN_CHARS] + note
