"""The simplest policies: send everything, keep the last, drop the oldest, mask old results.

Knows groups and how an edit is applied in any format.  Keeps nothing between calls: each request
is worked out anew, as the common implementations do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from trimtab import paths
from trimtab.model import Edit, Group, Transcript
from trimtab.planning.edits import in_order, operations
from trimtab.replay.index import Index
from trimtab.replay.policies import Sent, Step
from trimtab.replay.recording import MESSAGES
from trimtab.replay.views import View, transcript

NOTE = "[Earlier conversation left out]"
NOTE_TOKENS = 16
"""Covers the note with a message of its own."""


def dropped(whole: Transcript, groups: Sequence[Group], note: str = NOTE) -> list[Edit]:
    """Edits that take out these groups; neighbouring ones share one note."""
    chosen = [g for g in groups if g.closed and g.has_calls and g.places]
    runs: list[list[Group]] = []
    for group in chosen:
        if runs and whole.adjoin(runs[-1][-1], group):
            runs[-1].append(group)
        else:
            runs.append([group])
    return [
        Edit("drop", tuple(whole.ref(p) for g in run for p in g.places), note, "drop", "oldest")
        for run in runs
    ]


def applied(whole: Transcript, body: Any, edits: Iterable[Edit]) -> Any:
    """The body with the edits made; the body itself where there are none."""
    done = operations(whole, body, edits)
    return paths.apply(body, in_order(done)) if done else body


class Everything:
    """``none``: sends the request as it is, too long or not."""

    name, version, format = "none", "1", ""

    def start(self, index: Index, window: int) -> Step:
        """Nothing to prepare."""
        return Sent


class KeepLast:
    """``keep-last-n``: the user's words and the last N model turns with their results."""

    name, version, format = "keep-last-n", "1", ""

    def __init__(self, argument: str = "20") -> None:
        self.keep = int(argument)
        if self.keep < 1:
            raise ValueError("keep at least one turn")

    def start(self, index: Index, window: int) -> Step:
        """The same on every turn, whatever the window."""

        def step(body: dict[str, Any]) -> Sent:
            whole = _transcript(index, body)
            groups = whole.groups[: -self.keep]
            return Sent(applied(whole, body, dropped(whole, groups)))

        return step


class DropOldest:
    """``drop-oldest-safe``: above the window, as many of the oldest turns go as it takes.

    Calls go with their results, so pairs stay whole; nothing else is touched.
    """

    name, version, format = "drop-oldest-safe", "1", ""

    def start(self, index: Index, window: int) -> Step:
        """Cuts each request just below the window."""
        usage = index.store.usage

        def step(body: dict[str, Any]) -> Sent:
            whole = _transcript(index, body)
            room = window - usage.measure(whole)
            if room >= 0:
                return Sent(body)
            droppable = [g for g in whole.groups if g.closed and g.has_calls and g.places]
            chosen: list[Group] = []
            for group in droppable[:-1]:
                if room >= NOTE_TOKENS:
                    break
                if chosen and not whole.adjoin(chosen[-1], group):
                    room -= NOTE_TOKENS  # the run that ends here leaves a note
                chosen.append(group)
                room += size_of(index, whole, group)
            return Sent(applied(whole, body, dropped(whole, chosen)))

        return step


class MaskOld:
    """``mask-old-observations``: results older than the last N are replaced by a short line."""

    name, version, format = "mask-old-observations", "1", ""

    def __init__(self, argument: str = "10") -> None:
        self.keep = int(argument)
        if self.keep < 0:
            raise ValueError("keep none or more results")

    def start(self, index: Index, window: int) -> Step:
        """The same on every turn, whatever the window."""
        count = index.store.usage.counter
        text = "[Old tool result masked]"

        def step(body: dict[str, Any]) -> Sent:
            whole = _transcript(index, body)
            results = [
                list(places)
                for _, places in groupby(
                    (p for p in whole.places() if p.block.kind == "result" and p.message >= 0),
                    key=lambda p: (p.message, p.block.call_id),
                )
            ]
            old = results[: len(results) - self.keep]
            edits = [
                Edit("replace", (whole.ref(place),), text, "mask", "old")
                for places in old
                for place in places
                if place.block.spelling == "string" and count(place.block.text) > count(text)
            ]
            return Sent(applied(whole, body, edits))

        return step


def _transcript(index: Index, body: dict[str, Any]) -> Transcript:
    count = len(body[MESSAGES[index.recording.format]])
    views: Sequence[View] = index.views[:count]
    return transcript(index.recording, body, views)


def size_of(index: Index, whole: Transcript, group: Group) -> int:
    """Tokens that go with a group: its blocks and the fixed cost of its messages."""
    usage = index.store.usage
    numbers = {place.message for place in group.places}
    whole_messages = [n for n in numbers if (*whole.base, n) in group.items]
    tokens = sum(usage.message(whole.messages[n]) for n in whole_messages)
    return tokens + sum(
        usage.block(whole, place) for place in group.places if place.message not in whole_messages
    )
