"""Handles reasoning whose signature covers everything before it and that an edit invalidates.

The format knows which models bind reasoning, and how the API is asked to drop it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from trimtab.formats.rules import Repair
from trimtab.jsontext.paths import Path
from trimtab.planning.edits import note_host
from trimtab.planning.operations import Applied, operations
from trimtab.planning.planner import Planner
from trimtab.reducers import Offer
from trimtab.transcript.model import Edit, Facts, Place
from trimtab.transcript.transcript import Transcript

Thinking = Literal["drop", "drop_block"]
"""How invalidated reasoning is handled: removed here, or the API is asked to drop it."""

DROP_BLOCK = "drop-block"
"""The kind of edit that asks the API to drop reasoning."""


def unbind(planner: Planner, thinking: Thinking, repairs: Sequence[Repair]) -> None:
    """Remove the reasoning after the first change of this call, unless the API is asked to drop it.

    ``thinking``: "drop" or "drop_block"; ``repairs``: those that change the request this time.
    """
    facts, format = planner.transcript.facts, planner.transcript.format
    if format.binds_reasoning(facts) and not _asks(facts, thinking):
        spots = _positions(planner, repairs)
        if spots:
            _remove_thoughts(planner, min(spots))


def _remove_thoughts(planner: Planner, first: tuple[int, int]) -> None:
    """Remove the reasoning after position ``first``: it is bound to the content that was there.

    In the latest model turn all reasoning is removed, as it must not be removed in part.
    """
    why = "this model binds it to what was before it, which an edit changed"
    thoughts = [
        Place(number, index, block)
        for number, message in enumerate(planner.transcript.messages)
        if message.role == "assistant"
        for index, block in enumerate(message.blocks)
        if block.kind == "reasoning"
    ]
    groups = planner.transcript.groups
    latest = groups[-1].first if groups else 0
    if any(p.message >= latest and (p.message, p.index) > first for p in thoughts):
        first = min(first, (latest, -1))
    for place in thoughts:
        key = (place.message, place.index)
        shown = planner.state.shown.get(key)
        removed = shown is not None and shown.offer.op == "remove"
        if key > first and not removed and not planner.state.is_dropped(place):
            planner.show(place, Offer("remove", "", 0.3, "bound-reasoning", why), 0)


def _asks(facts: Facts, thinking: Thinking) -> bool:
    """Whether the API is asked to drop invalid reasoning; only if thinking is on at all."""
    return thinking == "drop_block" and not facts.bare and facts.thinking != "disabled"


def _positions(planner: Planner, repairs: Sequence[Repair]) -> list[tuple[int, int]]:
    """The places where this call changes the request, as (message, index of block)."""
    state, transcript = planner.state, planner.transcript
    spots = [key for key, shown in state.shown.items() if shown.edit is None]
    for run in state.runs:
        if run.edit is None:
            groups = state.groups(run)
            first = groups[0].first if run.opening is None else run.opening
            host = None if run.fold else note_host(transcript, groups, state.drops)
            spots.append((first, -1) if host is None else (host, 10**9))
    spots += (spot for repair in repairs for spot in _repaired(repair, transcript.base))
    return spots


def _repaired(repair: Repair, base: Path) -> Iterator[tuple[int, int]]:
    """Where a repair changes the request: at its operations, or at its beginning where these are
    not on messages.  What is behind the message that broke the rule saw something else there
    than we do; the message itself did not."""
    depth = len(base)
    for op in repair.ops:
        number = op.path[depth] if op.path[:depth] == base and len(op.path) > depth else 0
        yield (number, -1) if isinstance(number, int) else (0, -1)
    if repair.path[:depth] == base and len(repair.path) > depth:
        number = repair.path[depth]
        yield (number, 10**9) if isinstance(number, int) else (0, -1)


def with_option(
    transcript: Transcript, tree: Any, edits: Sequence[Edit], thinking: Thinking, *, changed: bool
) -> list[Applied]:
    """The operations of these edits, with the request's own option to let the API drop reasoning
    that no longer fits, where that is wanted and there is any.

    ``changed``: whether the request is sent otherwise than it came, by these edits or a repair.
    """
    applied = operations(transcript, tree, edits)
    format, facts = transcript.format, transcript.facts
    if not (changed and _asks(facts, thinking) and format.binds_reasoning(facts)):
        return applied
    if not any(block.kind == "reasoning" for m in transcript.messages for block in m.blocks):
        return applied
    ops = format.drop_block_ops(tree)
    if ops:
        why = "asks the API to drop thinking that an edit unbound"
        edit = Edit("insert", (), "", DROP_BLOCK, why)
        applied.append(Applied(edit, tuple(op.path for op in ops), ops))
    return applied
