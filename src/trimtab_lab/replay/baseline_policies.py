"""Baseline policies: send everything, keep the last turns, drop the oldest, mask old results.

They are stateless: each request is reduced from scratch, as in the common implementations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from trimtab.jsontext import paths
from trimtab.planning.operations import in_order, operations
from trimtab.transcript.model import Edit, Group
from trimtab.transcript.transcript import Transcript
from trimtab_lab.replay.message_views import MessageView, transcript_of
from trimtab_lab.replay.policies import PolicyOutput, PolicyStep
from trimtab_lab.replay.recording_index import RecordingIndex

NOTE = "[Earlier conversation left out]"
NOTE_TOKENS = 16
"""Tokens reserved for the note in a message of its own."""


def dropped(transcript: Transcript, groups: Sequence[Group]) -> list[Edit]:
    """Edits that drop the groups; neighbouring groups share one note."""
    chosen = [g for g in groups if g.closed and g.has_calls and g.places]
    runs: list[list[Group]] = []
    for group in chosen:
        if runs and transcript.adjoin(runs[-1][-1], group):
            runs[-1].append(group)
        else:
            runs.append([group])
    return [
        Edit(
            "drop", tuple(transcript.ref(p) for g in run for p in g.places), NOTE, "drop", "oldest"
        )
        for run in runs
    ]


def applied(transcript: Transcript, body: Any, edits: Iterable[Edit]) -> Any:
    """``body`` with the edits applied; ``body`` itself if there are none."""
    done = operations(transcript, body, edits)
    return paths.apply(body, in_order(done)) if done else body


class Everything:
    """``none``: sends the request unchanged, even if it is too long."""

    name, version, format = "none", "1", ""

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """Nothing to prepare."""
        return PolicyOutput


class KeepLast:
    """``keep-last-n``: the user's words and the last N model turns with their results."""

    name, version, format = "keep-last-n", "1", ""

    def __init__(self, argument: str = "20") -> None:
        self.keep = int(argument)
        if self.keep < 1:
            raise ValueError("keep at least one turn")

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """The same on every turn, whatever the window."""

        def step(body: dict[str, Any]) -> PolicyOutput:
            transcript = _transcript_of(index, body)
            groups = transcript.groups[: -self.keep]
            return PolicyOutput(applied(transcript, body, dropped(transcript, groups)))

        return step


class DropOldest:
    """``drop-oldest-safe``: above the window, drops as many of the oldest turns as needed.

    Calls are dropped with their results, so pairs stay whole; nothing else is changed.
    """

    name, version, format = "drop-oldest-safe", "1", ""

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """Cuts each request just below the window."""
        usage = index.store.usage

        def step(body: dict[str, Any]) -> PolicyOutput:
            transcript = _transcript_of(index, body)
            room = window - usage.measure(transcript)
            if room >= 0:
                return PolicyOutput(body)
            droppable = [g for g in transcript.groups if g.closed and g.has_calls and g.places]
            chosen: list[Group] = []
            for group in droppable[:-1]:
                if room >= NOTE_TOKENS:
                    break
                if chosen and not transcript.adjoin(chosen[-1], group):
                    room -= NOTE_TOKENS  # the run that ends here leaves a note
                chosen.append(group)
                room += size_of(index, transcript, group)
            return PolicyOutput(applied(transcript, body, dropped(transcript, chosen)))

        return step


class MaskOld:
    """``mask-old-observations``: results older than the last N are replaced by a short line."""

    name, version, format = "mask-old-observations", "1", ""

    def __init__(self, argument: str = "10") -> None:
        self.keep = int(argument)
        if self.keep < 0:
            raise ValueError("keep none or more results")

    def start(self, index: RecordingIndex, window: int) -> PolicyStep:
        """The same on every turn, whatever the window."""
        count = index.store.usage.counter
        text = "[Old tool result masked]"

        def step(body: dict[str, Any]) -> PolicyOutput:
            transcript = _transcript_of(index, body)
            results = [
                list(places)
                for _, places in groupby(
                    (p for p in transcript.places() if p.block.kind == "result" and p.message >= 0),
                    key=lambda p: (p.message, p.block.call_id),
                )
            ]
            old = results[: len(results) - self.keep]
            edits = [
                Edit("replace", (transcript.ref(place),), text, "mask", "old")
                for places in old
                for place in places
                if place.block.spelling == "string" and count(place.block.text) > count(text)
            ]
            return PolicyOutput(applied(transcript, body, edits))

        return step


def _transcript_of(index: RecordingIndex, body: dict[str, Any]) -> Transcript:
    count = len(body[index.recording.reader.messages_key])
    views: Sequence[MessageView] = index.views[:count]
    return transcript_of(index.recording, body, views)


def size_of(index: RecordingIndex, transcript: Transcript, group: Group) -> int:
    """Tokens that dropping a group saves: its blocks and the fixed cost of its messages."""
    usage = index.store.usage
    numbers = {place.message for place in group.places}
    complete_messages = [n for n in numbers if (*transcript.base, n) in group.items]
    tokens = sum(usage.message(transcript.messages[n]) for n in complete_messages)
    return tokens + sum(
        usage.block(transcript, place)
        for place in group.places
        if place.message not in complete_messages
    )
