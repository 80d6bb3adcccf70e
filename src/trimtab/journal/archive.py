"""What was taken out of a conversation, as a look-up sees it: step by step, newest first.

A fold's original is a list of messages and has its steps; any other is one text, mostly the result
of one call.  Steps say what they were in the words of the record that a note shows of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from trimtab import formats
from trimtab.errors import TrimtabError, UnknownHandle
from trimtab.journal.folded_steps import FoldedStep, folded_steps
from trimtab.lazy import cached_property
from trimtab.planning.edits import groups_of
from trimtab.planning.lines import lines_of
from trimtab.planning.record import Entry, edits_of
from trimtab.transcript.call_arguments import read_call
from trimtab.transcript.model import Block, Edit, Place
from trimtab.transcript.tool_calls import CallReader, ToolCall, calls_of
from trimtab.transcript.transcript import Transcript

CHARS_A_TOKEN = 4
"""For sizes that a model is told; a count would cost more than it is worth there."""


class Originals(Protocol):
    """Anything that returns originals: a ``Session``, a ``Fitted``, a store's reader.

    With an attribute ``archive``, the originals of the conversation, newest first, it can be
    listed and searched too.
    """

    def recall(self, handle: str) -> str:
        """The exact original.  Raises UnknownHandle."""
        ...


class ByHandle:
    """Originals by handle alone, where the conversation is not known: nothing is listed."""

    def __init__(self, originals: Originals) -> None:
        self._originals = originals

    def recall(self, handle: str) -> str:
        """See ``Originals``."""
        return self._originals.recall(handle)


class Archived(NamedTuple):
    """An original by its handle, and what it was as far as the door knows: of a block of a call its
    ``tool`` and the ``call``'s arguments; ``kind`` is the block's ("": unknown, or several);
    ``steps`` counts the whole steps of a fold."""

    handle: str
    kind: str = ""
    tool: str = ""
    call: str = ""
    steps: int = 0

    def __repr__(self) -> str:
        named = ("kind", "tool", "call", "steps")
        known = [f"{name}={value!r}" for name in named if (value := getattr(self, name))]
        return f"Archived({', '.join([repr(self.handle), *known])})"


def archive_of(originals: Originals) -> Iterable[Archived] | None:
    """What was taken out, newest first; None where only handles are answered."""
    return getattr(originals, "archive", None)


def of_edits(edits: Iterable[Edit]) -> tuple[Archived, ...]:
    """The originals that edits of a journal stand for, newest first: of each block the last."""
    archived, claimed = dict[str, Archived](), set[str]()
    for edit in reversed(tuple(edits)):
        new = not claimed.issuperset(edit.targets)
        claimed.update(edit.targets)
        if new and edit.handle and edit.op not in ("restore", "insert"):
            steps = edit.figures.steps if edit.figures else 0
            archived.setdefault(edit.handle, Archived(edit.handle, steps=steps))
    return tuple(archived.values())


def of_transcript(
    transcript: Transcript, edits: Iterable[Edit], more: Iterable[str] = ()
) -> tuple[Archived, ...]:
    """The originals of these edits, and those that markers in the transcript name (a client that
    keeps what was sent sends them the next time), by their place in the conversation, the newest
    first; then those of the handles in ``more``."""
    placed = dict[str, tuple[Place, Archived]]()
    for edit in edits:
        places = [transcript.refs[ref] for ref in edit.targets if ref in transcript.refs]
        if places and edit.handle and edit.op != "insert":
            last = max(places, key=_position)
            several = len(edit.targets) > 1 or edit.op in ("drop", "fold")
            archived = Archived("") if several else _of_place(transcript, last)
            steps = len(groups_of(transcript, edit) or ()) if edit.op in ("drop", "fold") else 0
            placed[edit.handle] = last, archived._replace(handle=edit.handle, steps=steps)
    for place in transcript.places():
        for handle in marked(place.block.text):
            if handle not in placed:
                placed[handle] = place, _of_place(transcript, place)._replace(handle=handle)
    newest = sorted(placed.values(), key=lambda one: _position(one[0]), reverse=True)
    archived_last = [Archived(handle) for handle in more if handle not in placed]
    return (*(one for _, one in newest), *archived_last)


_MARKER = re.compile(r'recall\("(\w{1,64})"\)')


def marked(text: str) -> list[str]:
    """The handles that markers in a text name.  A text may imitate one: whoever asks for such a
    handle finds that nothing is kept under it."""
    return _MARKER.findall(text) if "recall(" in text else []


def with_markers(text: str, markers: Mapping[str, str]) -> str:
    """The text with other words for the markers of these handles; those of any other stay."""
    return _MARKER.sub(lambda found: markers.get(found[1], found[0]), text)


def unmarked(originals: Originals, text: str) -> str:
    """The original of a text in which there is a marker, as a client that keeps what was sent has
    it; any other text as it is."""
    for handle in marked(text):
        try:
            return originals.recall(handle)
        except UnknownHandle:
            continue
    return text


def _position(place: Place) -> tuple[int, int]:
    return place.message, place.index


def _of_place(transcript: Transcript, place: Place) -> Archived:
    """What a block was, without its handle."""
    block, call = place.block, ""
    if block.kind == "result":
        number = transcript.group_number(place.message, place.index)
        group = () if number is None else transcript.groups[number].places
        call = next((p.block.text for p in group if _is_call_of(p.block, block)), "")
    kind = "user" if _is_user(transcript, place) else block.kind
    return Archived("", kind, transcript.tool(place) or "", call)


def _is_call_of(call: Block, result: Block) -> bool:
    same = call.call_id == result.call_id if result.call_id else call.tool == result.tool
    return call.kind == "call" and same


def _is_user(transcript: Transcript, place: Place) -> bool:
    there = transcript.messages[place.message] if place.message >= 0 else None
    return place.block.kind == "text" and there is not None and there.role == "user"


@dataclass(frozen=True)
class ArchivedStep:
    """One step of what was taken out; ``number`` is 0 where the original is one text.

    ``text`` is what ``recall`` gives of it, and places within a step are places there.
    """

    archived: Archived
    text: str
    folded: FoldedStep | None = None

    @property
    def number(self) -> int:
        """Its number in the fold, as a note counts; 0 outside of one."""
        return self.folded.number if self.folded else 0

    @property
    def name(self) -> str:
        """``recall("r…", steps="3")`` without the quotes and names: how it is asked for."""
        handle = self.archived.handle
        return f"{handle} step {self.number}" if self.number else handle

    @property
    def offset(self) -> int:
        """Where its text begins in the original."""
        return self.folded.start - 1 if self.folded else 0

    @property
    def tokens(self) -> int:
        """About its tokens."""
        return len(self.text) // CHARS_A_TOKEN

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Its calls, as a note's record has them; () for what is no call."""
        if self.folded is not None:
            return tuple(_entries(self.text, self.number))
        one = self.archived
        if one.kind != "result" or not one.tool:
            return ()
        block = Block("call", (), (), one.call, tool=one.tool, label=one.tool)
        lines = self.text.count("\n") + 1
        call = ToolCall(
            read_call(one.tool, one.call), one.tool, 0, closed=True, texts=(self.text,),
            lines=lines, chars=len(self.text),
        )  # fmt: skip
        return (Entry(0, 0, call, lines_of(block).header, edits_of(call, block)),)

    @property
    def about(self) -> str:
        """``Bash python -m pytest -q → exit 1, 94 lines``; of what is no call the speaker or the
        first line."""
        if self.entries:
            return "; ".join(entry.head.partition(" ")[2] for entry in self.entries)
        if self.folded is not None:
            return "; ".join(self.folded.calls) or self.folded.first_line or "no text"
        one = self.archived
        if one.tool:
            return f"{one.tool}: arguments of its call"
        whose = {"user": "the user: ", "text": "the model: ", "system": "system prompt: "}
        return whose.get(one.kind, "") + _first_line(self.text)


LINE_CHARS = 80


def _first_line(text: str) -> str:
    line = next((line for line in text[:4_000].splitlines() if line.strip()), "").strip()
    bare = "".join(c if c.isprintable() else " " for c in line)
    return bare if len(bare) <= LINE_CHARS else bare[: LINE_CHARS - 1] + "…"


def _entries(text: str, number: int) -> Iterator[Entry]:
    """The calls of a step's messages; none where its format is not known by its shape."""
    try:
        tree = json.loads(text)
        transcript = formats.read(tree, formats.find(tree)[0])
        groups = transcript.groups
    except (TrimtabError, ValueError, TypeError, AttributeError, KeyError, IndexError):
        return
    reader = CallReader()
    for group in groups:
        for call in calls_of(transcript, reader, group, 0):
            block = transcript.at(*call.inputs[0]).block
            yield Entry(number, 0, call, lines_of(block).header, edits_of(call, block))


def steps_of_archive(
    originals: Originals, archive: Iterable[Archived], most: int
) -> Iterator[ArchivedStep]:
    """All steps, newest first, each once; at most ``most`` characters of originals are read.

    A later fold holds again what an earlier one held.  An original that is not to be had is passed
    over.  Raises StoreError if none can be read.
    """
    seen = set[tuple[str, str, str]]()
    for one in archive:
        try:
            text = originals.recall(one.handle)
        except UnknownHandle:
            continue
        most -= len(text)
        if most < 0:
            return
        for step in steps_in(one, text):
            what = (one.tool, one.call, step.text)
            if what not in seen:
                seen.add(what)
                yield step


def steps_in(archived: Archived, text: str) -> list[ArchivedStep]:
    """The steps of one original, newest first; the original itself where it has none."""
    folded = folded_steps(text)
    return [
        ArchivedStep(archived, f"[{text[step.start : step.end]}]", step)
        for step in reversed(folded)
    ] or [ArchivedStep(archived, text)]
