"""The state of a choice: what each block is shown as, and what the request costs so.

Knows sizes, offers and dropped runs, and keeps the total exact.  Does not choose (plan.py does)
and has never seen JSON.
"""

from __future__ import annotations

import json
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from trimtab.model import Edit, Group, Path, Place, Transcript
from trimtab.planning.edits import (
    EMPTIED,
    group_index,
    groups_of,
    handle,
    has_place,
    joins_next,
    note_host,
)
from trimtab.planning.runs import Run, both, left_of_both, note, shown_name
from trimtab.reading.notes import BOTH, LINES, SUMMARY
from trimtab.reading.usage import Usage
from trimtab.strategies import Offer
from trimtab.strategies.base import json_bytes, utf8_bytes
from trimtab.tokens import CALL_TOKENS, MESSAGE_TOKENS

Key = tuple[int, int]
"""(message, index) of a block."""


class Shown(NamedTuple):
    """What stands in place of a block: an offer, its size, and the journal's edit if it has one."""

    offer: Offer
    tokens: int
    edit: Edit | None = None


class Board:
    """Mutable: one per plan.  ``tokens`` is always the size of the request as it would be sent."""

    def __init__(
        self,
        transcript: Transcript,
        usage: Usage,
        *,
        recall: bool = False,
        handle_key: bytes = b"",
        item_bytes: Callable[[Path], int] | None = None,
    ) -> None:
        self.transcript, self.usage, self.recall = transcript, usage, recall
        self.handle_key = handle_key
        self._item_bytes = item_bytes
        self.tokens = usage.measure(transcript)
        self.bytes_saved = 0
        self.shown: dict[Key, Shown] = {}
        self._first: dict[int, Run] = {}
        self._last: dict[int, Run] = {}
        self.dropped: set[int] = set()
        self.inserted: list[Edit] = []
        self._removed: Tally[int] = Tally()
        self._gone: set[Key] = set()
        self._costs: dict[int, int] = {}  # of groups, until a block is shown otherwise

    # --- what stands now ---

    def cost(self, place: Place) -> int:
        """Tokens of a block as it is shown now (its label included)."""
        shown = self.shown.get((place.message, place.index))
        if shown is None:
            return self.usage.block(self.transcript, place)
        return shown.tokens

    def text(self, place: Place) -> str:
        """The text shown now."""
        shown = self.shown.get((place.message, place.index))
        return place.block.text if shown is None else shown.offer.text

    def price(self, place: Place, offer: Offer) -> int:
        """Tokens of a block if this offer were shown."""
        if offer.op == "remove":
            return 0
        count, block = self.usage.counter, place.block
        fixed = count.scaled(block.fixed_tokens) if block.text else 0
        return count(normal(place, offer.text)) + (count(block.label) if block.label else 0) + fixed

    def gone(self, place: Place) -> bool:
        """Whether the block stands in a dropped group."""
        return (place.message, place.index) in self._gone

    def standing(self) -> list[tuple[Place, Shown]]:
        """Every block that is shown otherwise than it came, dropped ones apart."""
        return [
            (self.transcript.at(*key), shown)
            for key, shown in self.shown.items()
            if key not in self._gone
        ]

    # --- moves ---

    def show(self, place: Place, offer: Offer, tokens: int, edit: Edit | None = None) -> None:
        """Show this offer instead of what stands there."""
        self._costs.clear()
        key = (place.message, place.index)
        before = self.text(place)
        self.tokens += tokens - self.cost(place)
        if offer.op == "remove" and key not in self.shown and self.transcript.is_part(place):
            self._remove(place.message)
        if self._item_bytes is not None:
            self.bytes_saved += self._spared(place, offer.text) - self._spared(place, before)
        self.shown[key] = Shown(offer, tokens, edit)

    def _spared(self, place: Place, text: str) -> int:
        """Encoded bytes saved by showing this text instead of the block as it came."""
        if text is place.block.text:
            return 0
        size = utf8_bytes if place.block.spelling == "json" else json_bytes
        whole = place.block.payload_bytes or size(place.block.text)
        return whole - size(text)

    def restore(self, place: Place, back: Shown | None) -> None:
        """Take a move back: show what stood there before it."""
        self._costs.clear()
        key = (place.message, place.index)
        now = self.shown[key]
        if self._item_bytes is not None:
            then = back.offer.text if back else place.block.text
            self.bytes_saved += self._spared(place, then) - self._spared(place, now.offer.text)
        if back is None:
            if now.offer.op == "remove" and self.transcript.is_part(place):
                self._restore_removed(place.message)
            del self.shown[key]
            self.tokens += self.usage.block(self.transcript, place) - now.tokens
        else:
            self.shown[key] = back
            self.tokens += back.tokens - now.tokens

    def _remove(self, number: int) -> None:
        self._removed[number] += 1
        message = self.transcript.messages[number]
        if message.listed and self._removed[number] == len(message.parts):
            self.tokens += self.usage.counter(EMPTIED)

    def _restore_removed(self, number: int) -> None:
        message = self.transcript.messages[number]
        if message.listed and self._removed[number] == len(message.parts):
            self.tokens -= self.usage.counter(EMPTIED)
        self._removed[number] -= 1

    def insert(self, edit: Edit) -> None:
        """A user message of the journal (repair at an earlier tip)."""
        self.inserted.append(edit)
        self.tokens += self.usage.counter(edit.text)
        if not joins_next(self.transcript, edit):
            self.tokens += self.usage.counter.scaled(MESSAGE_TOKENS)

    # --- dropped groups ---

    def group_cost(self, group: Group) -> int:
        """Tokens that go with this group, as its blocks are shown now."""
        if (known := self._costs.get(group.first)) is not None:
            return known
        usage, messages = self.usage, self.transcript.messages
        cost = sum(self.cost(place) for place in group.places)
        depth = len(self.transcript.base) + 1
        for item in group.items:
            number = item[depth - 1]
            assert isinstance(number, int)
            if len(item) == depth:
                cost += usage.overhead(messages[number])
                removed, message = self._removed[number], messages[number]
                if message.listed and removed and removed == len(message.parts):
                    cost += usage.counter(EMPTIED)
            elif all(mark.path != item[depth:] for mark in messages[number].marks):
                cost += usage.counter.scaled(CALL_TOKENS)
        self._costs[group.first] = cost
        return cost

    @property
    def runs(self) -> list[Run]:
        """The dropped runs, oldest first."""
        return [self._first[index] for index in sorted(self._first)]

    def groups(self, run: Run) -> tuple[Group, ...]:
        """The groups of a run."""
        return self.transcript.groups[run.first : run.last + 1]

    def handle(self, run: Run) -> str:
        """The handle of a run: named by every block, as a client may change one of them."""
        targets = drop_targets(self.transcript, self.groups(run))
        return handle(("run", *targets), self.handle_key)

    def drop_saving(self, first: int, last: int, lines: str = "") -> int:
        """Tokens that dropping groups[first:last + 1] would save, the note paid."""
        run, touching = self._joined(first, last, lines)
        if not has_place(self.transcript, self.groups(run), self.dropped):
            return 0
        groups = self.transcript.groups[first : last + 1]
        saved = sum(self.group_cost(group) for group in groups)
        return saved + sum(old.tokens for old in touching) - run.tokens

    def drop(self, first: int, last: int, lines: str = "") -> None:
        """Drop neighbouring groups; without ``lines`` they join the dropped runs that touch them
        and have none either."""
        run, touching = self._joined(first, last, lines)
        for group in self.transcript.groups[first : last + 1]:
            self.tokens -= self.group_cost(group)
            if self._item_bytes is not None:
                self.bytes_saved += sum(self._item_bytes(item) + 1 for item in group.items)
                self.bytes_saved -= sum(self._spared(p, self.text(p)) for p in group.places)
        for old in touching:
            self.tokens -= old.tokens
            self.bytes_saved += json_bytes(old.note)
            del self._first[old.first], self._last[old.last]
        self._add(run, range(first, last + 1))

    def lift(self, run: Run) -> None:
        """Take a drop back: its groups stand again as they are shown."""
        del self._first[run.first], self._last[run.last]
        self.tokens -= run.tokens
        self.bytes_saved += json_bytes(run.note)
        for index in range(run.first, run.last + 1):
            group = self.transcript.groups[index]
            self.dropped.discard(index)
            self._gone.difference_update((p.message, p.index) for p in group.places)
            self.tokens += self.group_cost(group)
            if self._item_bytes is not None:
                self.bytes_saved -= sum(self._item_bytes(item) + 1 for item in group.items)
                self.bytes_saved += sum(self._spared(p, self.text(p)) for p in group.places)

    def retell(self, run: Run, lines: str, left: str) -> bool:
        """Put other words in place of a run's lines; False where they would cost more."""
        new = replace(run, lines=lines, left=left)
        new.note = self._note(new)
        new.tokens = self._note_cost(new)
        if new.tokens > run.tokens:
            return False
        self.tokens += new.tokens - run.tokens
        self.bytes_saved += json_bytes(run.note) - json_bytes(new.note)
        self._first[run.first] = self._last[run.last] = new
        return True

    def _add(self, run: Run, fresh: Iterable[int]) -> None:
        self._first[run.first] = self._last[run.last] = run
        self.tokens += run.tokens
        self.bytes_saved -= json_bytes(run.note)
        for index in fresh:
            self.dropped.add(index)
            places = self.transcript.groups[index].places
            self._gone.update((place.message, place.index) for place in places)

    def _joined(self, first: int, last: int, lines: str = "") -> tuple[Run, list[Run]]:
        """The run these groups make with the dropped runs right before and after them.

        A run with lines stays by itself, so that older ones need not be sent anew, save where
        two notes may not stand beside each other.
        """
        groups = self.transcript.groups
        messages = [
            self.transcript.messages[number]
            for group in groups[first : last + 1]
            for number in range(group.first, group.last + 1)
        ]
        parts = [part for message in messages for part in (*message.parts, *message.marks)]
        marked = any(part.marked for part in parts) or any(m.inner_marks for m in messages)
        tools = Tally(shown_name(part.tool) for part in parts if part.kind == "call")
        run, touching = Run(first, last, tools, marked, lines), list[Run]()
        before, after = self._last.get(first - 1), self._first.get(last + 1)
        if before is not None and self._joins(before, run, groups[first - 1], groups[first]):
            touching.append(before)
            run.left = left_of_both(before, run)
            run.first, run.lines = before.first, both(before.lines, run.lines)
        if after is not None and self._joins(after, run, groups[last], groups[last + 1]):
            touching.append(after)
            run.left = left_of_both(after, run)
            run.last, run.lines = after.last, both(run.lines, after.lines)
        for old in touching:
            run.tools = run.tools + old.tools
            run.marked = run.marked or old.marked
        run.note = self._note(run)
        run.tokens = self._note_cost(run)
        return run, touching

    def _joins(self, old: Run, new: Run, left: Group, right: Group) -> bool:
        if not self.transcript.adjoin(left, right):
            return False
        if not old.lines and not new.lines:
            return True
        host = note_host(self.transcript, self.groups(new), self.dropped)
        return self.transcript.facts.alternates and host is None

    def _note(self, run: Run) -> str:
        """``[14 earlier steps left out to fit: Read ×9, Bash ×4]``; at most 64 tokens; or the
        lines that are left of them under a line that says so."""
        own = self.handle(run) if self.recall else ""
        return note(run.last - run.first + 1, run.tools, own, run.lines, run.left)

    def _note_cost(self, run: Run) -> int:
        count, groups = self.usage.counter, self.transcript.groups
        host = note_host(self.transcript, (groups[run.first], groups[run.last]), self.dropped)
        if host is None:
            return count(run.note) + count.scaled(MESSAGE_TOKENS)
        message = self.transcript.messages[host]
        if message.listed or run.marked:
            return count(run.note)
        old = self.text(Place(host, 0, message.blocks[0]))
        return count(f"{old}\n\n{run.note}") - count(old)

    # --- the journal's edits ---

    def load(self, edits: Iterable[Edit]) -> None:
        """Show what the journal's edits show."""
        for edit in edits:
            if edit.op in ("replace", "remove"):
                place = self.transcript.refs[edit.targets[0]]
                op = "replace" if edit.op == "replace" else "remove"
                offer = Offer(op, edit.text, edit.loss, edit.kind, edit.why)  # type: ignore[arg-type]
                self.show(place, offer, self.price(place, offer), edit)
            elif edit.op == "insert":
                self.insert(edit)
        drops = [(edit, *self._span(edit)) for edit in edits if edit.op == "drop"]
        self.dropped.update(index for _, first, last in drops for index in range(first, last + 1))
        for edit, first, last in drops:
            self._load_drop(edit, first, last)

    def _span(self, edit: Edit) -> tuple[int, int]:
        groups = groups_of(self.transcript, edit) or ()
        first = group_index(self.transcript, groups[0])
        return first, first + len(groups) - 1

    def _load_drop(self, edit: Edit, first: int, last: int) -> None:
        run, _ = self._joined(first, last)
        run.first, run.last, run.note, run.edit = first, last, edit.text, edit
        head, _, run.lines = edit.text.partition("\n")
        run.left = next((left for left in (BOTH, SUMMARY) if f", of which {left}" in head), LINES)
        self.tokens -= sum(self.group_cost(g) for g in self.transcript.groups[first : last + 1])
        run.tokens = self._note_cost(run)
        self._add(run, range(first, last + 1))


def normal(place: Place, text: str) -> str:
    """The text as the model will read it once it is written back."""
    if place.block.spelling != "json":
        return text
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))


def drop_targets(transcript: Transcript, groups: Sequence[Group]) -> tuple[str, ...]:
    """The refs of every block of these groups."""
    return tuple(transcript.ref(place) for group in groups for place in group.places)
