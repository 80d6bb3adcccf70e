"""Results that a model may give up, and the edits that take them out when it asks for it.

Knows which results can be named, and by what.  Pure: does not know who asks, nor where edits are
kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from trimtab.model import Edit, Place
from trimtab.planning.edits import handle
from trimtab.planning.plan import witness
from trimtab.strategies.base import Config
from trimtab.strategies.marker import LOSS, marker, with_handle
from trimtab.turns.work import Work

LEAST_TOKENS = 200
"""Shorter results are not worth a change."""
_LABEL_CHARS = 80


@dataclass(frozen=True, slots=True)
class Prunable:
    """One result that may be taken out: its name, the same on every turn; what it is; its size."""

    name: str
    ref: str
    about: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What came of asking: edits and originals to keep, and per name that was not taken why."""

    edits: tuple[Edit, ...]
    originals: Mapping[str, str]
    done: tuple[Prunable, ...]
    why_not: Mapping[str, str]


def prunable(work: Work) -> list[Prunable]:
    """The results that may be named: whole ones of closed groups, oldest first."""
    transcript, found = work.transcript, list[Prunable]()
    taken = {ref for edit in work.active for ref in edit.targets}
    spared = work.planner().choice.spared
    for group in transcript.groups:
        for place in group.places if group.closed else ():
            block = place.block
            if block.kind != "result" or block.sealed or (place.message, place.index) in spared:
                continue
            ref, tokens = transcript.ref(place), work.usage.block(transcript, place)
            if ref not in taken and tokens >= LEAST_TOKENS:
                found.append(Prunable(name_of(ref), ref, _about(work, place), tokens))
    return found


def name_of(ref: str) -> str:
    """A short name for a block, the same as long as the block stays."""
    return "p" + blake2b(ref.encode(), digest_size=3).hexdigest()


def _about(work: Work, place: Place) -> str:
    tool = work.transcript.tool(place) or "tool"
    first = place.block.text.strip().split("\n", 1)[0]
    text = "".join(c if c.isprintable() else " " for c in first[:_LABEL_CHARS])
    return f"{tool}: {text}"


def prune(work: Work, names: Sequence[str], *, recall: bool, key: bytes = b"") -> Pruned:
    """Take out what is named; what cannot be is told with the reason."""
    free = {one.name: one for one in prunable(work)}
    every = {name_of(ref): ref for ref in work.transcript.refs}
    taken = {name_of(ref) for edit in work.active for ref in edit.targets}
    edits, originals, why_not = list[Edit](), dict[str, str](), dict[str, str]()
    done = list[Prunable]()
    for name in dict.fromkeys(names):
        one = free.get(name)
        if one is None:
            why_not[name] = _reason(name, every, taken)
            continue
        place = work.transcript.refs[one.ref]
        own = handle((one.ref,), key)
        config = Config(work.usage.counter, recall=recall)
        text = with_handle(marker(place.block, config), place.block.text, own)
        seen = witness(work.transcript)
        edits.append(
            Edit("replace", (one.ref,), text, "pruned", "the model asked for it", LOSS, seen, own)
        )
        originals[own] = place.block.text
        done.append(one)
    return Pruned(tuple(edits), originals, tuple(done), why_not)


def _reason(name: str, every: Mapping[str, str], taken: set[str]) -> str:
    if name in taken:
        return "was shortened or taken out before"
    if name in every:
        return "may not be taken out: it is protected, short, or of the step that is going on"
    return "is no name in this conversation: it has changed since, or never had one"
