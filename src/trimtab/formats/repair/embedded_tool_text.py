"""Quotes tool output within a user's message, so that it is read as text, not as a result.

It recognises the forms in which frameworks write tool output into text.  Nothing is ever turned
into a tool result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from trimtab.formats.engine.rule import Repair, Repaired, repair_keys
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Path, PathOp, Set
from trimtab.transcript.transcript import Transcript

RULE = "embedded_tool_text"
NOTE = "[quoted text, not a tool result]"
ID_KEYS = ("tool_call_id", "tool_use_id", "toolUseId", "toolCallId")
_EXECUTION = "tool_execution"
_LABELLED = re.compile(
    r"^(?P<label>[ \t]*(?:tool|function)(?:[ _-]?(?:call|use|result|output|response|execution))?"
    r"(?:[ \t(]{1,2}[\w.:/-]{1,64}\)?)?[ \t]*:[ \t]*(?:\n[ \t]*)?)\{",
    re.IGNORECASE | re.MULTILINE,
)
_OBJECT = re.compile(r"^[ \t]*\{", re.MULTILINE)
_MAX = 200
"""The most JSON objects examined in one text, because each may extend to its end."""
_KEY = re.compile(r'"tool_execution"\s*:')


def quote_tool_text(text: str, whole: bool = False) -> str:
    """The text with a quote mark and a note before each embedded tool text; unchanged if none.

    ``Tool: {json}`` (and ``Tool result:``, ``Function x:`` …) and JSON objects that hold
    ``tool_execution``, each from the beginning of a line.  ``whole``: all of it is tool text.  A
    quoted text is left alone: its lines no longer begin so.

    >>> quote_tool_text('Look: \\nTool: {"ok": true}')
    'Look: \\n> [quoted text, not a tool result] Tool: {"ok": true}'
    """
    if whole:
        return text if text.startswith("> ") or not text.strip() else f"> {NOTE} {text}"
    starts = sorted({*_labelled(text), *_executions(text)})
    for start in reversed(starts):
        text = f"{text[:start]}> {NOTE} {text[start:]}"
    return text


def _labelled(text: str) -> list[int]:
    """Positions of ``Tool: {…}`` and the like, if followed by a JSON object."""
    if "{" not in text:
        return []
    return [
        match.start()
        for match in islice(_LABELLED.finditer(text), _MAX)
        if _object(text, match.end() - 1) is not None
    ]


def _executions(text: str) -> list[int]:
    """Positions of JSON objects that have ``tool_execution`` at the top level or in a member."""
    if not _KEY.search(text):
        return []
    starts, end, tries = list[int](), 0, 0
    for match in _OBJECT.finditer(text):
        if match.start() < end:
            continue
        tries += 1
        parsed = _object(text, match.end() - 1)
        if tries > _MAX:
            break
        if parsed is None:
            continue
        value, end = parsed
        inner = [value, *(member for member in value.values() if isinstance(member, dict))]
        if any(_EXECUTION in member for member in inner):
            starts.append(match.start())
    return starts


def _object(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    return (value, end) if isinstance(value, dict) and value else None


def quote_repairs(transcript: Transcript, tree: Any) -> list[Repair]:
    """A repair for each user message with tool text: quote its texts, and remove a call's id from
    its metadata."""
    messages = paths.get(tree, transcript.base) if transcript.messages else []
    repairs = []
    for number, message in enumerate(transcript.messages):
        if message.role != "user":
            continue
        base = (*transcript.base, number)
        marked = _marks(messages[number], base)
        ops: list[PathOp] = [Delete(path) for path in marked]
        taken: list[Path] = list(marked)
        for place in transcript.places_in(number):
            block = place.block
            if block.kind != "text" or block.sealed or block.spelling != "string":
                continue
            new = quote_tool_text(block.text, whole=bool(marked))
            if new != block.text:
                ops.append(Set(transcript.where(place), new))
                taken.append(transcript.where(place))
        if ops:
            done = "tool text in a user's message: quoted, so that it is no tool result"
            repairs.append(Repair(taken[-1], done, tuple(ops), tuple(taken)))
    return repairs


def _marks(message: Any, base: Path) -> list[Path]:
    """Paths of call ids in the metadata of a user's message."""
    about = message.get("metadata") if isinstance(message, dict) else None
    if not isinstance(about, dict):
        return []
    return [(*base, "metadata", key) for key in ID_KEYS if key in about]


def with_quotes(done: Repaired, quotes: Sequence[Repair]) -> Repaired:
    """``done`` with the quotes as one more pass; its transcript must be read again."""
    at, first, ops = (
        len(done.passes),
        len(done.repairs),
        [op for repair in quotes for op in repair.ops],
    )
    taken = [
        (first + index, path, paths.get(done.tree, path))
        for index, repair in enumerate(quotes)
        for path in repair.taken
    ]
    tree = paths.apply(done.tree, ops)
    return Repaired(
        tree=tree,
        transcript=done.transcript,
        repairs=[*done.repairs, *((RULE, repair) for repair in quotes)],
        at=[*done.at, *(at for _ in quotes)],
        passes=[*done.passes, tuple(ops)],
        taken=[*done.taken, *taken],
        trees=[*done.trees, tree],
        keys=[*done.keys, *repair_keys(done, quotes)],
        found=done.found,
    )
