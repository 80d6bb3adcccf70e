"""Decides what may be edited: pins, protected tools, the newest part, the open group, groups."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trimtab.formats import rules
from trimtab.lazy import cached_property
from trimtab.planning.lines import Key, Lines, lines_of
from trimtab.planning.offers import OfferCache
from trimtab.planning.query_context import QueryContext
from trimtab.planning.redundancy import Redundancy
from trimtab.reducers import Config, Reducer
from trimtab.reducers.base import NO_FACTS
from trimtab.reducers.smaller_images import SmallerImages
from trimtab.transcript.model import Block, Place
from trimtab.transcript.notes import without_notes
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript

RAW_SHARE = 0.06
"""Share of the room, newest first, that a cut leaves unchanged."""
NEXT_TURN_SHARE = 0.25
"""A newest turn above this share of the capacity is cut at once: a quarter does no harm to the
next turn, a tenth does (measured on real sessions)."""
ARRIVAL_ROOM = 0.6
"""The same limit as a share of the room; it applies if the head is large."""
LARGE_HEAD = 0.4
"""If the fixed part takes this share of the capacity, there is little room; a cut then rewrites
little, since the head stays cached."""
OLD_WORDS = 0.4
"""The user's old words count as fixed up to this share of the capacity; what is above it counts as
room for a cut, which may fold old turns."""
MIN_ROOM = 4_000
"""Tokens: in a smaller room, the error of the estimated lines is larger than LEFT_FREE."""
NEWEST_GROUPS = 12
"""The present growth is that of so many of the newest steps."""
MIN_HISTORY = 0.6
"""A cut leaves this share of the room below the trigger, however fast the request grows."""
CROWDED, LEFT_FREE = 0.25, 0.02
"""If there is little room and the newest turn takes CROWDED of it, a cut leaves only LEFT_FREE of
the room free below the trigger: the next turn needs another cut anyway (measured)."""


@dataclass(frozen=True)
class Bounds:
    """Tokens may reach ``capacity``; a cut begins above ``trigger`` and goes down to the share
    ``target`` of the room; None where there is no such limit."""

    capacity: int
    trigger: int
    target: float
    body_bytes: int | None = None
    result_chars: int | None = None
    images: int | None = None
    image_pixels: int | None = None
    """Pixels that the longest side of an image may have; ``many_image_pixels``: with many."""
    many_image_pixels: int | None = None
    image_bytes: int | None = None
    """Characters of base64 that an image may have."""
    given: frozenset[str] = frozenset()
    """Which of these limits were set or refused, and not looked up."""
    lasts: int = 0
    """Model calls that a cut should last at the present growth, where the room allows it."""
    history: int | None = None
    """The most room that the history gets, in tokens, whatever the capacity; None: all there is."""
    pays_above: int | None = None
    """Tokens above which a cut begins before the trigger, because it pays; None: none does."""

    @property
    def begin(self) -> int:
        """Tokens above which a cut begins."""
        return self.trigger if self.pays_above is None else min(self.trigger, self.pays_above)


@dataclass(frozen=True)
class PlanInputs:
    """The inputs of a plan: reducers and settings, and what must stay whole."""

    config: Config
    context: QueryContext
    """What is asked for by name, and what reducers may know of a block's surroundings."""
    redundancy: Redundancy
    reducers: Sequence[Reducer]
    pinned: frozenset[str] = frozenset()
    protected: frozenset[Key] = frozenset()
    """Blocks of protected tools and paths: only the last rungs before the user's text take them."""
    held_by_user: frozenset[Key] = frozenset()
    """Blocks in ``protected`` by the user's wish, not by a preset: even dead weight stays there."""
    open_tail: bool = False
    drops: bool = True
    to_target: bool = True
    lines: Callable[[Block], Lines] = lines_of
    folds: bool = True
    reducers_only: bool = False
    """Until the window is full only the reducers are used, and no step is folded."""
    recent: int = 0
    """How many of the newest steps with calls stay unchanged, unless one is larger than a newest
    turn may be."""
    handle_key: bytes = b""
    failures: list[str] = field(default_factory=list)
    tree: Any = None
    """The request, for what is in it beside text."""
    images: SmallerImages = field(default_factory=SmallerImages)
    """What was made of its images."""
    offered: OfferCache = field(default_factory=OfferCache)
    """Offers already computed for this transcript."""

    def config_for(self, place: Place) -> Config:
        """The configuration for reducers on this block."""
        config, facts = self.context.about(place), self.redundancy.facts(place)
        return config if facts == NO_FACTS else replace(config, facts=facts)


@dataclass(frozen=True)
class Eligibility:
    """One transcript, with the inputs and bounds of one plan."""

    transcript: Transcript
    sizes: TokenSizes
    inputs: PlanInputs
    bounds: Bounds

    @property
    def capacity(self) -> int:
        """Tokens that may be sent."""
        return self.bounds.capacity

    def pinned(self, place: Place) -> bool:
        """Whether the user wants this block whole."""
        return bool(self.inputs.pinned) and self.transcript.ref(place) in self.inputs.pinned

    def protected(self, place: Place) -> bool:
        """Whether this block is of a protected tool, path or turn."""
        return (place.message, place.index) in self.inputs.protected

    def protected_by_user(self, place: Place) -> bool:
        """Whether the user protects this block, not only a preset."""
        return (place.message, place.index) in self.inputs.held_by_user

    @cached_property
    def user_texts(self) -> tuple[Place, ...]:
        """The user's own words, oldest first."""
        messages = self.transcript.messages
        numbers = [n for n in self.transcript.table.user_and_system if messages[n].role == "user"]
        return tuple(
            place
            for number in (-1, *numbers)  # in the head where one text is all there is
            for place in self.transcript.places_in(number)
            if place.block.kind == "text"
        )

    @cached_property
    def open_from(self) -> int:
        """The first message of the open group, which must not be edited."""
        groups = self.transcript.groups
        if self.inputs.open_tail and groups and not groups[-1].closed:
            return groups[-1].first
        return len(self.transcript.messages)

    @property
    def fixed(self) -> int:
        """Tokens that a cut edits only as the last resort, or never: head, system messages, pins,
        and the user's words, old ones up to a share of the capacity."""
        return self._fixed + min(self._old_words, int(OLD_WORDS * self.capacity))

    @cached_property
    def min_fixed(self) -> int:
        """``fixed`` without the user's old words."""
        return self._fixed

    @cached_property
    def _old_words(self) -> int:
        """Tokens of what the user said before the newest words."""
        texts = self.user_texts
        newest = texts[-1].message if texts else -1
        pinned = self.pinned
        old = [p for p in texts if 0 <= p.message < newest and not pinned(p)]
        return sum(map(self._said_cost, old))

    @cached_property
    def _fixed(self) -> int:
        refs, transcript = self.transcript.refs if self.inputs.pinned else {}, self.transcript
        there = [refs[ref] for ref in self.inputs.pinned if ref in refs]
        pins = {p: self.sizes.block(transcript, p) for p in there if p.message >= 0}
        newest = self.user_texts[-1].message if self.user_texts else -1
        for number in transcript.table.user_and_system:
            if number != newest and transcript.messages[number].role == "user":
                continue
            for place in transcript.places_in(number):
                if place.block.kind in ("text", "system"):
                    pins[place] = self._said_cost(place)
        return self.sizes.head(transcript) + sum(pins.values())

    @property
    def room(self) -> int:
        """Tokens for the history: the capacity minus ``fixed``, at most ``bounds.history``."""
        room = max(0, self.capacity - self.fixed)
        return room if self.bounds.history is None else min(room, self.bounds.history)

    def _said_cost(self, place: Place) -> int:
        """Tokens of the user's own words.  Our notes are left out; otherwise the room would change
        once notes are added."""
        cost, text = self.sizes.block(self.transcript, place), place.block.text
        own = without_notes(text)
        return cost if own is text else cost - self.sizes.counter(text) + self.sizes.counter(own)

    @property
    def target(self) -> int:
        """The size in tokens at which a cut stops: the fixed part plus a share of the room.

        With any size of the head, the same share of the room below the trigger stays free;
        otherwise the next turn would need another cut.
        """
        share, trigger = self.bounds.target, self.bounds.trigger
        part = min(1.0, share * self.capacity / trigger) if trigger else share
        if self._newest_turn_is_large:
            return trigger - int(LEFT_FREE * max(0, trigger - self.fixed))
        return min(
            self.fixed + int(self.room * share),
            trigger - int((1.0 - part) * max(0, trigger - self.fixed)),
        )

    @property
    def lasting_target(self) -> int:
        """The size at which a cut stops that cannot do without loss: ``target``, or less where the
        request grows fast, so that ``bounds.lasts`` more calls fit, down to MIN_HISTORY of the
        room below the trigger."""
        if self._newest_turn_is_large:
            return self.target
        trigger = self.bounds.trigger
        least = self.fixed + int(MIN_HISTORY * max(0, trigger - self.fixed))
        return min(self.target, max(least, trigger - self.bounds.lasts * self.growth))

    @cached_property
    def growth(self) -> int:
        """Tokens that a model call adds now, its results included; 0 without calls."""
        newest = [group for group in self.transcript.groups if group.has_calls and group.closed]
        newest = newest[-NEWEST_GROUPS:]
        messages = self.transcript.messages
        steps = [messages[one.first : one.last + 1] for one in newest]
        tokens = [min(sum(map(self.sizes.message, step)), self.next_turn_tokens) for step in steps]
        return sum(tokens) // max(1, len(tokens))

    @property
    def has_little_room(self) -> bool:
        """Whether what no cut touches leaves little room."""
        return self.fixed > LARGE_HEAD * self.capacity

    @cached_property
    def _newest_turn_is_large(self) -> bool:
        """Whether there is little room, and the newest turn takes much of it."""
        groups = self.transcript.groups
        if (
            not self.has_little_room
            or self.room < MIN_ROOM
            or not groups
            or not groups[-1].has_calls
        ):
            return False
        newest = sum(map(self.sizes.message, self.transcript.messages[groups[-1].first :]))
        return min(newest, self.next_turn_tokens) > CROWDED * self.room

    @property
    def next_turn_tokens(self) -> int:
        """The largest newest turn, in tokens, that is not cut at once."""
        return int(min(self.capacity * NEXT_TURN_SHARE, self.room * ARRIVAL_ROOM))

    @cached_property
    def raw_from(self) -> int:
        """The first message of the newest part, which a cut leaves unchanged."""
        allowed, number = int(self.room * RAW_SHARE), len(self.transcript.messages)
        groups, recent = self.transcript.groups, self.inputs.recent
        for index in range(len(groups) - 1, -1, -1):
            messages = self.transcript.messages[groups[index].first : number]
            cost = sum(self.sizes.message(message) for message in messages)
            if (index == len(groups) - 1 or recent > 0) and cost <= self.next_turn_tokens:
                cost = min(cost, allowed)
            if cost > allowed:
                break
            allowed, recent = allowed - cost, recent - groups[index].has_calls
            number = groups[index].first
        return number

    def reducible(self, numbers: Iterable[int], *, prose: bool, protected: bool) -> Iterator[Place]:
        """Blocks of these messages that may be shown smaller."""
        for number in numbers:
            message = self.transcript.messages[number]
            for index, block in enumerate(message.blocks):
                place = Place(number, index, block)
                ours = block.kind in ("result", "call", "media") and not block.sealed
                if block.kind == "reasoning":  # of the model: a stray one may be all a user says
                    ours = message.role == "assistant" and rules.may_drop_reasoning(
                        self.transcript, number
                    )
                if block.kind == "text" and message.role == "assistant":
                    ours = prose
                if ours and not self.pinned(place) and (protected or not self.protected(place)):
                    yield place

    def droppable(self, index: int, *, protected: bool = True) -> bool:
        """Whether a whole group may be dropped: closed, answered, not the newest, without pins."""
        groups = self.transcript.groups
        group = groups[index]
        return (
            self.inputs.drops
            and group.closed
            and group.has_calls
            and index != len(groups) - 1
            and not (self.inputs.pinned and any(self.pinned(place) for place in group.places))
            and (protected or not any(self.protected(place) for place in group.places))
        )

    def spans(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """(first, last) of each row of neighbouring droppable groups among groups[first:end], none
        of them protected.  The cost does not depend on the length of a row."""
        table, held = self.transcript.table, self._held
        end = min(end, len(self.transcript.groups) - 1) if self.inputs.drops else first
        while first < end:
            kept = bisect_left(held, first)
            if table.not_droppable[first + 1] > table.not_droppable[first] or held[
                kept : kept + 1
            ] == [first]:
                first += 1
                continue
            stop = min([
                bisect_right(table.not_droppable, table.not_droppable[first]) - 1,
                bisect_right(table.breaks, table.breaks[first + 1]) - 1,
                *held[kept : kept + 1],
                end,
            ])  # fmt: skip
            yield first, stop - 1
            first = stop

    @cached_property
    def _held(self) -> list[int]:
        """The numbers of groups with a pinned or protected block."""
        transcript = self.transcript
        pins = (transcript.refs.get(ref) for ref in self.inputs.pinned)
        keys = {*self.inputs.protected, *((p.message, p.index) for p in pins if p is not None)}
        numbers = {transcript.group_number(*key) for key in keys}
        return sorted(number for number in numbers if number is not None)

    def stretches(self, end: int, *, protected: bool) -> Iterator[tuple[int, ...]]:
        """Neighbouring droppable groups that end before message ``end``."""
        groups, run = self.transcript.groups, list[int]()
        for index, group in enumerate(groups):
            free = group.last < end and self.droppable(index, protected=protected)
            if run and not (free and self.transcript.adjoin(groups[run[-1]], group)):
                yield tuple(run)
                run = []
            if free:
                run.append(index)
        if run:
            yield tuple(run)
