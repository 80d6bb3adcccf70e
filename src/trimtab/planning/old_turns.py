"""Finds the old turns that may be folded together with the user's words in them.

A turn begins with what the user says and ends before the user speaks again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from trimtab.planning.planner import Planner
from trimtab.planning.runs import Run
from trimtab.transcript.notes import is_drop_note, without_notes


@dataclass
class Stretch:
    """Turns that may be folded together: ``opening`` is their first message, ``ends`` are the
    groups at which a turn ends."""

    opening: int
    ends: list[int] = field(default_factory=list)

    def run(self, planner: Planner, end: int) -> Run:
        """The run up to the end with this number."""
        groups = planner.transcript.groups
        first = bisect_left(groups, self.opening, key=lambda group: group.first)
        return Run(first, self.ends[end], self.opening)


def stretches(planner: Planner, *, protected: bool) -> Iterator[Stretch]:
    """Neighbouring turns that are not folded yet and may be, oldest first."""
    now: Stretch | None = None
    last = -1
    for number, group in _units(planner):
        if not _free(planner, number, group, protected=protected):
            if now is not None and now.ends:
                yield now
            now, last = None, -1
            continue
        if group < 0:
            if now is not None and _is_drop_note(planner, number):
                continue  # it stands for steps of this turn, and does not end it
            if now is not None and last >= 0:
                now.ends.append(last)
            last = -1
            if now is None and planner.transcript.messages[number].blocks:
                now = Stretch(number)
        elif planner.transcript.groups[group].places:
            if now is None and _may_begin(planner, number):
                now = Stretch(number)
            if now is None:
                continue
            last = group
            if planner.transcript.groups[group].partial:
                now.ends.append(group)
                last = -1
    if now is not None and last >= 0:
        now.ends.append(last)
    if now is not None and now.ends:
        yield now


def _is_drop_note(planner: Planner, number: int) -> bool:
    """Whether a message is no more than our note about steps that were dropped."""
    blocks = planner.transcript.messages[number].blocks
    return bool(blocks) and all(is_drop_note(block.text) for block in blocks)


def _may_begin(planner: Planner, number: int) -> bool:
    """Whether a fold may begin with this message of the model: the fold puts a user message before
    it, which must not follow another user message or results, nor a system message that has to
    precede the model."""
    if number == 0:
        return True
    before = planner.transcript.messages[number - 1].role
    placed = planner.transcript.format.places_system
    return before == "assistant" or (before == "system" and not placed)


def _units(planner: Planner) -> Iterator[tuple[int, int]]:
    """What comes before the user's newest words: (message, −1) for a message outside groups,
    (first message, group number) for a group."""
    transcript, groups = planner.transcript, planner.transcript.groups
    newest = newest_words(planner)
    number = 0
    while number < newest:
        group = transcript.table.of_message[number]
        if group < 0:
            yield number, -1
            number += 1
            continue
        end = groups[group]
        if end.last > newest or (end.last == newest and not end.partial):
            return
        yield number, group
        number = max(end.last, number) + 1


def newest_words(planner: Planner) -> int:
    """The message with the user's newest words."""
    texts = planner.eligibility.user_texts
    own = (place for place in reversed(texts) if without_notes(place.block.text))
    newest = next(own, texts[-1] if texts else None)
    return 0 if newest is None else newest.message


def _free(planner: Planner, number: int, group: int, *, protected: bool) -> bool:
    """Whether a message or a group may be folded."""
    transcript, eligibility = planner.transcript, planner.eligibility
    if group < 0:
        if not _is_plain(planner, number):
            return False
        places = list(transcript.places_in(number))
    else:
        here = transcript.groups[group]
        if group in planner.state.dropped or not here.closed:
            return False
        answered = transcript.messages[here.last].role != "assistant"
        if here.has_calls and answered and group == len(transcript.groups) - 1:
            return False  # the newest step: some providers want its thinking
        own = transcript.messages[here.first : here.last + 1]
        if any(message.compaction for message in own):
            return False
        inside = set(range(here.first, here.last + 1)).difference(here.numbers)
        if not all(_is_plain(planner, number) for number in inside):
            return False
        places = [p for n in (*here.numbers, *inside) for p in transcript.places_in(n)]
    if any(map(eligibility.pinned, places)):
        return False
    return protected or not any(map(eligibility.protected, places))


def _is_plain(planner: Planner, number: int) -> bool:
    """Whether a message is the user's, has no results and nothing that other messages may refer
    to, and is not folded yet."""
    message = planner.transcript.messages[number]
    of_group = planner.transcript.table.of_message[number] >= 0
    own = message.role == "user" and not message.results and not message.is_linked
    return own and not of_group and not planner.state.is_crossed(number)
