"""The oldest steps folded into notes: their best lines, word for word, under one-line headers.

Knows which groups may go and what a batch may take.  Does not know how lines are weighed
(cover.py), which notes are taken back (lifting.py), nor where one is written (edits.py).  Notes of
earlier batches stay as they are, so that the prompt cache keeps hitting, as long as there is room
for a fair part of what is folded.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from trimtab.model import Block, Group, Place
from trimtab.planning.board import Board
from trimtab.planning.cover import Choice, Source, written
from trimtab.planning.lifting import FAR_SHARE, Lifted, lift
from trimtab.planning.lines import Lines
from trimtab.planning.plan import FOLD_LOSS, LEAST_GAIN, Planner
from trimtab.planning.remains import Key
from trimtab.planning.runs import Run
from trimtab.planning.weights import counts
from trimtab.presets import STALE
from trimtab.strategies import Offer
from trimtab.strategies.base import smaller

FAIR_SHARE = 0.3
"""Of what is folded so much must have room, or all notes are chosen anew (measured)."""
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
    board, old = planner.board, Lifted()
    fresh = _foldable(planner)
    prose = _prose(planner)
    if not fresh and not prose:
        return
    room, size = _room(planner, goal, fresh, prose)
    if board.runs and room < FAIR_SHARE * size:
        old = lift(planner)
        fresh = list(old.parted(_foldable(planner)))
        prose = _prose(planner, again=True)
        room, size = _room(planner, goal, fresh, prose)
    room -= FRAME_TOKENS * max(len(fresh) - 1, 0) * planner.scope.tight  # elsewhere enough is left
    sources = [list(_all_sources(planner, span, old)) for span in fresh]
    read = planner.choice.lines
    said = [_source(planner, place, read(place.block), "") for place in prose]
    every = [*(source for own in sources for source in own), *said]
    choice = Choice(
        every, planner.choice.weights(planner.transcript), _standing(planner, fresh, prose)
    )
    if old.past:
        choice.far = FAR_SHARE * room
    _take(planner, choice, room, [*sources, said])
    for (first, last), own in zip(fresh, sources, strict=True):
        lines = "\n".join(written(own))
        saved, most = (board.drop_saving(first, last, text) for text in (lines, ""))
        if saved > most:  # nothing may be smaller than what the floor is made of
            lines, saved = "", most
        if saved > 0:
            board.drop(first, last, lines)
            planner.used("fold")
            planner.folded[first] = own
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


def _all_sources(planner: Planner, span: tuple[int, int], old: Lifted) -> Iterator[Source]:
    """The blocks of a row of groups; of ``old`` ones, the lines that were left."""
    groups, read = planner.transcript.groups, planner.choice.lines
    for number in old.read(span):
        left = old.left.get(number)
        own = partial(_of, left) if left else lambda place: read(place.block)
        for source in _sources(planner, groups[number], own):
            source.far = number < old.past
            yield source


def _of(left: Mapping[Key, Lines], place: Place) -> Lines | None:
    return left.get((place.message, place.index))


def _room(
    planner: Planner, goal: int, fresh: Sequence[tuple[int, int]], prose: Sequence[Place]
) -> tuple[int, int]:
    """Tokens there are for lines, and of what they are chosen from."""
    board = planner.board
    size = sum(board.run_cost(first, last) for first, last in fresh)
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


def _foldable(planner: Planner) -> list[tuple[int, int]]:
    """The rows of neighbouring groups that stand and may go: the first and the last of each."""
    groups, scope, found = planner.transcript.groups, planner.scope, list[tuple[int, int]]()
    number, end = 0, bisect_left(groups, scope.raw_from, key=lambda group: group.last)
    for run in planner.board.runs:
        found += scope.spans(number, min(run.first, end))
        number = run.last + 1
    return [*found, *scope.spans(number, end)]


def _sources(planner: Planner, group: Group, read: Callable[[Place], Lines | None]) -> list[Source]:
    """The blocks of a group as the model reads them: each result behind its call."""
    results: dict[str, list[Place]] = {}
    for place in group.places:
        if place.block.kind == "result":
            results.setdefault(place.block.call_id or "", []).append(place)
    found: list[Source] = []

    def add(places: Iterable[Place], header: str) -> None:
        for place in places:
            lines = read(place)
            if lines and not (header and place.block.kind == "result" and _stale(planner, place)):
                found.append(_source(planner, place, lines, header))

    for place in group.places:
        block = place.block
        if block.kind == "text":
            add([place], "")
        elif block.kind == "call":
            header = planner.choice.lines(block).header
            add([place, *results.pop(block.call_id or "", ())], header)
    for rest in results.values():
        add(rest, "")
    return found


def _stale(planner: Planner, place: Place) -> bool:
    """Whether the same came again later, or what came later holds instead."""
    facts = planner.choice.facts(place)
    return facts.duplicate in ("call", "text") or bool(facts.superseded)


def _source(planner: Planner, place: Place, lines: Lines, header: str) -> Source:
    block = place.block
    tokens = planner.usage.block(planner.transcript, place)
    rate = tokens / max(len(block.text), 1)
    return Source(block.kind, lines, min(max(rate, 0.15), 1.5), header)


def _standing(
    planner: Planner, fresh: Sequence[tuple[int, int]], prose: Sequence[Place]
) -> set[str]:
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


def _kept_messages(planner: Planner, fresh: Sequence[tuple[int, int]]) -> Iterator[int]:
    """The numbers of all messages but those of dropped and of ``fresh`` groups; the head's too."""
    groups = planner.transcript.groups
    spans = [(groups[run.first].first, groups[run.last].last) for run in planner.board.runs]
    spans += [(groups[first].first, groups[last].last) for first, last in fresh]
    number = -1
    for first, last in sorted(spans):
        yield from range(number, first)
        number = last + 1
    yield from range(number, len(planner.transcript.messages))


def _note_block(board: Board, run: Run) -> Block:
    return Block("text", (), (), run.lines)
