"""What a call changed in files, read from its arguments: old and new text of each place.

It knows the edit and write tools of common agents and patches in both notations.  What a command
changes (``sed -i``, a formatter) cannot be known.
"""

from __future__ import annotations

from collections.abc import Iterator
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

_NEW_KEYS = frozenset(("newstring", "newtext", "newstr", "insertedtext"))
_FILE_HEADS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ", "+++ ")


class FileEdit(NamedTuple):
    """One place that a call changed.  ``whole``: ``new`` is the whole file."""

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
    if not any(mark in text for mark in PATCH_MARKS):
        return
    path, whole, old, new = "", False, list[str](), list[str]()
    for line in [*text.split("\n"), "+++ "]:
        head = next((head for head in _FILE_HEADS if line.startswith(head)), "")
        if not head:
            if path and line[:1] == "+":
                new.append(line[1:])
            elif path and line[:1] == "-" and not line.startswith("--- "):
                old.append(line[1:])
            continue
        if path and (old or new):
            yield FileEdit(path, "\n".join(old), "\n".join(new), whole)
        if head != "*** Move to: ":
            old, new, whole = [], [], head.startswith("*** Add")
        name = line[len(head) :].partition("\t")[0].strip().removeprefix("b/")
        path = slashed(name) if name else ""
