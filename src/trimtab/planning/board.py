"""The state of a choice: what each block is shown as, and what the request costs so.

Knows sizes, offers and dropped runs, and keeps the total exact.  Does not choose (plan.py does)
and has never seen JSON.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
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
from trimtab.planning.gone import Gone
from trimtab.planning.runs import Run, both, left_of_both, note, shown_name
from trimtab.reading.notes import BOTH, LINES, SUMMARY
from trimtab.reading.usage import Usage
from trimtab.strategies import Offer
from trimtab.strategies.base import json_bytes, utf8_bytes
from trimtab.tokens import MESSAGE_TOKENS

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
        self.dropped = Gone()
        self.inserted: list[Edit] = []
        self._removed: Tally[int] = Tally()
        self._changed: set[int] = set()
        """Groups of which a block was shown otherwise."""
        self._more: dict[int, int] = {}
        """What each of them takes more so, as far as it is known."""

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
        return self.transcript.group_at.get((place.message, place.index), -1) in self.dropped

    def standing(self) -> list[tuple[Place, Shown]]:
        """Every block that is shown otherwise than it came, dropped ones apart."""
        found = [(self.transcript.at(*key), shown) for key, shown in self.shown.items()]
        return [(place, shown) for place, shown in found if not self.gone(place)]

    # --- moves ---

    def show(self, place: Place, offer: Offer, tokens: int, edit: Edit | None = None) -> None:
        """Show this offer instead of what stands there."""
        key = self._touched(place)
        before = self.text(place)
        self.tokens += tokens - self.cost(place)
        if offer.op == "remove" and key not in self.shown and self.transcript.is_part(place):
            self._remove(place.message)
        if self._item_bytes is not None:
            self.bytes_saved += self._spared(place, offer.text) - self._spared(place, before)
        self.shown[key] = Shown(offer, tokens, edit)

    def _touched(self, place: Place) -> Key:
        key = (place.message, place.index)
        number = self.transcript.group_at.get(key)
        if number is not None:
            self._changed.add(number)
            self._more.pop(number, None)
        return key

    def _spared(self, place: Place, text: str) -> int:
        """Encoded bytes saved by showing this text instead of the block as it came."""
        if text is place.block.text:
            return 0
        size = utf8_bytes if place.block.spelling == "json" else json_bytes
        whole = place.block.payload_bytes or size(place.block.text)
        return whole - size(text)

    def restore(self, place: Place, back: Shown | None) -> None:
        """Take a move back: show what stood there before it."""
        key = self._touched(place)
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
        number = group_index(self.transcript, group)
        return self.run_cost(number, number)

    def run_cost(self, first: int, last: int) -> int:
        """Tokens that go with groups[first:last + 1], as their blocks are shown now."""
        sums, groups = self.usage.runs(self.transcript).tokens, self.transcript.groups
        changed = [number for number in self._changed if first <= number <= last]
        for number in changed:
            if number not in self._more:
                self._more[number] = self._shown_more(groups[number])
        return sums[last + 1] - sums[first] + sum(self._more[number] for number in changed)

    def size(self, first: int, end: int) -> int:
        """Tokens of groups[first:end] as they came."""
        sums = self.usage.runs(self.transcript).tokens
        return sums[end] - sums[first]

    def _shown_more(self, group: Group) -> int:
        """Tokens that a group takes more as it is shown now than as it came."""
        usage, transcript = self.usage, self.transcript
        more = sum(self.cost(place) - usage.block(transcript, place) for place in group.places)
        depth = len(transcript.base) + 1
        for item in group.items:
            number = item[depth - 1]
            assert isinstance(number, int)
            removed, message = self._removed[number], transcript.messages[number]
            if len(item) == depth and message.listed and removed == len(message.parts) > 0:
                more += usage.counter(EMPTIED)
        return more

    @property
    def runs(self) -> list[Run]:
        """The dropped runs, oldest first."""
        return [self._first[index] for index in sorted(self._first)]

    def standing_groups(self) -> Iterator[int]:
        """The numbers of the groups that are not dropped."""
        number = 0
        for run in self.runs:
            yield from range(number, run.first)
            number = run.last + 1
        yield from range(number, len(self.transcript.groups))

    def messages(self, first: int, end: int) -> Iterator[int]:
        """The numbers of messages[first:end] that are not gone, or not as a whole."""
        groups, partial = self.transcript.groups, self.transcript.index.rows.partial
        for run in self.runs:
            start, stop = groups[run.first].first, groups[run.last].last + 1
            yield from range(first, min(start, end))
            first = max(first, start)
            if first >= end:
                return
            yield from partial[bisect_left(partial, first) : bisect_left(partial, min(stop, end))]
            first = max(first, stop)
        yield from range(first, end)

    def groups(self, run: Run) -> tuple[Group, ...]:
        """The groups of a run."""
        return self.transcript.groups[run.first : run.last + 1]

    def handle(self, run: Run) -> str:
        """The handle of a run: named by every block, as a client may change one of them."""
        targets = self.transcript.index.targets(run.first, run.last)
        return handle(("run", *targets), self.handle_key)

    def drop_saving(self, first: int, last: int, lines: str = "") -> int:
        """Tokens that dropping groups[first:last + 1] would save, the note paid."""
        run, touching = self._joined(first, last, lines)
        if not has_place(self.transcript, self.groups(run), self.dropped):
            return 0
        return self.run_cost(first, last) + sum(old.tokens for old in touching) - run.tokens

    def drop(self, first: int, last: int, lines: str = "") -> None:
        """Drop neighbouring groups; without ``lines`` they join the dropped runs that touch them
        and have none either."""
        run, touching = self._joined(first, last, lines)
        self.tokens -= self.run_cost(first, last)
        if self._item_bytes is not None:
            for group in self.transcript.groups[first : last + 1]:
                self.bytes_saved += sum(self._item_bytes(item) + 1 for item in group.items)
                self.bytes_saved -= sum(self._spared(p, self.text(p)) for p in group.places)
        for old in touching:
            self.tokens -= old.tokens
            self.bytes_saved += json_bytes(old.note)
            del self._first[old.first], self._last[old.last]
        self._add(run, first, last)

    def lift(self, run: Run) -> None:
        """Take a drop back: its groups stand again as they are shown."""
        del self._first[run.first], self._last[run.last]
        self.tokens -= run.tokens
        self.bytes_saved += json_bytes(run.note)
        self.dropped.remove(run.first, run.last)
        self.tokens += self.run_cost(run.first, run.last)
        if self._item_bytes is not None:
            for group in self.groups(run):
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

    def _add(self, run: Run, first: int, last: int) -> None:
        self._first[run.first] = self._last[run.last] = run
        self.tokens += run.tokens
        self.bytes_saved -= json_bytes(run.note)
        self.dropped.add(first, last)

    def _joined(self, first: int, last: int, lines: str = "") -> tuple[Run, list[Run]]:
        """The run these groups make with the dropped runs right before and after them.

        A run with lines stays by itself, so that older ones need not be sent anew, save where
        two notes may not stand beside each other.
        """
        groups = self.transcript.groups
        run, touching = Run(first, last, lines), list[Run]()
        before, after = self._last.get(first - 1), self._first.get(last + 1)
        if before is not None and self._joins(before, run, groups[first - 1], groups[first]):
            touching.append(before)
            run.left = left_of_both(before, run)
            run.first, run.lines = before.first, both(before.lines, run.lines)
        if after is not None and self._joins(after, run, groups[last], groups[last + 1]):
            touching.append(after)
            run.left = left_of_both(after, run)
            run.last, run.lines = after.last, both(run.lines, after.lines)
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
        return note(run.last - run.first + 1, self._tools(run), own, run.lines, run.left)

    def _tools(self, run: Run) -> Tally[str]:
        """How often each tool was called, where the note tells that."""
        if run.lines:
            return Tally()
        called = self.transcript.index.rows.called[run.first : run.last + 1]
        shown: Tally[str] = Tally()
        for tool, times in Tally(chain.from_iterable(called)).items():
            shown[shown_name(tool)] += times
        return shown

    def _note_cost(self, run: Run) -> int:
        count, groups = self.usage.counter, self.transcript.groups
        host = note_host(self.transcript, (groups[run.first], groups[run.last]), self.dropped)
        if host is None:
            return count(run.note) + count.scaled(MESSAGE_TOKENS)
        message = self.transcript.messages[host]
        marked = self.transcript.index.rows.marked
        if message.listed or marked[run.last + 1] > marked[run.first]:
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
        for _, first, last in drops:
            self.dropped.add(first, last)
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
        self.tokens -= self.run_cost(first, last)
        run.tokens = self._note_cost(run)
        self._add(run, first, last)


def normal(place: Place, text: str) -> str:
    """The text as the model will read it once it is written back."""
    if place.block.spelling != "json":
        return text
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
