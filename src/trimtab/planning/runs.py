"""Runs of steps that give way together: what stands in one, and which of its calls may stay.

A run is neighbouring groups; one that crosses the user's words begins with a message of the user
and takes every message up to the end of its last group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Edit, Group, Part, Place, is_of_result
from trimtab.transcript.transcript import Transcript


class Run(NamedTuple):
    """Groups ``first`` … ``last``; ``opening``: the message it begins with, where it crosses the
    user's words: a message of the user, or the first of a group."""

    first: int
    last: int
    opening: int | None = None


class Anchor(NamedTuple):
    """A call that was answered in text, and where its result stands."""

    call: Place
    part: Part
    message: int
    """Of the result."""
    result: Part


def places(transcript: Transcript, run: Run) -> Iterator[Place]:
    """Every block of a run, in order."""
    if run.opening is None:
        yield from transcript.table.places(run.first, run.last)
        return
    end = transcript.groups[run.last]
    for number in range(run.opening, end.last + 1):
        some = end.partial and number == end.last
        for place in transcript.places_in(number):
            if not some or is_of_result(place.block):
                yield place


def targets(transcript: Transcript, run: Run) -> tuple[str, ...]:
    """The refs of every block of a run."""
    return tuple(map(transcript.ref, places(transcript, run)))


def items(transcript: Transcript, run: Run) -> list[Path]:
    """The absolute paths of what a run consists of."""
    if run.opening is None:
        return transcript.table.items(run.first, run.last)
    end = transcript.groups[run.last]
    stop = end.last if end.partial else end.last + 1
    whole: list[Path] = [(*transcript.base, number) for number in range(run.opening, stop)]
    return [*whole, *(item for item in end.items if len(item) > len(transcript.base) + 1)]


def run_of(transcript: Transcript, edit: Edit) -> Run | None:
    """The run that a fold takes out; None where its blocks are not all of a run, in order."""
    if not edit.asked:
        span = transcript.table.span(edit.targets)
        return Run(*span) if span and transcript.table.adjoining(*span) else None
    begin, end = (transcript.refs.get(ref) for ref in (edit.targets[0], edit.targets[-1]))
    if begin is None or end is None:
        return None
    groups, first = transcript.groups, transcript.group_number(begin.message, begin.index)
    last = transcript.group_number(end.message, end.index)
    if last is None:
        return None
    if first is None:
        if transcript.messages[begin.message].role != "user":
            return None
        first = next(n for n, group in enumerate(groups) if group.first > begin.message)
    elif groups[first].first != begin.message:
        return None
    run = Run(first, last, begin.message)
    inner = transcript.messages[begin.message : groups[last].last + 1]
    whole = all(group.closed for group in groups[first : last + 1])
    mixed = any(message.role in ("system", "other") for message in inner)
    return run if whole and not mixed and targets(transcript, run) == edit.targets else None


# --- the call that stays ---


def anchor_in(transcript: Transcript, group: Group) -> Anchor | None:
    """The first call of a step, where the client answered it in text and without an error."""
    messages = transcript.messages
    called = next((n for n in group.numbers if messages[n].calls), None)
    if called is None or not group.closed:
        return None
    part = messages[called].calls[0]
    call = next((b for b in enumerate(messages[called].blocks) if b[1].item == part.path), None)
    if call is None or call[1].kind != "call" or call[1].sealed:
        return None
    if not transcript.format.may_anchor(messages[called], part):
        return None
    found = [(n, r) for n in group.numbers for r in messages[n].results if r.id == part.id]
    if len(found) != 1:
        return None
    number, result = found[0]
    types = getattr(transcript.format, "ANSWERED_IN_TEXT", ())
    if types and messages[number].type not in types:
        return None
    path = result.path
    own = [b for b in messages[number].blocks if b.item[: len(path)] == path]
    texts = [block for block in own if block.kind == "result" and not block.sealed]
    if not texts or any(block.error for block in own):
        return None
    return Anchor(Place(called, *call), part, number, result)
