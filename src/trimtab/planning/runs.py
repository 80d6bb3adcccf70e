"""Runs of steps that are removed together: their contents, and what of them stays in a fold.

A run is neighbouring groups.  One that crosses the user's words takes every message from the one it
begins with, of the user or the model, to the end of its last group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trimtab.formats import rules
from trimtab.jsontext.paths import Path
from trimtab.transcript.model import Edit, Group, Part, Place, is_of_result
from trimtab.transcript.transcript import Transcript


class Run(NamedTuple):
    """Groups ``first`` … ``last``.  ``opening``: only if the run crosses the user's words: its
    first message, one of the user or the first of a group."""

    first: int
    last: int
    opening: int | None = None


class Anchor(NamedTuple):
    """A call that was answered in text, and the place of its result."""

    call: Place
    part: Part
    message: int
    """The index of the result's message."""
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
    """The absolute paths of a run's items."""
    if run.opening is None:
        return transcript.table.items(run.first, run.last)
    end = transcript.groups[run.last]
    stop = end.last if end.partial else end.last + 1
    whole: list[Path] = [(*transcript.base, number) for number in range(run.opening, stop)]
    return [*whole, *(item for item in end.items if len(item) > len(transcript.base) + 1)]


def run_of(transcript: Transcript, edit: Edit) -> Run | None:
    """The run that a fold replaces; None if its blocks are not exactly a run, in order."""
    if not edit.user_text:
        span = transcript.table.span(edit.targets)
        return Run(*span) if span and transcript.table.adjoining(*span) else None
    begin, end = (transcript.refs.get(ref) for ref in (edit.targets[0], edit.targets[-1]))
    if begin is None or end is None:
        return None
    groups, first = transcript.groups, transcript.group_number(begin.message, begin.index)
    last = transcript.group_number(end.message, end.index)
    if last is None:  # a message of the user's within a step whose last result is empty
        spanning = (n for n, group in enumerate(groups) if group.first < end.message < group.last)
        last = next(spanning, None)
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
    """The first call of a step, if the client answered it in text and without an error."""
    messages = transcript.messages
    called = next((n for n in group.numbers if messages[n].calls), None)
    if called is None or not group.closed:
        return None
    part = messages[called].calls[0]
    call = next((b for b in enumerate(messages[called].blocks) if b[1].item == part.path), None)
    if call is None or call[1].kind != "call" or call[1].sealed:
        return None
    if part.refers or not transcript.format.may_anchor(messages[called], part):
        return None
    results = [(n, r) for n in group.numbers for r in messages[n].results if r.id == part.id]
    if len(results) != 1:
        return None
    number, result = results[0]
    types = transcript.format.text_results
    if types and messages[number].type not in types:
        return None
    path = result.path
    own = [b for b in messages[number].blocks if b.item[: len(path)] == path]
    texts = [block for block in own if block.kind == "result" and not block.sealed]
    if not texts or any(block.error for block in own):
        return None
    return Anchor(Place(called, *call), part, number, result)


def anchor_of(transcript: Transcript, edit: Edit) -> Anchor | None:
    """The call that a fold keeps; None if it keeps none, or no longer can."""
    place = transcript.refs.get(edit.anchor)
    number = None if place is None else transcript.group_number(place.message, place.index)
    if place is None or number is None:
        return None
    anchor = anchor_in(transcript, transcript.groups[number])
    same = anchor is not None and anchor.call == place
    return anchor if same else None


def kept_beside(transcript: Transcript, anchor: Anchor) -> list[int]:
    """The blocks that stay beside the anchor: those that are not content, and reasoning if the
    provider requires it."""
    number, format = anchor.call.message, transcript.format
    wanted = not rules.may_drop_reasoning(transcript, number)
    return [
        index
        for index, block in enumerate(transcript.messages[number].blocks)
        if index != anchor.call.index
        and block.item
        and block.item[0] not in (format.content_key, *format.table.call_keys)
        and (wanted or block.kind != "reasoning")
    ]


def beside_words(transcript: Transcript, run: Run) -> bool:
    """Whether a run ends in a message with words of the user that stay: then its note must be put
    into that message, because two user messages must not meet."""
    return transcript.facts.alternates and transcript.groups[run.last].partial


def kept_thoughts(transcript: Transcript, anchor: Anchor) -> list[int]:
    """Messages with only thoughts that stay before the anchor, for formats in which thoughts can
    only be removed with their whole step."""
    if not transcript.format.thoughts_stay:
        return []
    group = transcript.groups[transcript.table.of_message[anchor.call.message]]
    before = range(group.first, anchor.call.message)
    return [n for n in before if {p.kind for p in transcript.messages[n].parts} == {"reasoning"}]


# --- the model's last words ---


class Closing(NamedTuple):
    """The model's last words in a run: their message, and its blocks that stay."""

    message: int
    kept: tuple[int, ...] = ()


def closing_of(transcript: Transcript, run: Run, anchored: bool) -> Closing | None:
    """The message that gets a fold's words of the model at the end of a run: its last message, if
    that is the model's.

    If a provider requires reasoning in every message of a turn with calls, the message keeps its
    reasoning; without reasoning it can't stay, and the words go before the call.  If no call of the
    run stays and the user speaks next, the run ends with a text of ours.
    """
    group = transcript.groups[run.last]
    if group.has_calls and transcript.messages[group.last].role != "assistant":
        bare = run.opening is not None and not anchored and meets_user(transcript, run)
        return Closing(group.first) if bare else None
    blocks = enumerate(transcript.messages[group.last].blocks)
    thoughts = tuple(index for index, block in blocks if block.kind == "reasoning")
    calls_join = run.opening is not None and anchored  # the call that stays is now of its turn
    wanted = calls_join or not rules.may_drop_reasoning(transcript, group.last)
    if transcript.facts.dialect not in transcript.format.reasoners:
        return Closing(group.last)
    if anchored and not thoughts:
        return None
    after = transcript.messages[group.last + 1 : group.last + 2]
    if run.opening is not None and not anchored and all(m.role == "user" for m in after):
        wanted = False  # a turn without any call
    return Closing(group.last, thoughts if wanted else ())


def meets_user(transcript: Transcript, run: Run) -> bool:
    """Whether two messages of the user would meet although roles must alternate, if a run left no
    message of the model."""
    if not transcript.facts.alternates:
        return False
    end = transcript.groups[run.last]
    after = transcript.messages[end.last + 1 : end.last + 2]
    return end.partial or any(message.role == "user" for message in after)
