"""Chooses the edits of one cut: those with the least loss that meet the limits.

There are two goals; ``make_room`` takes the steps in order.  The first is ``target``: dead weight
and small losses outside the newest part go, then old groups are folded into notes.  The second is
to get under the window (and the bytes) at any cost: older groups are dropped, then the newest part
is cut, the model's words, and last the user's.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from typing import Protocol

from trimtab.jsontext.paths import Path
from trimtab.lazy import cached_property
from trimtab.planning import runs
from trimtab.planning.dropped_ranges import DroppedRange
from trimtab.planning.edits import handle
from trimtab.planning.eligibility import Bounds, Eligibility, PlanInputs
from trimtab.planning.line_selection import CandidateLines
from trimtab.planning.offers import Which, value
from trimtab.planning.plan_state import PlanState
from trimtab.planning.record import Entry
from trimtab.planning.runs import Run
from trimtab.planning.shown_blocks import Key, Replacement
from trimtab.reducers import (  # fmt: skip
    DEAD,
    DEEP,
    HANDLE,
    Offer,
    Reducer,
    cut_to,
    digest_to,
    records_to,
    text_levels,
    with_handle,
)
from trimtab.reducers import levels as levels_of
from trimtab.transcript.model import Block, Edit, Place
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript

FOLD_LOSS = 0.5
"""Loss of folding a step, of which the best lines are kept."""
MIN_GAIN = 16
"""The least tokens that an edit must save."""
FILL_TOKENS = 128
"""The least free tokens for which an excerpt is lengthened."""

Steps = Iterator[tuple[float, Offer, int]]
"""(value lost per token saved, offer, tokens) of each level of one block."""


class FoldedSteps(Protocol):
    """What the lines of a folded run were chosen from."""

    @property
    def entries(self) -> Sequence[Entry]: ...
    @property
    def prose(self) -> Sequence[CandidateLines]: ...


class Planner:
    """One cut on one transcript."""

    def __init__(
        self,
        transcript: Transcript,
        sizes: TokenSizes,
        inputs: PlanInputs,
        bounds: Bounds,
        active: Sequence[Edit],
        body_bytes: int = 0,
        item_bytes: Callable[[Path], int] | None = None,
    ) -> None:
        self.transcript, self.sizes, self.inputs, self.bounds = transcript, sizes, inputs, bounds
        self.eligibility = Eligibility(transcript, sizes, inputs, bounds)
        self.state = PlanState(
            transcript, sizes, recall=inputs.config.recall, handle_key=inputs.handle_key,
            item_bytes=item_bytes,
        )  # fmt: skip
        self._leave_out_pins()
        self.state.load(active)
        self.is_first = not active
        """Whether there are no edits yet: as in a single fit, or in a session's first cut."""
        self.body_bytes = body_bytes
        self.goal: int | None = None
        """The size in tokens at which this cut stops; None without a cut or if only the limits
        count."""
        self.tried: list[str] = []
        self.folded: dict[int, FoldedSteps] = {}
        """First group of a folded run → what its lines were chosen from."""
        self._moves: list[tuple[Place, Replacement | None]] = []

    def _leave_out_pins(self) -> None:
        """Separate pinned texts from the neighbours they are joined with."""
        for ref in self.inputs.pinned:
            if (place := self.transcript.refs.get(ref)) is not None:
                self.state.joined.leave_out(place)

    def over(self) -> bool:
        """Whether tokens or bytes are above the provider's limits."""
        return self.state.tokens > self.bounds.capacity or self.bytes_over()

    def bytes_over(self) -> bool:
        limit = self.bounds.body_bytes
        return limit is not None and self.body_bytes - self.state.bytes_saved > limit

    # --- moves ---

    def show(self, place: Place, offer: Offer, tokens: int | None = None) -> None:
        """Show an offer, and record the move so that it can be undone."""
        self._moves.append((place, self.state.shown.get((place.message, place.index))))
        cost = self.state.price(place, offer) if tokens is None else tokens
        self.state.show(place, offer, cost)
        self.used(offer.kind)

    def used(self, kind: str) -> None:
        """Note that this kind of reduction was tried."""
        if kind not in self.tried:
            self.tried.append(kind)

    def revert(self, goal: int) -> None:
        """Undo moves, the most costly and newest first, as far as the room allows."""
        state = self.state
        for place, before in reversed(self._moves):
            key = (place.message, place.index)
            if state.is_dropped(place) or key not in state.shown:
                continue
            after = state.shown[key]
            then = before.tokens if before else self.state.whole(place)
            if 0 < then - after.tokens <= goal - state.tokens and not self.bytes_over():
                state.restore(place, before)
                if self.bytes_over():
                    state.show(place, after.offer, after.tokens, after.edit)
        self._moves = []

    def fill(self, goal: int) -> None:
        """Lengthen the excerpts and digests made last, if they cut more than needed."""
        state, first = self.state, dict[Key, tuple[Place, Replacement | None]]()
        for place, before in self._moves:
            first.setdefault((place.message, place.index), (place, before))
        for key, (place, before) in reversed(first.items()):
            slack = goal - state.tokens
            if slack < FILL_TOKENS or self.bytes_over():
                break
            shown = state.shown.get(key)
            if shown is None or shown.edit is not None or state.is_dropped(place):
                continue
            then = before.tokens if before else self.state.whole(place)
            beside = shown.tokens - self.sizes.counter(shown.offer.text)  # label and frame
            tokens = min(shown.tokens + slack, then - MIN_GAIN) - beside
            offer = self._longer(place, shown.offer.kind, tokens)
            if offer is None:
                continue
            offer = self._with_handle(place, offer)
            cost = state.price(place, offer)
            if shown.tokens < cost <= shown.tokens + slack:
                state.show(place, offer, cost)

    def _longer(self, place: Place, kind: str, tokens: int) -> Offer | None:
        """The offer of this kind that shows up to ``tokens``."""
        block, config = self._named(place), self.inputs.config_for(place)
        if kind == "head-and-tail":
            return cut_to(block, config, tokens)
        if kind == "records":
            return records_to(block, config, tokens)
        if not kind.endswith("-digest"):
            return None
        for offer in levels_of(block, config, reducers=self._asked["light"]):
            if offer.loss > 0:
                break
            block = replace(block, text=offer.text)
        return digest_to(block, config, tokens)

    def reducible(self, first: int, end: int, *, prose: bool, protected: bool) -> Iterator[Place]:
        """Blocks of messages[first:end] that are not dropped and may be reduced."""
        numbers = self.state.messages(first, min(end, self.eligibility.open_from))
        places = self.eligibility.reducible(numbers, prose=prose, protected=protected)
        return self.state.joined.as_one(places)

    # --- levels of detail ---

    def offers(self, place: Place, which: Which = "all") -> Iterator[Offer]:
        """The offers for one block by rising loss, with handles filled in."""
        inputs = self.inputs

        def begin(failures: list[str]) -> Iterator[Offer]:
            block = self._named(place)
            if block.kind == "text":
                return text_levels(block, inputs.config)
            config = inputs.config_for(place)
            return levels_of(block, config, reducers=self._asked[which], failures=failures)

        key = (place.message, place.index, which, len(self.state.joined.members(place)))
        for offer in inputs.offered.levels(key, begin, inputs.failures):
            yield self._with_handle(place, offer)

    @cached_property
    def _asked(self) -> Mapping[Which, tuple[Reducer, ...]]:
        ours = tuple(self.inputs.reducers)
        light = tuple(one for one in ours if one not in DEEP)
        return {"all": ours, "light": light, "dead": tuple(one for one in ours if one in DEAD)}

    def _named(self, place: Place) -> Block:
        """The block; a result gets the name of its tool."""
        block = place.block
        if block.kind == "result" and block.tool is None:
            return replace(block, tool=self.transcript.tool(place))
        return block

    def shortest_arguments(self, place: Place, run: Run) -> str:
        """The shortest form of a call's arguments that reducers offer, with the run's handle if
        there is one; "" if that saves nothing."""
        own = self.state.handle(DroppedRange(*run))
        reducers, config = self.inputs.reducers, self.inputs.config_for(place)
        levels = levels_of(self._named(place), config, reducers=reducers)
        offers = [o for o in levels if o.op == "replace"]
        offers = [replace(o, text=with_handle(o.text, place.block.text, own)) for o in offers]
        least = min(offers, key=lambda o: self.state.price(place, o), default=None)
        whole = self.sizes.block(self.transcript, place)
        return least.text if least and self.state.price(place, least) < whole else ""

    def handle(self, place: Place) -> str:
        """The handle of one block, or of joined texts."""
        return handle(self._refs(place), self.inputs.handle_key)

    def _refs(self, place: Place) -> tuple[str, ...]:
        return tuple(map(self.transcript.ref, self.state.joined.members(place)))

    def _with_handle(self, place: Place, offer: Offer) -> Offer:
        if HANDLE not in offer.text:
            return offer
        own = self.handle(place)
        return replace(offer, text=with_handle(offer.text, place.block.text, own))

    def _steps(self, place: Place, which: Which = "all") -> Steps:
        """The useful levels of one block, each with its value lost per token saved."""
        whole = self.state.whole(place)
        age = 1.0 - place.message / max(len(self.transcript.messages), 1)
        worth, lost, now = value(place.block, whole, age), 0.0, self.state.cost(place)
        for offer in self.offers(place, which):
            tokens = self.state.price(place, offer)
            if now - tokens < MIN_GAIN and not place.block.media:
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
        least: int = MIN_GAIN,
        *,
        max_loss: float = 1.0,
        priced: bool = False,
        which: Which | None = None,
    ) -> None:
        """Take the cheapest step, again and again, until it is enough or nothing is left.

        ``max_loss``: only steps that lose no more; ``priced``: and those that come with a price;
        ``which``: of these reducers alone (None: those that may offer so little a loss).
        """
        heap: list[tuple[float, Key, Place, Offer, int, Steps]] = []

        def push(place: Place, steps: Steps) -> None:
            for price, offer, tokens in steps:
                if offer.loss <= max_loss or (priced and offer.price is not None):
                    key = (place.message, place.index)
                    heapq.heappush(heap, (price, key, place, offer, tokens, steps))
                return

        if enough():
            return
        tiers = which or ("all" if max_loss == 1.0 else "light")
        for place in places:
            if self.state.cost(place) > least and not self.state.is_dropped(place):
                push(place, self._steps(place, tiers))
        while heap and not enough():
            _, _, place, offer, tokens, steps = heapq.heappop(heap)
            self.show(place, offer, tokens)
            push(place, steps)

    def exhaust(self, places: Iterable[Place]) -> None:
        """Show the smallest level of each block, which no sequence of steps can beat."""
        for place in places:
            now = self.state.cost(place)
            if now <= MIN_GAIN or self.state.is_dropped(place):
                continue
            prices = [(self.state.price(place, offer), offer) for offer in self.offers(place)]
            least = min(prices, key=lambda pair: pair[0], default=None)
            if least is not None and (now - least[0] >= MIN_GAIN or place.block.media):
                for _, offer in prices:
                    self.used(offer.kind)
                self.show(place, least[1], least[0])

    def _drop(self, first: int, last: int) -> None:
        self.state.drop(first, last)
        self.used("drop")

    def drop_until(self, enough: Callable[[], bool], end: int, *, protected: bool) -> None:
        """Drop groups, oldest first, if that saves anything, until ``enough``."""
        state = self.state
        for stretch in self.eligibility.stretches(end, protected=protected):
            for index in stretch:
                if enough():
                    return
                if index not in state.dropped and state.drop_saving(index, index) > 0:
                    self._drop(index, index)
            # One small group may cost less than the note in its place; several do not.
            rest = [index for index in stretch if index not in state.dropped]
            whole = bool(rest) and rest == list(range(rest[0], rest[-1] + 1))
            if whole and not enough() and state.drop_saving(rest[0], rest[-1]) > 0:
                self._drop(rest[0], rest[-1])

    def strip_notes(self, enough: Callable[[], bool]) -> None:
        """Replace folds by markers, oldest first, until ``enough``."""
        for run in [run for run in self.state.runs if run.fold and run.opening is None]:
            if enough():
                return
            self.state.reopen(run)
            saved = self.state.cost_of(run.run) - run.tokens
            if self.state.drop_saving(run.first, run.last) > saved:
                self._drop(run.first, run.last)
            else:
                self.state.put_back(run)

    # --- the result ---

    def edits(self) -> tuple[Edit, ...]:
        """The new edits, in order of place, without those already in the journal."""
        placed: list[tuple[Key, Edit]] = []
        seen = witness(self.transcript)
        for place, shown in self.state.replacements():
            if shown.edit is None:
                offer, refs = shown.offer, self._refs(place)
                edit = Edit(
                    offer.op, refs, offer.text, offer.kind, offer.why, offer.loss, seen,
                    self.handle(place), payload=offer.payload,
                )  # fmt: skip
                placed.append(((place.message, place.index), edit))
        for run in self.state.runs:
            if run.edit is None:
                first = self.transcript.groups[run.first].first
                at = first if run.opening is None else run.opening
                placed.append(((at, -1), self._edit_of(run, seen)))
        return tuple(edit for _, edit in sorted(placed, key=lambda pair: pair[0]))

    def _edit_of(self, run: DroppedRange, seen: str) -> Edit:
        """The edit that drops or folds a run."""
        targets, own = runs.targets(self.transcript, run.run), self.state.handle(run)
        older = (n for n in range(run.first) if self.transcript.groups[n].closed)
        kept = "" if all(n in self.state.dropped for n in older) else " that are not protected"
        why = f"the oldest{kept}, to make room"
        fold = run.fold
        if fold is None:
            return Edit("drop", targets, run.note, "drop", why, 1.0, seen, own)
        kind = "fold"
        if not fold.quotes:
            kind, why = "summary", f"{why}; in the words of a model"
        anchor = "" if fold.anchor is None else self.transcript.ref(fold.anchor.call)
        return Edit(
            "fold", targets, run.note, kind, why, FOLD_LOSS, seen, own,
            anchor=anchor, arguments=fold.arguments, model_text=run.model_text,
            user_text=run.user_text,
        )  # fmt: skip

    def kept(self) -> tuple[Edit, ...]:
        """The journal's edits that still apply to this request."""
        state = self.state
        old = [shown.edit for _, shown in state.replacements() if shown.edit is not None]
        return (*old, *(run.edit for run in state.runs if run.edit), *state.inserted)


def witness(transcript: Transcript) -> str:
    """The newest model-authored block of the last closed group, or "" before there is one."""
    closed = (group for group in reversed(transcript.groups) if group.closed)
    places = (place for group in closed for place in reversed(group.places))
    own = (p for p in places if transcript.messages[p.message].role == "assistant")
    return next(map(transcript.ref, own), "")
