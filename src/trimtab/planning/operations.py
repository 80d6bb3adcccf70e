"""Turns edits into operations on the request: what each edit sets, deletes and inserts, and where.

    before              replace             drop                   fold
    user:  Go.          user:  Go.          user:  Go.             user:  Go.
    model: call Read    model: call Read           [2 earlier      model: call Read
    tool:  37 lines     tool:  [33 lines           steps left      tool:  [2 earlier steps, of
                               left out …]         out to fit …]          which this record …]
    model: call Edit    model: call Edit
    tool:  ok           tool:  ok
    model: Done.        model: Done.        model: Done.           model: Done.

The note of a drop goes into the user's message before it, so that two of the user never meet; where
there is none, it takes the place of the run.  A fold keeps one call of the run and its result,
because what tools said may be in a tool result only.

All operations are in coordinates of the request before any edit, and ``paths`` applies them at
once: no edit has to know what another one moved.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from trimtab.formats.engine import payloads
from trimtab.formats.engine.base import no_dependents
from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, Ops, Path, PathOp, Set
from trimtab.planning import runs
from trimtab.planning.dropped_ranges import IntervalSet
from trimtab.planning.edits import (
    EMPTIED,
    after_placed_system,
    between_systems,
    dropped_groups,
    group_index,
    groups_of,
    joins_next,
    note_host,
    speaker_after,
)
from trimtab.planning.runs import (
    Anchor,
    Closing,
    anchor_of,
    beside_words,
    closing_of,
    kept_thoughts,
)
from trimtab.transcript.model import Edit, Group, Message, Place
from trimtab.transcript.transcript import Transcript


class Applied(NamedTuple):
    """One edit on one request: its paths and its operations."""

    edit: Edit
    paths: tuple[Path, ...]
    ops: tuple[PathOp, ...]


def operations(transcript: Transcript, tree: Any, edits: Iterable[Edit]) -> list[Applied]:
    """The operations of all edits, in coordinates of this tree; to be applied at once."""
    edits = list(edits)
    texts = {edit.targets[0]: edit.text for edit in edits if edit.op == "replace" and edit.targets}
    emptied = _emptied(transcript, edits)
    done = []
    for edit in edits:
        if edit.op == "replace":
            done.append(_replace(transcript, tree, edit))
        elif edit.op == "remove":
            done.append(_remove(transcript, edit, emptied))
        elif edit.op == "insert":
            done.append(_insert(transcript, edit))
        elif edit.op == "fold":
            done.append(_fold(transcript, tree, edit))
    return done + _drops(transcript, tree, [e for e in edits if e.op == "drop"], texts)


_ORDER = {"replace": 0, "remove": 1, "insert": 2, "fold": 3, "drop": 4}
"""A note appended to a user's text is written over what a replacement of it wrote."""


def in_order(applied: Iterable[Applied]) -> Ops:
    """All operations, in the order in which the last one on a path takes effect."""
    return Ops(op for a in sorted(applied, key=lambda a: _ORDER[a.edit.op]) for op in a.ops)


def _replace(transcript: Transcript, tree: Any, edit: Edit) -> Applied:
    place = transcript.refs[edit.targets[0]]
    block = place.block
    where = transcript.where(place)
    if edit.payload:
        where = transcript.item(place)
        leaves = payloads.with_payload(paths.get(tree, where), edit.payload)
        return Applied(edit, (where,), tuple(Set((*where, *leaf), new) for leaf, new in leaves))
    value: Any = edit.text
    if block.spelling == "json":
        value = json.loads(edit.text)
    elif block.spelling == "part":
        where = transcript.item(place)
        mark = transcript.format.mark_of(paths.get(tree, where))
        value = transcript.format.text_instead(where, edit.text, marked=mark)
    if len(edit.targets) == 1:
        return Applied(edit, (where,), (Set(where, value),))
    others = [transcript.item(transcript.refs[ref]) for ref in edit.targets[1:]]
    return Applied(edit, (where, *others), (Set(where, value), *map(Delete, others)))


def _emptied(transcript: Transcript, edits: Sequence[Edit]) -> dict[int, str]:
    """Messages of which every part is removed → the ref whose removal leaves a short text."""
    removed: dict[int, list[str]] = {}
    for edit in edits:
        if edit.op == "remove":
            place = transcript.refs[edit.targets[0]]
            if transcript.is_part(place):
                removed.setdefault(place.message, []).append(edit.targets[0])
    return {
        number: refs[0]
        for number, refs in removed.items()
        if len(refs) >= len(transcript.messages[number].parts) > 0
        and transcript.messages[number].listed
    }


def _remove(transcript: Transcript, edit: Edit, emptied: Mapping[int, str]) -> Applied:
    place = transcript.refs[edit.targets[0]]
    where = transcript.item(place)
    if emptied.get(place.message) == edit.targets[0]:
        return Applied(edit, (where,), (Set(where, transcript.format.text_part(EMPTIED)),))
    also = transcript.format.dependent_paths(transcript, place)
    return Applied(edit, (where, *also), (Delete(where), *(Delete(path) for path in also)))


def _insert(transcript: Transcript, edit: Edit) -> Applied:
    """Insert a user message after the target's message."""
    place, format = transcript.refs[edit.targets[0]], transcript.format
    where: Path = (*transcript.base, place.message + 1)
    if joins_next(transcript, edit):
        where = (*where, format.content_key, 0)
        return Applied(edit, (where,), (Insert(where, format.text_part(edit.text)),))
    return Applied(edit, (where,), (Insert(where, format.text_message("user", edit.text)),))


def _drops(
    transcript: Transcript, tree: Any, edits: Sequence[Edit], texts: Mapping[str, str]
) -> list[Applied]:
    """All dropped runs, oldest first, so that notes in one message are in their order."""
    runs = [(edit, groups_of(transcript, edit) or ()) for edit in edits]
    runs.sort(key=lambda run: run[1][0].first if run[1] else -1)
    dropped = dropped_groups(transcript, edits)
    before: dict[int, str] = {}
    """Message that takes notes as one string → the notes written into it so far."""
    return [_drop(transcript, tree, run, dropped, texts, before) for run in runs]


def _drop(
    transcript: Transcript,
    tree: Any,
    run: tuple[Edit, Sequence[Group]],
    dropped: IntervalSet | None,
    texts: Mapping[str, str],
    before: dict[int, str],
) -> Applied:
    edit, groups = run
    first = group_index(transcript, groups[0])
    items = transcript.table.items(first, first + len(groups) - 1)
    mark = _last_mark(transcript, tree, items)
    host = note_host(transcript, groups, dropped)
    if host is None:
        made = _stand_ins(transcript, groups, dropped, edit.text, mark)
        rest = [*items[len(made) :], *_referring(transcript, groups)]
        ops: list[PathOp] = [*map(Set, items, made), *(Delete(path) for path in rest)]
        return Applied(edit, (*items[: len(made)], *rest), tuple(ops))
    items += _referring(transcript, groups)
    ops = [Delete(path) for path in items]
    note = before[host] = f"{before[host]}\n\n{edit.text}" if host in before else edit.text
    listed = transcript.messages[host].listed
    where, more = _append(transcript, tree, host, edit.text if listed else note, mark, texts)
    return Applied(edit, (*items, where), (*ops, *more))


def _fold(transcript: Transcript, tree: Any, edit: Edit) -> Applied:
    """Replace a run by one call with a result of ours, the user's words before it and the model's
    beside or after it."""
    run, anchor, format = runs.run_of(transcript, edit), None, transcript.format
    assert run is not None
    items, base = runs.items(transcript, run), transcript.base
    mark, sets, inserts = _last_mark(transcript, tree, items), dict[Path, Any](), list[PathOp]()
    anchor = anchor_of(transcript, edit)
    closing = closing_of(transcript, run, anchor is not None)
    if run.opening is not None:
        own = None if anchor else mark
        user_text = format.text_message("user", edit.user_text, marked=own)
        if transcript.table.of_message[run.opening] < 0:
            sets[*base, run.opening] = user_text
        else:
            inserts.append(Insert((*base, run.opening), user_text))
    if anchor is not None:
        where: Path = (*base, anchor.call.message)
        words = edit.model_text if closing is None else ""
        call = _anchor_call(transcript, tree, anchor, edit.arguments)
        *before, own = format.call_alone(paths.get(tree, where), call, words)
        inserts += [Insert(where, message) for message in before]
        sets[where] = own
        whole = (*base, anchor.message) in items
        path, value = _answered(transcript, tree, anchor, edit.text, mark, whole=whole)
        if whole and beside_words(transcript, run):
            (result, *_) = value[format.content_key]
            last = transcript.groups[run.last].last
            inserts.append(Insert((*base, last, format.content_key, 0), result))
        else:
            sets[path] = value
    if closing is not None:
        where = (*base, closing.message)
        sets[where] = _closed(transcript, tree, closing, edit.model_text)
    groups = transcript.groups[run.first : run.last + 1]
    thoughts = kept_thoughts(transcript, anchor) if anchor else ()
    stay = {*sets, *((*base, number) for number in thoughts)}
    rest = [path for path in [*items, *_referring(transcript, groups)] if path not in stay]
    ops = [*inserts, *(Set(path, value) for path, value in sets.items()), *map(Delete, rest)]
    known = set(items)
    return Applied(edit, (*items, *(path for path in rest if path not in known)), tuple(ops))


def _anchor_call(transcript: Transcript, tree: Any, anchor: Anchor, arguments: str) -> Any:
    """The original call, with ``arguments`` if given."""
    value = paths.get(tree, (*transcript.base, anchor.call.message, *anchor.part.path))
    if not arguments:
        return value
    block = anchor.call.block
    new = json.loads(arguments) if block.spelling == "json" else arguments
    return paths.apply(value, [Set(block.path[len(anchor.part.path) :], new)])


def _answered(
    transcript: Transcript, tree: Any, anchor: Anchor, text: str, mark: Any, *, whole: bool
) -> tuple[Path, Any]:
    """Where the anchor's result is, and what it is now.  ``whole``: its message goes but for
    it; else that holds words of the user, which stay."""
    format, where = transcript.format, (*transcript.base, anchor.message)
    path: Path = (*where, *anchor.result.path)
    result = format.answered(paths.get(tree, path), text, marked=mark)
    if not whole or not anchor.result.path:
        return path, result
    marks = [] if mark is None else format.text_message("user", ".", marked=mark)
    behind = marks[format.content_key][1:] if marks else []  # a breakpoint of its own
    return where, {**paths.get(tree, where), format.content_key: [result, *behind]}


def _closed(transcript: Transcript, tree: Any, closing: Closing, text: str) -> Any:
    """The model's last message with these words alone, and the reasoning that has to stay."""
    message = transcript.format.text_message("assistant", text)
    for index in closing.kept:
        path = transcript.messages[closing.message].blocks[index].path
        if len(path) == 1:
            message[path[0]] = paths.get(tree, (*transcript.base, closing.message, *path))
    return message


def _referring(transcript: Transcript, groups: Sequence[Group]) -> list[Path]:
    """Paths of what remains after these groups and refers to a block removed with them."""
    if transcript.format.dependent_paths is no_dependents:
        return []
    depth = len(transcript.base) + 1
    dropped = {item[:depth] for group in groups for item in group.items}
    paths = [
        path
        for group in groups
        for place in group.places
        for path in transcript.format.dependent_paths(transcript, place)
        if path[:depth] not in dropped
    ]
    return list(dict.fromkeys(paths))


def _stand_ins(
    transcript: Transcript,
    groups: Sequence[Group],
    dropped: IntervalSet | None,
    note: str,
    mark: Any,
) -> list[Any]:
    """The messages in place of a run: one with the note.  Between two system messages, of which the
    first has to precede the model and the second to follow the user, there are two."""
    message = transcript.format.text_message
    if between_systems(transcript, groups, dropped):
        return [message("assistant", EMPTIED), message("user", note, marked=mark)]
    return [message(_stand_in(transcript, groups, dropped), note, marked=mark)]


def _stand_in(transcript: Transcript, groups: Sequence[Group], dropped: IntervalSet | None) -> str:
    """The role of the message in place of a run: not the role of the next message.

    A message of the model would become the beginning of its next turn, which may have to begin
    with thinking; a user's would meet the next user's.
    """
    if transcript.facts.stand_in:
        return transcript.facts.stand_in
    if after_placed_system(transcript, groups[0], dropped):
        return "assistant"
    return "user" if speaker_after(transcript, groups[-1]) == "assistant" else "assistant"


def _last_mark(transcript: Transcript, tree: Any, items: Sequence[Path]) -> Any:
    """The newest cache breakpoint among the dropped items; the note gets it."""
    base = len(transcript.base)
    for item in reversed(items):
        number = item[base]
        assert isinstance(number, int)
        message = transcript.messages[number]
        if not (message.marked or message.marks or message.inner_marks):
            continue
        if marks := message.marks_in(item[base + 1 :]):
            return transcript.format.mark_of(paths.get(tree, (*item[: base + 1], *marks[-1])))
    return None


def _append(
    transcript: Transcript,
    tree: Any,
    number: int,
    note: str,
    mark: Any,
    texts: Mapping[str, str],
) -> tuple[Path, list[PathOp]]:
    """Add a note at the end of a user message."""
    message: Message = transcript.messages[number]
    format = transcript.format
    content = (*transcript.base, number, format.content_key)
    if message.listed:
        path: Path = (*content, message.width)
        # A breakpoint is a key of the note's part, or a part of its own behind it.
        whole = format.text_message("user", note, marked=mark) if mark is not None else None
        parts = whole[format.content_key] if whole else [format.text_part(note)]
        return path, [Insert(path, part) for part in parts]
    text = texts.get(transcript.ref(Place(number, 0, message.blocks[0]))) if texts else None
    text = paths.get(tree, content) if text is None else text
    if mark is None:
        return content, [Set(content, f"{text}\n\n{note}")]
    parts = [format.text_part(text), format.text_part(note, marked=mark)]
    return content, [Set(content, parts)]
