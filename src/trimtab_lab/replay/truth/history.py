"""The recorded history as the judge of notes knows it: steps, and where each line occurs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from trimtab.transcript.model import Block, Message
from trimtab_lab.replay.truth.recorded_edits import (
    EDIT_KEYS,
    PATH_KEYS,
    RecordedEdit,
    arguments_of,
    edits_of,
    path_of,
    stripped_lines,
)

MIN_CHARS = 12
"""Shorter lines (braces, "return") say too little to have a source."""
MIN_CUT_CHARS = 24
"""The least of a line that was cut off by which it is still found."""
_NUMBER = re.compile(r"\s*\d+(?:→|\t|: | ?\| ?)")
"""What tools that read files write before a line."""
_FAILED = re.compile(
    r"\s*(?:<tool_use_error>|error\b|failed\b|apply_patch verification failed|no replacement|"
    r"the user doesn't want|\[no result)",
    re.IGNORECASE,
)
_OBJECT_KEYS = ("command", "cmd", "pattern", "query", "url", *PATH_KEYS)
_OTHER_OBJECT_KEYS = ("description", "prompt", "subject", "skill", "name", "title", "taskId")

Kind = Literal["result", "argument", "old", "new", "said", "user"]


class Origin(NamedTuple):
    """One place where a line occurs.  ``step``: number of the call, −1 for what was said."""

    kind: Kind
    step: int
    message: int


@dataclass
class RecordedCall:
    """One call: what it was applied to (``objects``), the files it names, what it changed.

    ``number`` counts calls, ``turn`` the model's turns, both from 0.  ``failed``:
    its result is an error, so what it would have changed stayed as it was.
    """

    number: int
    turn: int
    message: int
    tool: str
    arguments: Mapping[str, Any]
    objects: tuple[str, ...]
    files: tuple[str, ...]
    edits: tuple[RecordedEdit, ...]
    results: list[str] = field(default_factory=list)
    failed: bool = False
    answered: int = -1
    """The message with the result."""

    @property
    def reads(self) -> str:
        """The file whose content its result shows; "" if it edits, or names no single file."""
        return self.files[0] if len(self.files) == 1 and not self.edits else ""


class RecordedHistory:
    """All steps and lines of one recording, in order."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.steps: list[RecordedCall] = []
        self.origins: dict[str, list[Origin]] = {}
        self.texts: set[tuple[str, str]] = set()
        """(speaker, text) of everything that was said."""
        self.ids: dict[str, list[int]] = {}
        """Id of a call → numbers of the steps that have it."""
        self._turns = list(_turns(messages))
        for number, message in enumerate(messages):
            for block in message.blocks:
                self._add(number, message.role, block)
        for step in self.steps:
            if not step.failed:
                self._add_edits(step)
        self.tools = frozenset(step.tool for step in self.steps if step.tool)
        self.files = frozenset(file for step in self.steps for file in step.files)
        self._tails = _tails(self.files)
        self._sorted = sorted(line for line in self.origins if len(line) >= MIN_CUT_CHARS)

    def before(self, message: int) -> int:
        """How many steps were called before a message."""
        return bisect_left([step.message for step in self.steps], message)

    # --- looking up ---------------------------------------------------------------------------

    def find(self, line: str) -> list[Origin]:
        """Where a line occurs, whole, without its number, or cut off where it ends with "…"."""
        for one in spellings(line):
            if found := self.origins.get(one):
                return found
        cut, mark, _ = line.strip().partition("…")
        cut = cut.rstrip(" [(")
        cut_found = list[Origin]()
        if mark and len(cut) >= MIN_CUT_CHARS:
            for at in range(bisect_left(self._sorted, cut), len(self._sorted)):
                if not self._sorted[at].startswith(cut):
                    break
                cut_found += self.origins[self._sorted[at]]
        return cut_found

    def named_files(self, text: str) -> frozenset[str]:
        """The files that a text names by path, by an end of it that no other file has, or by its
        beginning cut off with "…"."""
        named = set[str]()
        for token in re.finditer(r"[\w./@+~:-]+(?: ?…)?", text.replace("\\", "/")):
            word = token[0]
            if word.endswith("…"):
                cut = word.rstrip("… ")
                if len(cut) >= MIN_CHARS and "/" in cut:
                    named.update(file for file in self.files if file.startswith(cut))
                continue
            if ":" in word:
                word = re.sub(r":\d[\d:-]*$", "", word.rstrip(".:").lstrip(":~"))
            found = self._tails.get(word.strip(":").removeprefix("./").strip("/").rstrip("."), ())
            if len(found) == 1:
                named.update(found)
        return frozenset(named)

    # --- reading ------------------------------------------------------------------------------

    def _add(self, number: int, role: str, block: Block) -> None:
        if block.kind == "call":
            self._add_call(number, block)
        elif block.kind == "result":
            self._add_result(number, block)
        elif block.kind == "text" and role in ("user", "assistant"):
            speaker: Kind = "user" if role == "user" else "said"
            self.texts.add((role, block.text))
            self._note(block.text, Origin(speaker, -1, number))

    def _add_call(self, number: int, block: Block) -> None:
        tool, arguments = block.label or block.tool or "", arguments_of(block.text)
        edits = edits_of(tool, arguments)
        path = path_of(arguments)
        is_file = "." in path.rsplit("/", 1)[-1]
        files = [edit.file for edit in edits] or ([path] if is_file else [])
        step = RecordedCall(
            len(self.steps),
            self._turns[number],
            number,
            tool,
            arguments,
            _objects(arguments, files),
            tuple(files),
            edits,
        )
        self.steps.append(step)
        self.ids.setdefault(block.call_id or "", []).append(step.number)
        for key, value in arguments.items():
            if key not in EDIT_KEYS:
                for text in _texts(value):
                    self._note(text, Origin("argument", step.number, number))

    def _add_result(self, number: int, block: Block) -> None:
        owners = self.ids.get(block.call_id or "")
        if owners:
            step = self.steps[owners[-1]]
            step.results.append(block.text)
            step.answered = number
            step.failed |= block.error or _FAILED.match(block.text) is not None
            self._note(block.text, Origin("result", step.number, number))

    def _add_edits(self, step: RecordedCall) -> None:
        for edit in step.edits:
            for kind, lines in (("old", edit.old), ("new", edit.new)):
                for line in lines:
                    self._put(line, Origin(kind, step.number, step.message))  # type: ignore[arg-type]

    def _note(self, text: str, origin: Origin) -> None:
        for line in stripped_lines(text):
            for one in spellings(line):
                self._put(one, origin)

    def _put(self, line: str, origin: Origin) -> None:
        if len(line) >= MIN_CHARS:
            known = self.origins.setdefault(line, [])
            if origin not in known[-4:]:
                known.append(origin)


def _turns(messages: Sequence[Message]) -> Iterator[int]:
    """The number of the model's turn that each message belongs to or follows, from 0."""
    number, may_begin = -1, True
    for message in messages:
        if message.results or message.role == "user":
            may_begin = True
        elif may_begin and message.role != "system":
            number, may_begin = number + 1, False
        yield number


def spellings(line: str) -> Iterator[str]:
    """A line without blanks around it, and without the number before it."""
    yield line.strip()
    if found := _NUMBER.match(line):
        yield line[found.end() :].strip()


def _objects(arguments: Mapping[str, Any], files: Sequence[str]) -> tuple[str, ...]:
    """What names a call: its command, pattern or path, and its description; else all it says."""
    if files and any(key in arguments for key in EDIT_KEYS):
        return tuple(files)
    strings = {key: " ".join(v.split()) for key, v in arguments.items() if isinstance(v, str)}
    first = [strings[key] for key in _OBJECT_KEYS if strings.get(key)]
    if len(first) > 1 and " " not in first[0] and strings.get("command") == first[0]:
        first = first[1:]  # "view", "create": a verb of the editor, not a shell's command
    also = [strings[key] for key in _OTHER_OBJECT_KEYS if strings.get(key)]
    if first or also:
        return (*first[:1], *also, *files)
    return (*files, *(value for value in strings.values() if value), *map(str, _plain(arguments)))


def _plain(arguments: Mapping[str, Any]) -> Iterator[str]:
    yield from (str(v) for v in arguments.values() if isinstance(v, int | float))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _tails(files: Iterable[str]) -> dict[str, set[str]]:
    """Each end of a path (whole names) → the files that end so."""
    tails: dict[str, set[str]] = {}
    for file in files:
        names = file.replace("\\", "/").strip("/").split("/")
        for start in range(len(names)):
            tails.setdefault("/".join(names[start:]), set()).add(file)
    return tails
