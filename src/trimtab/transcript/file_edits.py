"""What a call changed in files, read from its arguments: old and new text of each place.

It knows the edit and write tools of common agents and patches in both notations.  What a command
changes (``sed -i``, a formatter) cannot be known.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from trimtab.errors import InvalidRequest
from trimtab.jsontext.parsing import parse
from trimtab.transcript.call_arguments import (
    CONTENT_KEYS,
    OLD_KEYS,
    PATCH_MARKS,
    PATH_KEYS,
    plain_key,
    slashed,
)

_NEW_KEYS = frozenset(("newstring", "newtext", "newstr", "newsource", "insertedtext"))
_ADDED, _DELETED, _MOVED = "*** Add File: ", "*** Delete File: ", "*** Move to: "
_FILE_HEADS = (_ADDED, _DELETED, _MOVED, "*** Update File: ", "*** End Patch")
_NO_FILE = "/dev/null"


class FileEdit(NamedTuple):
    """One place that a call changed.  ``whole``: ``new`` is the whole file, "" if it is gone."""

    path: str
    old: str
    new: str
    whole: bool = False


def file_edits(text: str, *, free: bool = False, writes: bool = False) -> list[FileEdit]:
    """The edits in a call's arguments, in order; ``free``: plain text, not JSON; ``writes``: the
    call writes whole files.

    >>> file_edits('{"path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}')
    [FileEdit(path='a.py', old='x = 1', new='x = 2', whole=False)]
    """
    try:
        tree = None if free else parse(text)
    except InvalidRequest:
        tree = None
    if tree is None:
        return list(_patched(text))
    return list(_edits(tree, "", writes))


def _edits(tree: Any, path: str, writes: bool) -> Iterator[FileEdit]:
    if isinstance(tree, list):
        for item in tree:
            yield from _edits(item, path, writes)
        return
    if isinstance(tree, str):
        yield from _patched(tree)
        return
    if not isinstance(tree, dict):
        return
    plain = {plain_key(key): value for key, value in tree.items()}
    named = next((plain[key] for key in plain if key in PATH_KEYS), None)
    path = slashed(named) if isinstance(named, str) and named else path
    old, new = _text(plain, OLD_KEYS), _text(plain, _NEW_KEYS)
    content = _text(plain, CONTENT_KEYS)
    if path and (old is not None or new is not None):
        yield FileEdit(path, old or "", new or "")
    elif path and content is not None and writes:
        yield FileEdit(path, "", content, whole=True)
    for value in tree.values():
        if not isinstance(value, str) or any(mark in value for mark in PATCH_MARKS):
            yield from _edits(value, path, writes)


def _text(plain: dict[str, Any], keys: frozenset[str]) -> str | None:
    return next((v for key, v in plain.items() if key in keys and isinstance(v, str)), None)


def _patched(text: str) -> Iterator[FileEdit]:
    """The edits of a patch, one for each file in it."""
    if any(mark in text for mark in PATCH_MARKS):
        lines = text.split("\n")
        yield from _of_patch(lines) if "\n*** " in f"\n{text}" else _of_diff(lines)


def _of_patch(lines: list[str]) -> Iterator[FileEdit]:
    """The edits of a patch in Codex' notation; a file that moves is gone at its old path."""
    path, whole, moved, old, new = "", False, False, list[str](), list[str]()
    for line in [*lines, "*** End Patch"]:
        head = next((head for head in _FILE_HEADS if line.startswith(head)), "")
        if not head:
            _add(line, old, new)
            continue
        name = slashed(line[len(head) :].strip())
        if head == _MOVED and name != path:
            yield FileEdit(path, "", "", whole=True)
            path, moved = name, True
            continue
        if path and (old or new or whole or moved):
            yield FileEdit(path, "\n".join(old), "\n".join(new), whole)
        path, whole, moved, old, new = name, head in (_ADDED, _DELETED), False, [], []


def _of_diff(lines: list[str]) -> Iterator[FileEdit]:
    """The edits of a unified diff."""
    heads = [
        n
        for n in range(len(lines) - 1)
        if lines[n].startswith("--- ") and lines[n + 1].startswith("+++ ")
    ]
    for begin, end in pairwise([*heads, len(lines)]):
        before, after = _diff_name(lines[begin], "a/"), _diff_name(lines[begin + 1], "b/")
        path = before if after == _NO_FILE else after
        whole, old, new = _NO_FILE in (before, after), list[str](), list[str]()
        for line in lines[begin + 2 : end]:
            _add(line, old, new)
        if path and (old or new):
            yield FileEdit(path, "\n".join(old), "\n".join(new), whole)


def _add(line: str, old: list[str], new: list[str]) -> None:
    if line[:1] == "+":
        new.append(line[1:])
    elif line[:1] == "-":
        old.append(line[1:])


def _diff_name(line: str, prefix: str) -> str:
    name = line[4:].partition("\t")[0].strip().removeprefix(prefix)
    return slashed(name) if name else ""
