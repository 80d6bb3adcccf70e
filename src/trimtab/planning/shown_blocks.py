"""What each block is shown as, and the resulting size of the request.

``plan_state.py`` adds the dropped runs.
"""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from trimtab.formats.engine import payloads
from trimtab.jsontext.paths import Path
from trimtab.planning.edits import EMPTIED, group_index, joins_next
from trimtab.reducers import Offer
from trimtab.reducers.base import json_bytes, utf8_bytes
from trimtab.transcript.model import Edit, Group, Message, Place
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import MESSAGE_TOKENS
from trimtab.transcript.transcript import Transcript

Key = tuple[int, int]
"""(message, index) of a block."""
MIN_TEXTS = 8
"""Fewer texts are reduced one by one."""
SMALL_TOKENS = 96
"""Texts that are larger on average are documents, and are reduced one by one too."""


class Replacement(NamedTuple):
    """What is shown in place of a block: an offer, its tokens, and the journal's edit, if any."""

    offer: Offer
    tokens: int
    edit: Edit | None = None


class ShownBlocks:
    """Which blocks are shown smaller, replaced or removed; mutable, one per plan.

    ``tokens`` is always the size of the request as it would be sent.
    """

    def __init__(
        self,
        transcript: Transcript,
        sizes: TokenSizes,
        *,
        item_bytes: Callable[[Path], int] | None = None,
    ) -> None:
        self.transcript, self.sizes = transcript, sizes
        self._item_bytes = item_bytes
        self.joined = JoinedBlocks(transcript, sizes)
        self.tokens = sizes.measure(transcript)
        self.bytes_saved = 0
        self.shown: dict[Key, Replacement] = {}
        self.inserted: list[Edit] = []
        self._removed: Tally[int] = Tally()
        self._changed: set[int] = set()
        """Groups with a block that is not shown as it came."""
        self._more: dict[int, int] = {}
        """Of these, those already counted: group → its tokens now, minus its original ones."""

    # --- the state now ---

    def cost(self, place: Place) -> int:
        """Tokens of a block as it is shown now (its label included)."""
        shown = self.shown.get((place.message, place.index))
        return self.whole(place) if shown is None else shown.tokens

    def whole(self, place: Place) -> int:
        """Original tokens of a block; the first of joined texts has those of all."""
        if not self.joined:
            return self.sizes.block(self.transcript, place)
        members = self.joined.members(place)
        return sum(self.sizes.block(self.transcript, member) for member in members)

    def text(self, place: Place) -> str:
        """The text shown now."""
        shown = self.shown.get(self.joined.first(place))
        if shown is None:
            return place.block.text
        return shown.offer.text if self.joined.members(place) else ""

    def price(self, place: Place, offer: Offer) -> int:
        """Tokens of a block if this offer were shown."""
        if offer.op == "remove":
            return 0
        if offer.payload:  # an image costs the same at any size
            return self.whole(place)
        count, block = self.sizes.counter, place.block
        fixed = count.scaled(block.fixed_tokens) if block.text else 0
        return count(normal(place, offer.text)) + (count(block.label) if block.label else 0) + fixed

    # --- moves ---

    def show(self, place: Place, offer: Offer, tokens: int, edit: Edit | None = None) -> None:
        """Show this offer in place of the block."""
        key = self._touched(place)
        before = self.offer_at(place)
        self.tokens += tokens - self.cost(place)
        if offer.op == "remove" and key not in self.shown and self.transcript.is_part(place):
            self._remove(place.message)
        if self._item_bytes is not None:
            self.bytes_saved += self._saved_bytes(place, offer)
            self.bytes_saved -= self._saved_bytes(place, before)
        self.shown[key] = Replacement(offer, tokens, edit)

    def _touched(self, place: Place) -> Key:
        key = (place.message, place.index)
        number = self.transcript.group_number(*key)
        if number is not None:
            self._changed.add(number)
            self._more.pop(number, None)
        return key

    def _saved_bytes(self, place: Place, offer: Offer | None) -> int:
        """Encoded bytes saved by showing an offer instead of the original block."""
        if offer is None or offer.text is place.block.text:
            return 0
        if offer.payload:
            old = place.block.picture.encoded if place.block.picture else 0
            return old - len(payloads.data_of_url(offer.payload))
        size = utf8_bytes if place.block.spelling == "json" else json_bytes
        whole = place.block.payload_bytes or size(place.block.text)
        return whole - size(offer.text)

    def offer_at(self, place: Place) -> Offer | None:
        """The offer that is shown in place of the block, or of the texts it is joined with."""
        shown = self.shown.get(self.joined.first(place))
        return None if shown is None else shown.offer

    def restore(self, place: Place, back: Replacement | None) -> None:
        """Undo a move: show what was shown before it."""
        key = self._touched(place)
        now = self.shown[key]
        if self._item_bytes is not None:
            self.bytes_saved += self._saved_bytes(place, back.offer if back else None)
            self.bytes_saved -= self._saved_bytes(place, now.offer)
        if back is None:
            if now.offer.op == "remove" and self.transcript.is_part(place):
                self._restore_removed(place.message)
            del self.shown[key]
            self.tokens += self.whole(place) - now.tokens
        else:
            self.shown[key] = back
            self.tokens += back.tokens - now.tokens

    def _remove(self, number: int) -> None:
        self._removed[number] += 1
        message = self.transcript.messages[number]
        if message.listed and self._removed[number] == len(message.parts):
            self.tokens += self.sizes.counter(EMPTIED)

    def _restore_removed(self, number: int) -> None:
        message = self.transcript.messages[number]
        if message.listed and self._removed[number] == len(message.parts):
            self.tokens -= self.sizes.counter(EMPTIED)
        self._removed[number] -= 1

    def insert(self, edit: Edit) -> None:
        """A user message of the journal (repair at an earlier tip)."""
        self.inserted.append(edit)
        self.tokens += self.sizes.counter(edit.text)
        if not joins_next(self.transcript, edit):
            self.tokens += self.sizes.counter.scaled(MESSAGE_TOKENS)

    # --- groups ---

    def group_cost(self, group: Group) -> int:
        """Tokens of this group, as its blocks are shown now."""
        number = group_index(self.transcript, group)
        return self.run_cost(number, number)

    def run_cost(self, first: int, last: int) -> int:
        """Tokens of groups[first:last + 1], as their blocks are shown now."""
        sums, groups = self.sizes.runs(self.transcript).tokens, self.transcript.groups
        within = range(first, last + 1)
        fewer, more = sorted((within, self._changed), key=len)
        changed = [number for number in fewer if number in more]
        for number in changed:
            if number not in self._more:
                self._more[number] = self._shown_more(groups[number])
        return sums[last + 1] - sums[first] + sum(self._more[number] for number in changed)

    def size(self, first: int, end: int) -> int:
        """Original tokens of groups[first:end]."""
        sums = self.sizes.runs(self.transcript).tokens
        return sums[end] - sums[first]

    def _shown_more(self, group: Group) -> int:
        """Tokens of a group as it is shown now, minus its original tokens."""
        sizes, transcript = self.sizes, self.transcript
        more = sum(self.cost(place) - sizes.block(transcript, place) for place in group.places)
        depth = len(transcript.base) + 1
        for item in group.items:
            number = item[depth - 1]
            assert isinstance(number, int)
            removed, message = self._removed[number], transcript.messages[number]
            if len(item) == depth and message.listed and removed == len(message.parts) > 0:
                more += sizes.counter(EMPTIED)
        return more


def normal(place: Place, text: str) -> str:
    """The text as the model will read it after it is written to the request."""
    if place.block.spelling != "json":
        return text
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


# --- many small texts of one result, as one block: each alone is too small to reduce ---


class JoinedBlocks:
    """The runs of small texts in one transcript that are treated as one block each: the first text
    represents all of them; if less is shown, the others are removed."""

    def __init__(self, transcript: Transcript, sizes: TokenSizes) -> None:
        self._runs: dict[Key, tuple[Place, ...]] = {}
        """Key of the first text → all texts of its run."""
        self._first: dict[Key, Key] = {}
        """Key of each text of a run → key of the first."""
        for number, message in enumerate(transcript.messages):
            if len(message.blocks) < MIN_TEXTS or not message.results:
                continue
            for run in _joined_runs(number, message):
                tokens = sum(sizes.block(transcript, place) for place in run)
                if len(run) >= MIN_TEXTS and tokens <= SMALL_TOKENS * len(run):
                    self.add(run)

    def __len__(self) -> int:
        return len(self._runs)

    def add(self, run: Sequence[Place]) -> None:
        """Treat these texts as one block."""
        first = (run[0].message, run[0].index)
        self._runs[first] = tuple(run)
        self._first.update(((place.message, place.index), first) for place in run)

    def leave_out(self, place: Place) -> None:
        """Separate one text from its run; the texts before it, and those after it, stay joined."""
        run = self._runs.pop(self.first(place), ())
        for member in run:
            del self._first[member.message, member.index]
        at = next((n for n, one in enumerate(run) if one.index == place.index), 0)
        for part in (run[:at], run[at + 1 :]):
            if len(part) >= MIN_TEXTS:
                self.add(part)

    def first(self, place: Place) -> Key:
        """The key of the first text of this text's run; its own key if it is in none."""
        key = (place.message, place.index)
        return self._first.get(key, key)

    def members(self, place: Place) -> tuple[Place, ...]:
        """The texts that a place represents: all for the first of a run, none for the others."""
        key = (place.message, place.index)
        if key not in self._first:
            return (place,)
        return self._runs.get(key, ())

    def as_one(self, places: Iterable[Place]) -> Iterator[Place]:
        """``places`` with each run reduced to its first place, which has the text of all."""
        for place in places:
            key = (place.message, place.index)
            if key not in self._first:
                yield place
            elif key in self._runs:
                text = "\n".join(one.block.text for one in self._runs[key])
                first = self._runs[key][0].block
                yield Place(*key, replace(first, text=text, fixed_tokens=0))


def _joined_runs(number: int, message: Message) -> Iterator[list[Place]]:
    """Runs of neighbouring plain texts of one result, without a cache breakpoint among them."""
    marked = set(message.inner_marks)
    run: list[Place] = []
    for index, block in enumerate(message.blocks):
        plain = block.kind == "result" and not block.sealed and block.spelling == "string"
        in_list = len(block.item) > 1 and isinstance(block.item[-1], int)
        if not (plain and in_list and block.text) or block.item in marked:
            yield run
            run = []
            continue
        place = Place(number, index, block)
        if run and not _neighbours(run[-1], place):
            yield run
            run = []
        run.append(place)
    yield run


def _neighbours(one: Place, other: Place) -> bool:
    if one.block.call_id != other.block.call_id:
        return False  # two results, which need not have a text each: none may be removed
    (*home, at), (*next_home, behind) = one.block.item, other.block.item
    return home == next_home and isinstance(at, int) and behind == at + 1
