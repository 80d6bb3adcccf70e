"""The oldest steps folded into notes: their best lines, word for word, under one-line headers.

Knows which groups may go and what a batch may take.  Does not know how lines are weighed
(cover.py) nor where a note is written (edits.py).  Notes of earlier batches stay as they are, so
that the prompt cache keeps hitting, as long as there is room for a fair part of what is folded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from trimtab.model import Block, Group, Place
from trimtab.planning.board import Board
from trimtab.planning.cover import Choice, Source, left_of, written
from trimtab.planning.plan import FOLD_LOSS, LEAST_GAIN, Planner
from trimtab.planning.runs import Run
from trimtab.planning.weights import counts
from trimtab.presets import STALE
from trimtab.reading.notes import LINES
from trimtab.strategies import Offer
from trimtab.strategies.base import smaller

FAIR_SHARE = 0.3
"""Of what is folded so much must have room, or all notes are chosen anew (measured)."""
HORIZON = 2
"""Windows of history whose lines are all chosen from when notes are chosen anew (on 30
recordings as much stays as with all of them)."""
SMALL = 128
"""Blocks up to this many tokens are left alone as long as only the target asks for them."""
PASSES, LEFT_TOKENS = 3, 64
"""What lines cost is estimated high, by a fifth: where there is little room, what was left is
spent, so often and while it is so much.  Elsewhere that adds cost as it adds lines (measured)."""
FRAME_TOKENS = 30
"""What a note takes beside its lines."""


def make_room(planner: Planner) -> None:
    """Down to the target where that can be had cheaply, under the limits in any case."""
    bounds, board, scope = planner.bounds, planner.board, planner.scope
    goal = scope.target(bounds.target, bounds.trigger)
    if planner.choice.want and board.tokens > bounds.trigger:
        places = list(planner.reducible(0, scope.raw_from, prose=False, spared=False))
        most_loss = planner.choice.most_loss
        first = min(most_loss, STALE)
        any_loss = most_loss == 1.0
        planner.reduce(
            places, lambda: board.tokens <= goal, SMALL, most_loss=first, priced=any_loss
        )
        if planner.over():
            most_loss = 1.0  # whatever it takes, and far enough down to last for some turns
        if board.tokens > goal and most_loss == 1.0:
            _cut_newest(planner)
            try:
                if board.tokens > goal and planner.choice.folds:
                    fold(planner, goal)
            except Exception as error:  # an error of ours must never break a request (law 10)
                said = f"{type(error).__name__}: {error}"
                planner.choice.failures.append(f"strategy skipped: fold: {said}")
        planner.reduce(places, lambda: board.tokens <= goal, SMALL, most_loss=most_loss)
        if not planner.over():
            planner.fill(goal)
            planner.give_back(goal)
            return
    if planner.over():
        planner.must(lambda: not planner.over())
        planner.give_back(goal)


def _cut_newest(planner: Planner) -> None:
    """A newest turn that is too large for the room is cut before older ones lose all for it."""
    groups, scope, board = planner.transcript.groups, planner.scope, planner.board
    if not groups or groups[-1].first >= scope.raw_from:
        return
    end = len(planner.transcript.messages)
    newest = planner.reducible(groups[-1].first, end, prose=False, spared=False)
    planner.reduce(newest, lambda: board.group_cost(groups[-1]) <= scope.arrival, SMALL)


def fold(planner: Planner, goal: int) -> None:
    """Fold every old group; keep as many of their lines as fit under ``goal`` tokens."""
    board, old = planner.board, dict[int, str]()
    fresh = _foldable(planner)
    prose = _prose(planner)
    if not fresh and not prose:
        return
    room, size = _room(planner, goal, fresh, prose)
    if board.runs and room < FAIR_SHARE * size:
        old = _lift(planner)
        fresh, prose = _foldable(planner), _prose(planner, again=True)
        room, size = _room(planner, goal, fresh, prose)
    runs = list(_runs(planner, fresh))
    room -= FRAME_TOKENS * max(len(runs) - 1, 0) * planner.scope.tight  # elsewhere enough is left
    sources = [list(_all_sources(planner, run, old)) for run in runs]
    said = [_source(planner, place, "") for place in prose]
    every = [*(source for own in sources for source in own), *said]
    choice = Choice(
        every, planner.choice.weights(planner.transcript), _standing(planner, fresh, prose)
    )
    _take(planner, choice, room, [*sources, said])
    for run, own in zip(runs, sources, strict=True):
        lines = "\n".join(written(own))
        saved, most = (board.drop_saving(run[0], run[-1], text) for text in (lines, ""))
        if saved > most:  # nothing may be smaller than what the floor is made of
            lines, saved = "", most
        if saved > 0:
            board.drop(run[0], run[-1], lines)
            planner.used("fold")
            planner.folded[run[0]] = own
    for place, source in zip(prose, said, strict=True):
        _shorten(planner, place, source)


def _take(planner: Planner, choice: Choice, room: int, parts: Sequence[Sequence[Source]]) -> None:
    """Keep the best lines of all parts, ``room`` tokens of them."""
    left, before = room, -1
    for _ in range(PASSES if planner.scope.tight else 1):
        choice.take(left)
        kept = sum(len(source.kept) for part in parts for source in part)
        if kept == before:
            return
        used = sum(planner.usage.counter("\n".join(written(part))) for part in parts)
        left, before = room - used, kept
        if left < LEFT_TOKENS:
            return


def _lift(planner: Planner) -> dict[int, str]:
    """Take back all that was dropped or folded and may be folded anew.

    Returns what was left of the groups beyond ``HORIZON``: nothing else is looked at there, or a
    batch would cost more the longer a session lasts.  What a model said of steps is none of their
    lines: these are read whole, or nothing would be left of them.
    """
    near, left = _horizon(planner), dict[int, str]()
    for old in planner.board.runs:
        numbers = range(old.first, old.last + 1)
        if all(planner.scope.droppable(number, spared=False) for number in numbers):
            planner.board.lift(old)
            if old.left == LINES:
                left.update((number, old.lines) for number in numbers if number < near)
    return left


def _horizon(planner: Planner) -> int:
    """The first group of the newest so many tokens."""
    groups, usage, messages = planner.transcript.groups, planner.usage, planner.transcript.messages
    tokens, number = HORIZON * planner.bounds.capacity, len(groups)
    while number and tokens > 0:
        number -= 1
        group = groups[number]
        tokens -= sum(map(usage.message, messages[group.first : group.last + 1]))
    return number


def _all_sources(planner: Planner, run: Sequence[int], old: Mapping[int, str]) -> Iterator[Source]:
    """The blocks of a run; of ``old`` groups, the lines that were left."""
    for number in run:
        found = _sources(planner, [planner.transcript.groups[number]])
        if number in old:
            for source in found:
                source.lines = left_of(source.lines, old[number])
            found = [source for source in found if source.lines.lines]
        yield from found


def _room(
    planner: Planner, goal: int, fresh: Sequence[int], prose: Sequence[Place]
) -> tuple[int, int]:
    """Tokens there are for lines, and of what they are chosen from."""
    board = planner.board
    size = sum(board.run_cost(index, index) for index in fresh)
    size += sum(board.cost(place) for place in prose)
    return goal - (board.tokens - size) - FRAME_TOKENS * (1 + len(prose)), size


def _prose(planner: Planner, *, again: bool = False) -> list[Place]:
    """What the agent said in old turns without calls; ``again``: what was shortened before too."""
    board, transcript, scope = planner.board, planner.transcript, planner.scope
    found = []
    for group in (transcript.groups[number] for number in transcript.index.rows.talk):
        if group.last >= scope.raw_from or not group.closed:
            continue
        for place in group.places:
            block, key = place.block, (place.message, place.index)
            if block.kind != "text" or block.sealed or scope.pinned(place):
                continue
            if board.cost(place) > SMALL or (again and key in board.shown):
                found.append(place)
    return found


def _shorten(planner: Planner, place: Place, source: Source) -> None:
    """Show the kept lines of one text, in place."""
    rows, board = written([source]), planner.board
    left = len(source.lines.lines) - len(source.kept)
    if left < 1:
        return
    text = "\n".join([*rows, f"[{left:,} more line{'s' * (left > 1)} left out to fit]"])
    offer = Offer("replace", text, FOLD_LOSS, "fold", "its lines that may be needed again")
    least = min(planner.offers(place), key=lambda o: board.price(place, o), default=None)
    if least is None:
        return
    if not rows or board.price(place, offer) < board.price(place, least):
        offer = least  # nothing may be smaller than what the floor is made of
    gain = board.cost(place) - board.price(place, offer)
    if gain >= LEAST_GAIN and smaller(offer.text, place.block.text, planner.usage.counter):
        planner.show(place, offer)


def _foldable(planner: Planner) -> list[int]:
    groups, scope = planner.transcript.groups, planner.scope
    return [
        index
        for index in planner.board.standing_groups()
        if groups[index].last < scope.raw_from and scope.droppable(index, spared=False)
    ]


def _runs(planner: Planner, fresh: Sequence[int]) -> Iterator[list[int]]:
    """The groups as runs of neighbours."""
    groups = planner.transcript.groups
    run = list(fresh[:1])
    for before, after in pairwise(fresh):
        if after != before + 1 or not planner.transcript.adjoin(groups[before], groups[after]):
            yield run
            run = []
        run.append(after)
    if run:
        yield run


def _sources(planner: Planner, groups: Sequence[Group]) -> list[Source]:
    """The blocks of these groups as the model reads them: each result behind its call."""
    found = []
    for group in groups:
        results: dict[str, list[Place]] = {}
        for place in group.places:
            if place.block.kind == "result":
                results.setdefault(place.block.call_id or "", []).append(place)
        headers: dict[str, str] = {}
        for place in group.places:
            block = place.block
            if block.kind == "text":
                found.append(_source(planner, place, ""))
            elif block.kind == "call":
                header = headers[block.call_id or ""] = planner.choice.lines(block).header
                found.append(_source(planner, place, header))
                for result in results.pop(block.call_id or "", ()):
                    if not _stale(planner, result):
                        found.append(_source(planner, result, header))
        for rest in results.values():
            found += [_source(planner, place, "") for place in rest]
    return found


def _stale(planner: Planner, place: Place) -> bool:
    """Whether the same came again later, or what came later holds instead."""
    facts = planner.choice.facts(place)
    return facts.duplicate in ("call", "text") or bool(facts.superseded)


def _source(planner: Planner, place: Place, header: str) -> Source:
    block = place.block
    tokens = planner.usage.block(planner.transcript, place)
    rate = tokens / max(len(block.text), 1)
    return Source(block.kind, planner.choice.lines(block), min(max(rate, 0.15), 1.5), header)


def _standing(planner: Planner, fresh: Sequence[int], prose: Sequence[Place]) -> set[str]:
    """Identifiers that stand among words in what is sent anyway."""
    read, transcript, board = planner.choice.lines, planner.transcript, planner.board
    found: set[str] = set()
    chosen = {(place.message, place.index) for place in prose}
    for number in _kept_messages(planner, fresh):
        for place in transcript.places_in(number):
            speaks = counts(place.block) or place.block.kind == "system"
            if speaks and (number, place.index) not in chosen:
                found |= read(place.block).grounded
    for run in board.runs:
        if run.lines:
            found |= read(_note_block(board, run)).grounded
    return found


def _kept_messages(planner: Planner, fresh: Sequence[int]) -> Iterator[int]:
    """The numbers of all messages but those of dropped and of ``fresh`` groups; the head's too."""
    groups = planner.transcript.groups
    spans = [(groups[run.first].first, groups[run.last].last) for run in planner.board.runs]
    spans += [(groups[index].first, groups[index].last) for index in fresh]
    number = -1
    for first, last in sorted(spans):
        yield from range(number, first)
        number = last + 1
    yield from range(number, len(planner.transcript.messages))


def _note_block(board: Board, run: Run) -> Block:
    return Block("text", (), (), run.lines)
