"""Finds where an edit applies: the groups that it removes, and the message that gets its note.

``operations.py`` turns edits into operations on the request.
"""

from __future__ import annotations

import base64
import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from trimtab.jsontext.paths import Path
from trimtab.planning import runs
from trimtab.planning.dropped_ranges import IntervalSet
from trimtab.planning.runs import anchor_of
from trimtab.transcript.model import Edit, Group
from trimtab.transcript.transcript import Transcript

EMPTIED = "[left out to fit]"
"""The text of a message all of whose parts were removed."""


def handle(targets: Sequence[str], key: bytes = b"") -> str:
    """The handle of an original: 11 characters, the same for the same blocks and the same key.

    Without the key it cannot be guessed.
    """
    return handle_of(digest_of(targets, key))


def digest_of(targets: Iterable[str], key: bytes = b"") -> hashlib.blake2b:
    """The digest that a handle is made of."""
    return hashlib.blake2b("\n".join(targets).encode(), digest_size=8, key=key)


def with_more(digest: hashlib.blake2b, targets: Iterable[str]) -> hashlib.blake2b:
    """The digest of the same blocks and these behind them."""
    digest = digest.copy()
    digest.update("".join(f"\n{target}" for target in targets).encode())
    return digest


def handle_of(digest: hashlib.blake2b) -> str:
    return "r" + base64.b32encode(digest.digest()).decode().lower()[:10]


def joins_next(transcript: Transcript, edit: Edit) -> bool:
    """Whether an inserted text is put into the next user message, because roles must alternate."""
    number = transcript.refs[edit.targets[0]].message + 1
    following = transcript.messages[number : number + 1]
    return transcript.facts.alternates and any(m.role == "user" and m.listed for m in following)


def groups_of(transcript: Transcript, edit: Edit) -> tuple[Group, ...] | None:
    """The groups that a drop or fold removes; None if they are not all there, whole and in a row,
    or if the call that a fold keeps can no longer stay."""
    if edit.op == "fold":
        run = runs.run_of(transcript, edit)
        if run is None or (edit.anchor and anchor_of(transcript, edit) is None):
            return None
        return transcript.groups[run.first : run.last + 1]
    span = transcript.table.span(edit.targets)
    if span is None or not transcript.table.droppable(*span):
        return None
    return transcript.groups[span[0] : span[1] + 1]


def gone_items(transcript: Transcript, edit: Edit) -> list[Path]:
    """The paths of the items that a drop or a fold removes, in order."""
    if edit.op == "fold":
        run = runs.run_of(transcript, edit)
        return runs.items(transcript, run) if run else []
    groups = groups_of(transcript, edit) or ()
    return [item for group in groups for item in group.items]


def dropped_groups(transcript: Transcript, edits: Iterable[Edit]) -> IntervalSet:
    """The numbers of all groups that these edits drop."""
    dropped = IntervalSet()
    for edit in edits:
        if edit.op in ("drop", "fold") and (groups := groups_of(transcript, edit)):
            first = group_index(transcript, groups[0])
            dropped.add(first, first + len(groups) - 1)
    return dropped


def group_index(transcript: Transcript, group: Group) -> int:
    """The number of a group."""
    return transcript.table.starting_at(group.first)


def note_host(
    transcript: Transcript, groups: Sequence[Group], dropped: IntervalSet | None = None
) -> int | None:
    """The user message that gets the note of a dropped run.  None: the run's first message becomes
    the note, so that two user messages never meet; also if the message before has results and a
    message with results must not have text.  ``dropped``: numbers of dropped groups, which are
    skipped when looking for the message."""
    before = _user_before(transcript, groups, dropped)
    alone = transcript.format.results_alone
    return None if before is None or (alone and transcript.messages[before].results) else before


def has_place(
    transcript: Transcript, groups: Sequence[Group], dropped: IntervalSet | None = None
) -> bool:
    """Whether there is a place for the note of a dropped run: not if it would follow a user message
    with results that must not have text."""
    host = note_host(transcript, groups, dropped) if transcript.facts.apart else None
    if host is None or not transcript.messages[host].results:
        return True
    number = bisect_right(transcript.groups, host, key=lambda group: group.first) - 1
    if dropped is None or number not in dropped:
        return False
    return host <= transcript.groups[number].last  # these results go as well


def _user_before(
    transcript: Transcript, groups: Sequence[Group], dropped: IntervalSet | None
) -> int | None:
    """The user message before a run, if a model's message follows the run; else None.  System
    messages on the way are passed over, as are the dropped groups before them."""
    messages, table = transcript.messages, transcript.table
    begin, end = _first_of(transcript, groups[0], dropped), groups[-1].last + 1
    if follows_placed_system(transcript, begin) and leaves_words(transcript, begin, end):
        return None
    before = begin - 1
    while before >= 0 and messages[before].role == "system":
        before -= 1
        number = table.of_message[before] if before >= 0 else -1
        if dropped is not None and number in dropped and messages[before].role != "system":
            before = _first_of(transcript, transcript.groups[number], dropped) - 1
    if before < 0 or messages[before].role != "user":
        return None
    if (
        between_systems(transcript, groups, dropped)
        or speaker_after(transcript, groups[-1]) != "assistant"
    ):
        return None
    return before


def between_systems(
    transcript: Transcript, groups: Sequence[Group], dropped: IntervalSet | None
) -> bool:
    """Whether system messages are right before and right behind a run, in a format that allows no
    two in a row: then a message of the model's and one of the user's have to stay between."""
    begin, end = _first_of(transcript, groups[0], dropped), groups[-1].last + 1
    if not follows_placed_system(transcript, begin) or leaves_words(transcript, begin, end):
        return False
    return any(message.role == "system" for message in transcript.messages[end : end + 1])


def follows_placed_system(transcript: Transcript, number: int) -> bool:
    """Whether a system message that has to precede the model is right before a message."""
    placed = transcript.format.places_system and number > 0
    return placed and transcript.messages[number - 1].role == "system"


def after_placed_system(
    transcript: Transcript, group: Group, dropped: IntervalSet | None = None
) -> bool:
    """The same of a group, or of the dropped groups that it goes on from."""
    return follows_placed_system(transcript, _first_of(transcript, group, dropped))


def leaves_words(transcript: Transcript, begin: int, end: int) -> bool:
    """Whether words of the user beside results stay when the groups in messages[begin:end] go."""
    partial = transcript.table.partial_messages
    at = bisect_left(partial, begin)
    return at < len(partial) and partial[at] < end


def speaker_after(transcript: Transcript, group: Group) -> str:
    """Who speaks behind a group: the role of the next message that is not a system message.

    Behind a system message at the end the model does; "" where nothing follows.
    """
    if transcript.ends_with_words(group):
        return "user"
    after, messages = group.last + 1, transcript.messages
    while after < len(messages) and messages[after].role == "system":
        after += 1
    if after < len(messages):
        return messages[after].role
    return "assistant" if after > group.last + 1 else ""


def _first_of(transcript: Transcript, group: Group, dropped: IntervalSet | None) -> int:
    """The first message of the adjacent dropped groups that end with ``group``."""
    number = group_index(transcript, group)
    if dropped is None:
        return group.first
    note_barriers = transcript.table.note_barriers
    at = bisect_right(note_barriers, number)
    return transcript.groups[max(dropped.begin(number), note_barriers[at - 1] if at else 0)].first
