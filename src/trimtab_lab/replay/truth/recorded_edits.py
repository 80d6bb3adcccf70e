"""Which recorded calls edit files: old and new lines per file, by the shape of the arguments.

Read are Claude Code's Edit, MultiEdit, Write and NotebookEdit; Codex's apply_patch, as a function,
a custom tool or in a shell command; pi's edit and write; OpenHands' str_replace_editor; any other
tool whose arguments name a path and an old and a new text.  What a shell does otherwise to a file
(``sed -i``, checkouts, formatters) is not seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PATH_KEYS = (
    "file_path", "path", "filepath", "filePath", "notebook_path", "target_file", "relative_path",
    "absolute_path", "filename", "file",
)  # fmt: skip
_PAIRS = (
    ("old_string", "new_string"), ("old_str", "new_str"), ("oldText", "newText"),
    ("old_text", "new_text"), ("oldString", "newString"), ("search", "replace"),
    ("", "new_source"),
)  # fmt: skip
"""(key of the old text, key of the new text)."""
_WHOLE = ("content", "contents", "file_text")
"""Keys of a file's whole new text."""
EDIT_KEYS = frozenset(key for pair in _PAIRS for key in pair if key) | {*_WHOLE, "edits"}
"""Keys whose values are text of files."""
_WRITES = re.compile(r"write|create|save|edit|replace", re.IGNORECASE)
_PATCH = re.compile(r"\*\*\* Begin Patch\n.*?(?:\*\*\* End Patch|\Z)", re.DOTALL)
_PATCHED = re.compile(r"\*\*\* (?:Add|Update|Delete) File: (.+)")
_MOVED = re.compile(r"\*\*\* Move to: (.+)")


@dataclass(frozen=True)
class RecordedEdit:
    """One file changed by one call.  ``whole``: ``new`` is all that the file has now.  Lines are
    stripped; blank ones are left out."""

    file: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    whole: bool = False

    def added(self) -> frozenset[str]:
        """Lines that only the new text has."""
        return frozenset(self.new) - frozenset(self.old)

    def removes(self, line: str) -> bool:
        """Whether a line of the file is gone after this edit."""
        return line not in self.new and (self.whole or line in self.old)


def stripped_lines(text: str) -> tuple[str, ...]:
    """The lines of a text that are not blank, without blanks around them."""
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def arguments_of(text: str) -> Mapping[str, Any]:
    """A call's arguments; ``{"input": text}`` where they are no JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        return {"input": text}
    return value if isinstance(value, dict) else {"input": text}


def path_of(arguments: Mapping[str, Any]) -> str:
    """The file or folder that the arguments name; "" if none."""
    values = (arguments.get(key) for key in PATH_KEYS)
    return next((value for value in values if isinstance(value, str) and value), "")


def edits_of(tool: str, arguments: Mapping[str, Any]) -> tuple[RecordedEdit, ...]:
    """The edits of one call; empty if it changes no file that can be told."""
    path = path_of(arguments)
    if path and (pairs := [*_pairs(arguments)]):
        old = tuple(line for pair in pairs for line in stripped_lines(pair[0]))
        new = tuple(line for pair in pairs for line in stripped_lines(pair[1]))
        return (RecordedEdit(path, old, new),)
    whole = next((arguments[key] for key in _WHOLE if isinstance(arguments.get(key), str)), None)
    command = str(arguments.get("command", ""))
    if path and whole is not None and (_WRITES.search(tool) or _WRITES.search(command)):
        return (RecordedEdit(path, (), stripped_lines(whole), whole=True),)
    return tuple(
        edit
        for text in _strings(arguments.values())
        if "*** Begin Patch" in text and ("patch" in tool or "apply_patch" in text)
        for patch in _PATCH.findall(text)
        for edit in _patched(patch)
    )


def _pairs(arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(old text, new text) of each replacement; an insertion has no old text."""
    for old, new in _PAIRS:
        if isinstance(arguments.get(new), str):
            before = arguments.get(old, "")
            yield (before if isinstance(before, str) else ""), arguments[new]
            break
    edits = arguments.get("edits")
    for one in edits if isinstance(edits, list) else ():
        if isinstance(one, dict):
            yield from _pairs(one)


def _strings(values: Any) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Sequence):
            yield from _strings(value)


def _patched(patch: str) -> Iterator[RecordedEdit]:
    """The files of one patch in the notation of apply_patch."""
    file, old, new, whole = "", [""], [""], False
    for line in [*patch.splitlines(), "*** Delete File: "]:
        if found := _PATCHED.match(line) or re.match(r"\*\*\* Delete File: ()", line):
            if file:
                yield RecordedEdit(file, _kept(old), _kept(new), whole)
            file, old, new = found[1].strip(), [], []
            whole = not line.startswith("*** Update")
        elif moved := _MOVED.match(line):
            file = moved[1].strip()
        elif line[:1] == "-":
            old.append(line[1:])
        elif line[:1] == "+":
            new.append(line[1:])


def _kept(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line.strip() for line in lines if line.strip())
