"""Which edits to make: the least loss that meets the limits, decided once for a batch.

Knows limits, offers and their order.  Does not know JSON, formats or the network.

Two goals.  *want*: down to ``target`` with levels of detail outside the newest part; the oldest
groups are folded into a note first where the fixed cost of all pairs is too large.  *must*: under
the window (and the bytes), by dearer rungs in turn: older groups dropped, the newest part cut, the
model's words cut, and last the user's.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

from trimtab.model import Block, Edit, Path, Place, Transcript
from trimtab.planning.board import Board, Key, Shown
from trimtab.planning.cover import Source
from trimtab.planning.edits import handle
from trimtab.planning.scope import Choice, Scope
from trimtab.planning.value import value
from trimtab.reading.notes import LINES
from trimtab.reading.usage import Usage
from trimtab.strategies import (
    DEEP,
    HANDLE,
    Offer,
    Strategy,
    cut_to,
    demands_tokens,
    digest_to,
    text_levels,
    user_cut,
    with_handle,
)  # fmt: skip
from trimtab.strategies import levels as levels_of

FOLD_LOSS = 0.5
"""Loss of a step of which the best lines stay."""
LEAST_GAIN = 16
"""Tokens an edit must save: less is not worth a changed block."""
FILL_TOKENS = 128
"""Room that is worth a longer excerpt."""
USER_TOKENS, SHORTEST = 60, 1
"""What the last rung leaves of a user's text, beside what it demands, and where that is not enough:
its first and last 100 characters."""

Steps = Iterator[tuple[float, Offer, int]]
"""(value lost per token saved, offer, tokens) of each level of one block."""


@dataclass(frozen=True)
class Bounds:
    """Limits as numbers: tokens may reach ``capacity``; a batch starts above ``trigger`` and goes
    down to the share ``target`` of the room; None where there is no such limit."""

    capacity: int
    trigger: int
    target: float
    body_bytes: int | None = None
    result_chars: int | None = None
    images: int | None = None


class Planner:
    """One batch on one transcript."""

    def __init__(
        self,
        transcript: Transcript,
        usage: Usage,
        choice: Choice,
        bounds: Bounds,
        active: Sequence[Edit],
        body_bytes: int = 0,
        item_bytes: Callable[[Path], int] | None = None,
    ) -> None:
        self.transcript, self.usage, self.choice, self.bounds = transcript, usage, choice, bounds
        self.scope = Scope(transcript, usage, choice, bounds.capacity)
        self.board = Board(
            transcript, usage, recall=choice.config.recall, handle_key=choice.handle_key,
            item_bytes=item_bytes,
        )  # fmt: skip
        self.board.load(active)
        self.body_bytes = body_bytes
        self.tried: list[str] = []
        self.folded: dict[int, Sequence[Source]] = {}
        """First group of a run that was folded → what its lines were chosen from."""
        self._moves: list[tuple[Place, Shown | None]] = []

    def over(self) -> bool:
        """Whether tokens or bytes are above what the provider takes."""
        return self.board.tokens > self.bounds.capacity or self._bytes_over()

    def _bytes_over(self) -> bool:
        limit = self.bounds.body_bytes
        return limit is not None and self.body_bytes - self.board.bytes_saved > limit

    # --- moves ---

    def show(self, place: Place, offer: Offer, tokens: int | None = None) -> None:
        """Show an offer, remembered so that it can be given back."""
        self._moves.append((place, self.board.shown.get((place.message, place.index))))
        cost = self.board.price(place, offer) if tokens is None else tokens
        self.board.show(place, offer, cost)
        self.used(offer.kind)

    def used(self, kind: str) -> None:
        """Note that this kind of reduction was tried."""
        if kind not in self.tried:
            self.tried.append(kind)

    def give_back(self, goal: int) -> None:
        """Take moves back, dearest and newest first, where the room allows it after all."""
        board = self.board
        for place, before in reversed(self._moves):
            key = (place.message, place.index)
            if board.gone(place) or key not in board.shown:
                continue
            after = board.shown[key]
            then = before.tokens if before else self.usage.block(self.transcript, place)
            if 0 < then - after.tokens <= goal - board.tokens and not self._bytes_over():
                board.restore(place, before)
                if self._bytes_over():
                    board.show(place, after.offer, after.tokens, after.edit)
        self._moves = []

    def fill(self, goal: int) -> None:
        """Lengthen the excerpts and digests made last, where a level was more than it took."""
        board, first = self.board, dict[Key, tuple[Place, Shown | None]]()
        for place, before in self._moves:
            first.setdefault((place.message, place.index), (place, before))
        for key, (place, before) in reversed(first.items()):
            slack = goal - board.tokens
            if slack < FILL_TOKENS or self._bytes_over():
                break
            shown = board.shown.get(key)
            if shown is None or shown.edit is not None or board.gone(place):
                continue
            then = before.tokens if before else self.usage.block(self.transcript, place)
            beside = shown.tokens - self.usage.counter(shown.offer.text)  # label and frame
            tokens = min(shown.tokens + slack, then - LEAST_GAIN) - beside
            offer = self._longer(place, shown.offer.kind, tokens)
            if offer is None:
                continue
            offer = self._with_handle(place, offer)
            cost = board.price(place, offer)
            if shown.tokens < cost <= shown.tokens + slack:
                board.show(place, offer, cost)

    def _longer(self, place: Place, kind: str, tokens: int) -> Offer | None:
        """What a level of this kind shows with so many tokens."""
        block, config = self._named(place), self.choice.config
        if kind == "head-and-tail":
            return cut_to(block, config, tokens)
        if not kind.endswith("-digest"):
            return None
        for offer in levels_of(block, self.choice.config_for(place), strategies=self._light):
            if offer.loss > 0:
                break
            block = replace(block, text=offer.text)
        return digest_to(block, config, tokens)

    def reducible(self, first: int, end: int, *, prose: bool, spared: bool) -> Iterator[Place]:
        """Blocks of messages[first:end] that stand and may be shown smaller."""
        numbers = self.board.messages(first, min(end, self.scope.open_from))
        return self.scope.reducible(numbers, prose=prose, spared=spared)

    # --- levels of detail ---

    def offers(self, place: Place, *, deep: bool = True) -> Iterator[Offer]:
        """Levels of one block, rising loss, handles filled in; ``deep``: those that lose too."""
        choice = self.choice

        def begin(failures: list[str]) -> Iterator[Offer]:
            block = self._named(place)
            if block.kind == "text":
                return text_levels(block, choice.config)
            strategies = choice.strategies if deep else self._light
            config = choice.config_for(place)
            return levels_of(block, config, strategies=strategies, failures=failures)

        key = (place.message, place.index, deep)
        for offer in choice.offered.levels(key, begin, choice.failures):
            yield self._with_handle(place, offer)

    @cached_property
    def _light(self) -> tuple[Strategy, ...]:
        return tuple(one for one in self.choice.strategies if one not in DEEP)

    def _named(self, place: Place) -> Block:
        """The block, a result knowing the tool it came from."""
        block = place.block
        if block.kind == "result" and block.tool is None:
            return replace(block, tool=self.transcript.tool(place))
        return block

    def handle(self, place: Place) -> str:
        """The handle of one block."""
        return handle((self.transcript.ref(place),), self.choice.handle_key)

    def _with_handle(self, place: Place, offer: Offer) -> Offer:
        if HANDLE not in offer.text:
            return offer
        own = self.handle(place)
        return replace(offer, text=with_handle(offer.text, place.block.text, own))

    def _steps(self, place: Place, *, deep: bool = True) -> Steps:
        """The useful levels of one block and what each costs in value per token saved."""
        whole = self.usage.block(self.transcript, place)
        age = 1.0 - place.message / max(len(self.transcript.messages), 1)
        worth, lost, now = value(place.block, whole, age), 0.0, self.board.cost(place)
        for offer in self.offers(place, deep=deep):
            tokens = self.board.price(place, offer)
            if now - tokens < LEAST_GAIN and not place.block.media:
                continue
            now_lost = worth * (1.0 - sqrt(1.0 - offer.loss))
            more = max(now_lost - lost, 0.0)
            price = more / max(now - tokens, 1) if offer.price is None else offer.price
            yield round(price, 9), offer, tokens
            lost, now = now_lost, tokens

    def reduce(
        self,
        places: Iterable[Place],
        enough: Callable[[], bool],
        least: int = LEAST_GAIN,
        *,
        most_loss: float = 1.0,
        priced: bool = False,
    ) -> None:
        """Take the cheapest step, again and again, until it is enough or nothing is left.

        ``most_loss``: only steps that lose no more; ``priced``: and those that come with a price.
        """
        heap: list[tuple[float, Key, Place, Offer, int, Steps]] = []

        def push(place: Place, steps: Steps) -> None:
            for price, offer, tokens in steps:
                if offer.loss <= most_loss or (priced and offer.price is not None):
                    key = (place.message, place.index)
                    heapq.heappush(heap, (price, key, place, offer, tokens, steps))
                return

        if enough():
            return
        for place in places:
            if self.board.cost(place) > least and not self.board.gone(place):
                push(place, self._steps(place, deep=most_loss == 1.0))
        while heap and not enough():
            _, _, place, offer, tokens, steps = heapq.heappop(heap)
            self.show(place, offer, tokens)
            push(place, steps)

    def exhaust(self, places: Iterable[Place]) -> None:
        """Show the last useful level of each block, which is where all steps together lead."""
        for place in places:
            if self.board.cost(place) <= LEAST_GAIN or self.board.gone(place):
                continue
            if steps := list(self._steps(place)):
                for _, offer, _ in steps:
                    self.used(offer.kind)
                self.show(place, *steps[-1][1:])

    def _drop(self, first: int, last: int) -> None:
        self.board.drop(first, last)
        self.used("drop")

    def drop_until(self, enough: Callable[[], bool], end: int, *, spared: bool) -> None:
        """Drop groups, oldest first, where that saves anything."""
        board = self.board
        for stretch in self.scope.stretches(end, spared=spared):
            for index in stretch:
                if enough():
                    return
                if index not in board.dropped and board.drop_saving(index, index) > 0:
                    self._drop(index, index)
            # One small group may cost less than the note that stands for it; several do not.
            rest = [index for index in stretch if index not in board.dropped]
            whole = bool(rest) and rest == list(range(rest[0], rest[-1] + 1))
            if whole and not enough() and board.drop_saving(rest[0], rest[-1]) > 0:
                self._drop(rest[0], rest[-1])

    def bare_notes(self, enough: Callable[[], bool]) -> None:
        """Take the lines from the notes of dropped runs, oldest first."""
        for run in [run for run in self.board.runs if run.lines]:
            if enough():
                return
            self.board.lift(run)
            self._drop(run.first, run.last)

    def must(self, enough: Callable[[], bool]) -> None:
        """Dearer rungs in turn, until it is enough."""
        end, raw = len(self.transcript.messages), self.scope.raw_from
        self.reduce(self.reducible(0, raw, prose=False, spared=False), enough)
        self.drop_until(enough, raw, spared=False)
        self.bare_notes(enough)
        self.reduce(self.reducible(0, end, prose=False, spared=False), enough)
        self.reduce(self.reducible(0, end, prose=True, spared=True), enough)
        self.drop_until(enough, end, spared=True)
        self._cut_users(enough)

    def _cut_users(self, enough: Callable[[], bool]) -> None:
        """The last rung: the user's own words, longest first, only as far as it takes; what they
        demand goes after everything else."""
        texts = sorted(self.scope.user_texts, key=lambda p: (-len(p.block.text), p.message))
        for bare in (False, True):
            for place in texts:
                if enough():
                    return
                least = SHORTEST
                if not bare:
                    least = USER_TOKENS + demands_tokens(place.block.text, self.choice.config)
                over = self.board.tokens - self.bounds.capacity
                room = least if self._bytes_over() else self.board.cost(place) - over
                for tokens in dict.fromkeys((max(room, least), least)):
                    self.cut_user(place, tokens)
                    if enough():
                        return

    def cut_user(self, place: Place, tokens: int) -> None:
        """Cut one text of the user to so many tokens, if that helps and is allowed."""
        board, scope = self.board, self.scope
        if scope.pinned(place) or board.gone(place) or place.message >= scope.open_from:
            return
        text = user_cut(place.block.text, self.choice.config, tokens)
        if text is None:
            return
        text = with_handle(text, place.block.text, self.handle(place))
        offer = Offer("replace", text, 0.9, "user-text", "the last resort: the user's own words")
        if board.price(place, offer) < board.cost(place):
            self.show(place, offer)

    def unbind(self, first: tuple[int, int]) -> None:
        """Remove the reasoning behind position ``first``: it is bound to what stood there.

        Of the latest model turn all goes, as it may not go in part.
        """
        why = "this model binds it to what stood before it, which an edit changed"
        thoughts = [
            Place(number, index, block)
            for number, message in enumerate(self.transcript.messages)
            if message.role == "assistant"
            for index, block in enumerate(message.blocks)
            if block.kind == "reasoning"
        ]
        groups = self.transcript.groups
        latest = groups[-1].first if groups else 0
        if any(p.message >= latest and (p.message, p.index) > first for p in thoughts):
            first = min(first, (latest, -1))
        for place in thoughts:
            key = (place.message, place.index)
            shown = self.board.shown.get(key)
            removed = shown is not None and shown.offer.op == "remove"
            if key > first and not removed and not self.board.gone(place):
                self.show(place, Offer("remove", "", 0.3, "bound-reasoning", why), 0)

    # --- the result ---

    def edits(self) -> tuple[Edit, ...]:
        """The new edits, in order of place; what the journal already shows is not repeated."""
        found: list[tuple[Key, Edit]] = []
        seen = witness(self.transcript)
        for place, shown in self.board.standing():
            if shown.edit is None:
                ref, offer = self.transcript.ref(place), shown.offer
                edit = Edit(
                    offer.op, (ref,), offer.text, offer.kind, offer.why, offer.loss, seen,
                    self.handle(place),
                )  # fmt: skip
                found.append(((place.message, place.index), edit))
        for run in self.board.runs:
            if run.edit is None:
                groups = self.board.groups(run)
                targets = self.transcript.index.targets(run.first, run.last)
                kind, loss = ("fold", FOLD_LOSS) if run.lines else ("drop", 1.0)
                why = f"{len(groups)} of the oldest steps, to make room"
                if run.left != LINES:
                    kind, why = "summary", f"{why}; in the words of a model"
                own = self.board.handle(run)
                edit = Edit("drop", targets, run.note, kind, why, loss, seen, own)
                found.append(((groups[0].first, -1), edit))
        return tuple(edit for _, edit in sorted(found, key=lambda pair: pair[0]))

    def kept(self) -> tuple[Edit, ...]:
        """The journal's edits that still stand on this request."""
        board = self.board
        old = [shown.edit for _, shown in board.standing() if shown.edit is not None]
        return (*old, *(run.edit for run in board.runs if run.edit), *board.inserted)


def witness(transcript: Transcript) -> str:
    """The newest model-authored block of the last closed group, or "" before there is one."""
    closed = (group for group in reversed(transcript.groups) if group.closed)
    places = (place for group in closed for place in reversed(group.places))
    own = (p for p in places if transcript.messages[p.message].role == "assistant")
    return next(map(transcript.ref, own), "")
