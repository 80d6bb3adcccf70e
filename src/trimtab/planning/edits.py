"""Edits applied: from a choice of edits to operations on the request.

Knows how each kind of edit changes messages.  Does not know why an edit was chosen, nor JSON
text (operations are applied by ``paths``).
"""

from __future__ import annotations

import base64
import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from trimtab import paths
from trimtab.formats.base import alone
from trimtab.index import mixed
from trimtab.model import Edit, Group, Message, Path, Place, Transcript
from trimtab.paths import Delete, Insert, Ops, PathOp, Set
from trimtab.planning.gone import Gone

EMPTIED = "[left out to fit]"
"""Stands in a message whose every part was removed."""


def handle(targets: Sequence[str], key: bytes = b"") -> str:
    """The handle of an original: 11 characters, the same for the same blocks and the same key.

    Without the key it cannot be guessed.
    """
    digest = hashlib.blake2b("\n".join(targets).encode(), digest_size=8, key=key).digest()
    return "r" + base64.b32encode(digest).decode().lower()[:10]


class Applied(NamedTuple):
    """One edit on one request: where it stands and what it does."""

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
    return done + _drops(transcript, tree, [e for e in edits if e.op == "drop"], texts)


_ORDER = {"replace": 0, "remove": 1, "insert": 2, "drop": 3}
"""A note appended to a user's text is written over what a replacement of it wrote."""


def in_order(applied: Iterable[Applied]) -> Ops:
    """All operations, so ordered that the last one on a path is the one that counts."""
    return Ops(op for a in sorted(applied, key=lambda a: _ORDER[a.edit.op]) for op in a.ops)


def _replace(transcript: Transcript, tree: Any, edit: Edit) -> Applied:
    place = transcript.refs[edit.targets[0]]
    block = place.block
    where = transcript.where(place)
    value: Any = edit.text
    if block.spelling == "json":
        value = json.loads(edit.text)
    elif block.spelling == "part":
        where = transcript.item(place)
        mark = transcript.format.mark_of(paths.get(tree, where))
        part_at = getattr(transcript.format, "text_part_at", None)
        value = transcript.format.text_part(edit.text, marked=mark)
        if part_at is not None:  # where not every place takes a text part
            value = part_at(where, edit.text)
    return Applied(edit, (where,), (Set(where, value),))


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
    also = transcript.format.goes_with(transcript, place)
    return Applied(edit, (where, *also), (Delete(where), *(Delete(path) for path in also)))


def _insert(transcript: Transcript, edit: Edit) -> Applied:
    """A user message behind the message in which the target stands."""
    place, format = transcript.refs[edit.targets[0]], transcript.format
    where: Path = (*transcript.base, place.message + 1)
    if joins_next(transcript, edit):
        where = (*where, format.content_key, 0)
        return Applied(edit, (where,), (Insert(where, format.text_part(edit.text)),))
    return Applied(edit, (where,), (Insert(where, format.text_message("user", edit.text)),))


def joins_next(transcript: Transcript, edit: Edit) -> bool:
    """Whether an inserted text begins the user message behind it, where two may not meet."""
    number = transcript.refs[edit.targets[0]].message + 1
    following = transcript.messages[number : number + 1]
    return transcript.facts.alternates and any(m.role == "user" and m.listed for m in following)


def groups_of(transcript: Transcript, edit: Edit) -> tuple[Group, ...] | None:
    """The groups that a drop takes out; None where they are not all there, whole, in a run."""
    known = transcript.runs
    if edit.targets not in known:
        known[edit.targets] = _groups_of(transcript, edit.targets)
    return known[edit.targets]


def _groups_of(transcript: Transcript, targets: tuple[str, ...]) -> tuple[Group, ...] | None:
    if span := transcript.index.span(targets):
        fits = transcript.index.droppable(*span)
        return transcript.groups[span[0] : span[1] + 1] if fits else None
    refs, at, numbers = transcript.refs, transcript.group_at, set[int]()
    for ref in targets:
        place = refs.get(ref)
        number = None if place is None else at.get((place.message, place.index))
        if number is None:
            return None
        numbers.add(number)
    found = tuple(transcript.groups[number] for number in sorted(numbers))
    whole = sum(len(group.places) for group in found) == len(set(targets))
    closed = all(group.closed and group.has_calls for group in found)
    return found if found and whole and closed and _is_run(transcript, found) else None


def _is_run(transcript: Transcript, groups: Sequence[Group]) -> bool:
    """Whether nothing stands between these groups."""
    return all(transcript.adjoin(before, after) for before, after in pairwise(groups))


def gone_groups(transcript: Transcript, edits: Iterable[Edit]) -> Gone:
    """The numbers of all groups that these edits drop."""
    gone = Gone()
    for edit in edits:
        if edit.op == "drop" and (groups := groups_of(transcript, edit)):
            first = group_index(transcript, groups[0])
            gone.add(first, first + len(groups) - 1)
    return gone


def group_index(transcript: Transcript, group: Group) -> int:
    """The number of a group."""
    return bisect_left(transcript.groups, group.first, key=lambda g: g.first)


def _drops(
    transcript: Transcript, tree: Any, edits: Sequence[Edit], texts: Mapping[str, str]
) -> list[Applied]:
    """All dropped runs, oldest first, so that notes in one message stand in their order."""
    runs = [(edit, groups_of(transcript, edit) or ()) for edit in edits]
    runs.sort(key=lambda run: run[1][0].first if run[1] else -1)
    gone = gone_groups(transcript, edits)
    before: dict[int, str] = {}
    """Message that takes notes as one string → the notes written into it so far."""
    return [_drop(transcript, tree, run, gone, texts, before) for run in runs]


def _drop(
    transcript: Transcript, tree: Any, run: tuple[Edit, Sequence[Group]], gone: Gone | None,
    texts: Mapping[str, str], before: dict[int, str],
) -> Applied:  # fmt: skip
    edit, groups = run
    first = group_index(transcript, groups[0])
    last, index = first + len(groups) - 1, transcript.index
    items = index.items(first, last)
    any_marked = index.rows.marked[last + 1] > index.rows.marked[first]
    mark = _last_mark(transcript, tree, items) if any_marked else None
    host = note_host(transcript, groups, gone)
    if host is None:
        role = _stand_in(transcript, groups)
        message = transcript.format.text_message(role, edit.text, marked=mark)
        rest = [*items[1:], *_referring(transcript, groups)]
        ops: list[PathOp] = [Set(items[0], message), *(Delete(path) for path in rest)]
        return Applied(edit, (items[0], *rest), tuple(ops))
    items += _referring(transcript, groups)
    ops = [Delete(path) for path in items]
    note = before[host] = f"{before[host]}\n\n{edit.text}" if host in before else edit.text
    listed = transcript.messages[host].listed
    where, more = _append(transcript, tree, host, edit.text if listed else note, mark, texts)
    return Applied(edit, (*items, where), (*ops, *more))


def _referring(transcript: Transcript, groups: Sequence[Group]) -> list[Path]:
    """What stays behind these groups and would refer to a block that goes with them."""
    if transcript.format.goes_with is alone:
        return []
    depth = len(transcript.base) + 1
    gone = {item[:depth] for group in groups for item in group.items}
    found = [
        path
        for group in groups
        for place in group.places
        for path in transcript.format.goes_with(transcript, place)
        if path[:depth] not in gone
    ]
    return list(dict.fromkeys(found))


def note_host(
    transcript: Transcript, groups: Sequence[Group], gone: Gone | None = None
) -> int | None:
    """The user message that takes the note of a dropped run, or None: then the run's first
    message becomes the note (so that two user messages never meet), as it does where only
    results stand before it and a message with results holds no text.  ``gone``: numbers of
    dropped groups, which a note passes over on its way."""
    before = _user_before(transcript, groups, gone)
    alone = getattr(transcript.format, "results_alone", False)
    return None if before is None or (alone and transcript.messages[before].results) else before


def has_place(transcript: Transcript, groups: Sequence[Group], gone: Gone | None = None) -> bool:
    """Whether a note can stand for a dropped run at all: not where it would meet a user's message
    of results, which may hold no words."""
    host = note_host(transcript, groups, gone) if transcript.facts.apart else None
    if host is None or not transcript.messages[host].results:
        return True
    number = bisect_right(transcript.groups, host, key=lambda group: group.first) - 1
    if gone is None or number not in gone:
        return False
    return host <= transcript.groups[number].last  # these results go as well


def _user_before(transcript: Transcript, groups: Sequence[Group], gone: Gone | None) -> int | None:
    """The user message before a run that a model's message follows, or None."""
    before, after = _first_of(transcript, groups[0], gone) - 1, groups[-1].last + 1
    messages = transcript.messages
    while transcript.facts.alternates and before >= 0 and messages[before].role == "system":
        before -= 1  # a message of the model's would meet the next one
    if before < 0 or messages[before].role != "user" or after >= len(messages):
        return None
    if mixed(transcript, groups[-1]) or messages[after].role != "assistant":
        return None
    return before


def _first_of(transcript: Transcript, group: Group, gone: Gone | None) -> int:
    """The first message of the dropped groups that end with this one."""
    number = group_index(transcript, group)
    if gone is None:
        return group.first
    stops = transcript.index.rows.stops
    at = bisect_right(stops, number)
    return transcript.groups[max(gone.begin(number), stops[at - 1] if at else 0)].first


def _stand_in(transcript: Transcript, groups: Sequence[Group]) -> str:
    """Who speaks the message that stands for a run: the one who does not speak the next.

    A message of the model would become the beginning of its next turn, which may have to begin
    with thinking; a user's would meet the next user's.
    """
    if transcript.facts.stand_in:
        return transcript.facts.stand_in
    after = groups[-1].last + (0 if mixed(transcript, groups[-1]) else 1)
    messages = transcript.messages
    model_next = after < len(messages) and messages[after].role == "assistant"
    return "user" if model_next else "assistant"


def _last_mark(transcript: Transcript, tree: Any, items: Sequence[Path]) -> Any:
    """The newest cache breakpoint among what is dropped; the note carries it on."""
    base = len(transcript.base)
    for item in reversed(items):
        number = item[base]
        assert isinstance(number, int)
        if marks := transcript.messages[number].marks_in(item[base + 1 :]):
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


def original(
    transcript: Transcript, tree: Any, applied: Applied, spelled: Callable[[list[Path]], list[str]]
) -> str:
    """What an edit took away: the string of a leaf, the JSON text of anything else.

    ``spelled``: the JSON at these places, as the request had it.
    """
    edit = applied.edit
    if edit.op == "replace":
        place = transcript.refs[edit.targets[0]]
        if place.block.spelling in ("string", "json-string"):
            return str(paths.get(tree, transcript.where(place)))
        return spelled([applied.paths[0]])[0]
    if edit.op == "remove":
        return spelled([applied.paths[0]])[0]
    groups = groups_of(transcript, edit) or ()
    items = [item for group in groups for item in group.items]
    return "[" + ",".join(spelled(items)) + "]"
