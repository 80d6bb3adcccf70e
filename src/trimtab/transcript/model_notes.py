"""What the model noted down to keep: its own calls of our tool ``note``, and our answers to them.

The call and its result are the note; nothing else holds one.  So only the model can write one: what
a tool returned is never a call.  A tool of the client with the same name is none of ours: ours is
known by its description among the request's tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from trimtab.errors import InvalidRequest
from trimtab.jsontext.parsing import parse
from trimtab.transcript.call_arguments import strings_in
from trimtab.transcript.model import Block, Place
from trimtab.transcript.transcript import Transcript

NAME = "note"
MAX_NOTES, MAX_CHARS, NAME_CHARS = 20, 2_000, 80
DESCRIPTION = (
    "Keeps a text of yours in this conversation word for word when older steps are shortened: what "
    "was decided, what is still to be done, values that you will need. One text a name: a new one "
    "replaces it, an empty one deletes it."
)
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "a short name"},
        "text": {"type": "string", "description": f"at most {MAX_CHARS:,} characters"},
    },
    "required": ["name", "text"],
}
"""The same bytes in every request and release."""
_TOLD = json.dumps(DESCRIPTION)


class ModelNote(NamedTuple):
    """The newest note of a name: its text, and the places of its call and result."""

    name: str
    text: str
    places: tuple[Place, ...]


class Noted(NamedTuple):
    """The answer to a call, and whether it reports that nothing was kept."""

    text: str
    failed: bool = False


def noted(known: Iterable[str], arguments: Mapping[str, Any]) -> Noted:
    """Answer a call; ``known``: the names that the conversation has already.  Never raises."""
    given = _given(arguments)
    if given is None:
        return Noted("Nothing is kept: give a name and a text", failed=True)
    name, text = given
    others = {one for one in known if one != name}
    if len(name) > NAME_CHARS:
        return Noted(f"Nothing is kept: a name has at most {NAME_CHARS} characters", failed=True)
    if len(text) > MAX_CHARS:
        return Noted(
            f"Nothing is kept: the text has {len(text):,} characters, at most {MAX_CHARS:,} are",
            failed=True,
        )
    if text and len(others) >= MAX_NOTES:
        return Noted(
            f"Nothing is kept: there are {len(others)} notes, at most {MAX_NOTES} are. Write over "
            f"one, or delete it with an empty text: {', '.join(sorted(others))}",
            failed=True,
        )
    return Noted(answer_to(name, text))


def names_in_calls(calls: Iterable[Mapping[str, Any]]) -> set[str]:
    """The names that these arguments of calls, oldest first, leave with a text."""
    texts = dict(given for call in calls if (given := _given(call)) is not None)
    return {name for name, text in texts.items() if text and len(text) <= MAX_CHARS}


def answer_to(name: str, text: str) -> str:
    """What a call is answered whose text is kept, or whose name is deleted."""
    return f"Kept: {name}" if text else f"Deleted: {name}"


def _given(arguments: Any) -> tuple[str, str] | None:
    name, text = (
        (arguments.get("name"), arguments.get("text"))
        if isinstance(arguments, Mapping)
        else ("", "")
    )
    if not isinstance(name, str) or not isinstance(text, str) or not name.strip():
        return None
    return " ".join(name.split()), text.strip()


def model_notes(transcript: Transcript) -> tuple[ModelNote, ...]:
    """The notes of a conversation that are kept, newest first; none where our tool is not among the
    request's tools."""
    tool = declared_name(transcript.head)
    if tool is None:
        return ()
    notes = dict[str, ModelNote]()
    for group in reversed(transcript.groups):
        for note in reversed([*_notes_in(group.places, tool)]):
            notes.setdefault(note.name, note)
    return tuple(note for note in notes.values() if note.text)[:MAX_NOTES]


def declared_name(head: Iterable[Block]) -> str | None:
    """The name under which a request declares our tool (a client may prefix it); None if not."""
    for block in head:
        if block.kind == "tools" and _TOLD in block.text:
            return _name_in(json.loads(block.text))
    return None


def _name_in(tree: Any) -> str | None:
    if isinstance(tree, dict):
        if tree.get("description") == DESCRIPTION and isinstance(tree.get("name"), str):
            return str(tree["name"])
        tree = list(tree.values())
    names = map(_name_in, tree if isinstance(tree, list) else ())
    return next(filter(None, names), None)


def _texts(result: str) -> tuple[str, ...]:
    """What a result says: its text, and the strings in it where it is JSON."""
    try:
        tree = parse(result) if result.startswith("{") else None
    except InvalidRequest:
        tree = None
    return (result, *(text for _, text in strings_in(tree)))


def _notes_in(places: Iterable[Place], tool: str) -> Iterator[ModelNote]:
    """The notes of one step, those that were answered as kept or deleted."""
    results = list[Place]()
    calls = list[Place]()
    for place in places:
        if place.block.kind == "result":
            results.append(place)
        elif place.block.kind == "call" and place.block.tool == tool:
            calls.append(place)
    for call in calls:
        try:
            given = _given(parse(call.block.text))
        except InvalidRequest:
            continue
        if given is None:
            continue
        wanted = answer_to(*given)
        for result in results:
            same = result.block.call_id == call.block.call_id
            if same and wanted in _texts(result.block.text):
                results.remove(result)
                yield ModelNote(*given, (call, result))
                break
