"""Whether a conversion kept everything that it does not list as lost.

Compares what source and target say (atoms.py), by the losses and notes of the conversion; it uses
nothing else of the library.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from atoms import ERROR, atoms, canon

from trimtab.conversion import Converted

ADDED = ("(The conversation goes on.)", "Continue.", "(no content)", "(document)")
LABELS = ("[image (", "[document (", "[image of the result of ", "[document of the result of ")
CHANGED = {"json", "order", "system role", "arguments", "custom call", "name", "cache mark"}
"""Losses of form: the words are all there."""


def told(converted: Converted, request: Any) -> list[Any]:
    """What the source said, less what is listed as lost, with the roles that are listed."""
    system = [loss.path for loss in converted.losses if loss.what == "system role"]
    gone = {loss.path for loss in converted.losses if loss.what not in CHANGED}
    out = []
    for path, atom in atoms(request, converted.source):
        prefixes = {path[:size] for size in range(1, len(path) + 1)}
        if prefixes & gone:
            continue
        if atom[0] == "system" and any(place in prefixes for place in system):
            atom = ("user", *atom[1:])
        out.append(atom)
    return [atom for atom in map(plain, out) if atom]


def heard(converted: Converted) -> list[Any]:
    """What the target says, ids and names mapped back."""
    ids, names = converted.original_ids, converted.original_names
    moved = any(loss.what == "image in a result" for loss in converted.losses)
    out = []
    before: Any = ("", "", "")
    for _, atom in atoms(converted.request, converted.to):
        label, before = before[2], atom
        if moved and atom[:2] == ("user", "image") and str(label).startswith(LABELS[2]):
            continue  # a part of a result, which is listed
        if atom[0] in CALLS:
            name = names.get(atom[2], atom[2]) if atom[0] == "call" else atom[2]
            atom = (atom[0], ids[atom[1]], name, *atom[3:])
        out.append(atom)
    return [atom for atom in map(plain, out) if atom]


CALLS = ("call", "result", "result image")


def plain(atom: Any) -> Any:
    """The atom without the lines that stand for what could not go along; None if it is one."""
    if atom[1] == "text" and (atom[2] in ADDED or atom[2].startswith(LABELS)):
        return None
    if atom[0] == "result":
        return (*atom[:3], tuple(text for text in atom[3] if not text.startswith(LABELS)))
    return atom


def assert_nothing_is_missing(converted: Converted, request: Any) -> None:
    """Equal in order; where a note says that something moved, equal as a bag."""
    before, after = told(converted, request), heard(converted)
    whats = {loss.what for loss in converted.losses}
    if "order" in whats or any("moved right behind" in note for note in converted.notes):
        before, after = sorted(before, key=canon), sorted(after, key=canon)
    assert after == before


def assert_same_again(there: Converted, back: Converted, request: Any) -> None:
    """There and back is the same in order, less what is listed on either way."""
    listed = any(loss.what in ("order", "image in a result") for loss in there.losses)
    if listed or any("moved right behind" in note for note in there.notes):
        return  # judged by each way alone
    ids = {new: there.original_ids[old] for new, old in back.original_ids.items()}
    names = {**there.original_names}
    gone = {loss.path for loss in there.losses if loss.what not in CHANGED}
    again = []
    for _, atom in atoms(back.request, there.source):
        if atom[0] in CALLS:
            name = back.original_names.get(atom[2], atom[2])
            name = names.get(name, name) if atom[0] == "call" else atom[2]
            atom = (atom[0], ids[atom[1]], name, *atom[3:])
        again.append(atom)
    before = []
    for path, atom in atoms(request, there.source):
        if not any(path[: len(place)] == place for place in gone if place):
            before.append(atom)
    late = any(loss.what == "system role" for loss in (*there.losses, *back.losses))
    if late:  # a system message within the conversation has become the user's
        before, again = ([("said", *a[1:]) if a[1] == "text" else a for a in said]
                         for said in (before, again))  # fmt: skip
    blank = any(loss.what == "blank text" for loss in (*there.losses, *back.losses))
    assert _shown(again, blank) == _shown(before, blank)


def _shown(found: list[Any], blank: bool) -> list[Any]:
    """The atoms as they count; without texts of white space alone where some were refused."""
    out = []
    for atom in map(plain, found):
        if atom and atom[0] == "result":
            out.append((*atom[:3], tuple(t for t in atom[3] if t.strip() or not blank)))
        elif atom and not (blank and atom[1] == "text" and not atom[2].strip()):
            out.append(atom)
    return out


SPELLED = ("type", "role", "id", "tool_use_id", "media_type", "cache_control", "signature",
           "call_id", "tool_call_id", "tool_choice", "status", "mimeType", "format",
           "thoughtSignature", "phase")  # fmt: skip


def unlisted(converted: Converted, request: Any) -> list[tuple[Any, str]]:
    """Every string of the source that is neither in the target nor listed: there must be none."""
    there = {"", *_strings(converted.request)}
    gone = {loss.path for loss in converted.losses}
    missing = []
    for path, text in _leaves(request, ()):
        if (
            not text.strip()
            or text in there
            or f"{ERROR}\n{text}" in there
            or (text.startswith("data:") and text.partition(";base64,")[2] in there)
        ):
            continue
        if any(path[:size] in gone for size in range(1, len(path) + 1)):
            continue
        if path[-1] == "arguments" and there.issuperset(_strings({"arguments": text}, text)):
            continue
        missing.append((path, text))
    return missing


def _leaves(tree: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, str]]:
    if isinstance(tree, str):
        yield path, tree
    elif isinstance(tree, (dict, list)):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            if key not in SPELLED or "input" in path[2:]:
                yield from _leaves(value, (*path, key))


def _strings(tree: Any, but: str = "") -> Iterator[str]:
    """Every string, those within JSON arguments and data URLs too."""
    stack = [("", tree)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, dict):
            stack += value.items()
        elif isinstance(value, list):
            stack += [("", item) for item in value]
        elif isinstance(value, str):
            if value != but:
                yield value
            if value.startswith("data:"):
                yield value.partition(";base64,")[2]
            if key == "arguments" and value:
                stack.append(("", json.loads(value)))
