"""The state of a plan: the dropped and folded runs, on top of what each block is shown as.

Keeps the size of the request exact.  ``planner.py`` chooses.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable, Iterator, Sequence

from trimtab.jsontext.paths import Path
from trimtab.planning import runs
from trimtab.planning.dropped_ranges import (
    DroppedRange,
    Fold,
    IntervalSet,
    fold_tokens,
    left_note,
    marker,
    messages_text,
    run_tokens,
    shown_name,
    steps_text,
    words_note,
)
from trimtab.planning.edits import (
    EMPTIED,
    between_systems,
    digest_of,
    group_index,
    groups_of,
    handle,
    handle_of,
    has_place,
    note_host,
    with_more,
)
from trimtab.planning.runs import Run, anchor_of, closing_of, meets_user
from trimtab.planning.shown_blocks import Replacement, ShownBlocks
from trimtab.reducers import Offer
from trimtab.reducers.base import json_bytes
from trimtab.transcript.model import Edit, Group, Place
from trimtab.transcript.notes import (  # fmt: skip
    BOTH,
    IN_BOTH,
    IN_SUMMARY,
    LINES,
    OLD_BOTH,
    SUMMARY,
    USER_WORDS,
    WORDS,
)
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import MESSAGE_TOKENS
from trimtab.transcript.transcript import Transcript

FRAME_BYTES = 256
"""Above the bytes of a result's keys and ids."""


class PlanState(ShownBlocks):
    """The state of one plan; mutable.  ``runs`` are its dropped and folded runs, and ``tokens``
    counts the texts in their place."""

    def __init__(
        self,
        transcript: Transcript,
        sizes: TokenSizes,
        *,
        recall: bool = False,
        handle_key: bytes = b"",
        item_bytes: Callable[[Path], int] | None = None,
    ) -> None:
        super().__init__(transcript, sizes, item_bytes=item_bytes)
        self.recall, self.handle_key = recall, handle_key
        self._first: dict[int, DroppedRange] = {}
        self._last: dict[int, DroppedRange] = {}
        self.dropped = IntervalSet()
        self.drops = IntervalSet()
        """Of these, those of drops: a note passes over them on its way to the user's message."""
        self._crossed = IntervalSet()
        """Messages folded away in runs that cross the user's words."""

    # --- the state now ---

    def is_dropped(self, place: Place) -> bool:
        """Whether the block is in a dropped or folded run."""
        number = self.transcript.group_number(place.message, place.index)
        return (number is not None and number in self.dropped) or place.message in self._crossed

    def replacements(self) -> list[tuple[Place, Replacement]]:
        """Every block that is not shown as it came, without dropped ones."""
        shown_at = [(self.transcript.at(*key), shown) for key, shown in self.shown.items()]
        return [(place, shown) for place, shown in shown_at if not self.is_dropped(place)]

    # --- dropped groups ---

    @property
    def runs(self) -> list[DroppedRange]:
        """The dropped runs, oldest first."""
        return [self._first[index] for index in sorted(self._first)]

    def messages(self, first: int, end: int) -> Iterator[int]:
        """The numbers of messages[first:end] that are not dropped, or only in part."""
        groups, partial = self.transcript.groups, self.transcript.table.partial_messages
        for run in self.runs:
            start, stop = groups[run.first].first, groups[run.last].last + 1
            start = start if run.opening is None else run.opening
            yield from range(first, min(start, end))
            first = max(first, start)
            if first >= end:
                return
            some = partial[bisect_left(partial, first) : bisect_left(partial, min(stop, end))]
            yield from (number for number in some if number not in self._crossed)
            first = max(first, stop)
        yield from range(first, end)

    def groups(self, run: DroppedRange) -> tuple[Group, ...]:
        return self.transcript.groups[run.first : run.last + 1]

    def handle(self, run: DroppedRange) -> str:
        """The handle of a run; it depends on every block, as a client may change one of them."""
        return handle(("run", *runs.targets(self.transcript, run.run)), self.handle_key)

    def cost_of(self, run: Run) -> int:
        """Tokens of a run, as its blocks are shown now."""
        if run.opening is None:
            return self.run_cost(run.first, run.last)
        tokens = run_tokens(self.transcript, self.sizes, run, self.cost)
        for number in range(run.opening, self.transcript.groups[run.last].last + 1):
            message = self.transcript.messages[number]
            if message.listed and self._removed[number] == len(message.parts) > 0:
                tokens += self.sizes.counter(EMPTIED)
        return tokens

    # --- a drop: a marker stands for the run ---

    def drop_saving(self, first: int, last: int) -> int:
        """Tokens that dropping groups[first:last + 1] would save, minus the marker's."""
        run, touching = self._joined(first, last)
        if not has_place(self.transcript, self.groups(run), self.drops):
            return 0
        return self.run_cost(first, last) + sum(old.tokens for old in touching) - run.tokens

    def drop(self, first: int, last: int) -> None:
        """Drop neighbouring groups; they join the dropped runs that touch them."""
        run, touching = self._joined(first, last)
        self.tokens -= self.run_cost(first, last)
        self._count_items(Run(first, last), 1)
        for old in touching:
            self.tokens -= old.tokens
            self.bytes_saved += self._shown_bytes(old)
            del self._first[old.first], self._last[old.last]
        self._add(run)

    def _joined(self, first: int, last: int) -> tuple[DroppedRange, list[DroppedRange]]:
        """(the run of these groups joined with adjacent dropped runs, those adjacent runs)."""
        groups, adjoin = self.transcript.groups, self.transcript.adjoin
        run, touching = DroppedRange(first, last), list[DroppedRange]()
        before, after = self._last.get(first - 1), self._first.get(last + 1)
        if before and before.fold is None and adjoin(groups[first - 1], groups[first]):
            touching.append(before)
            run.first = before.first
        if after and after.fold is None and adjoin(groups[last], groups[last + 1]):
            touching.append(after)
            run.last = after.last
        own = ""
        if self.recall:
            run.digest = self._digest(run, touching)
            own = handle_of(run.digest)
        run.called = self._tools(first, last)
        for old in touching:
            run.called.update(old.called)
        run.note = marker(run.last - run.first + 1, run.called, own)
        run.tokens = self._marker_cost(run)
        return run, touching

    def _digest(self, run: DroppedRange, touching: Sequence[DroppedRange]) -> hashlib.blake2b:
        """The digest of a run; if another was made longer, that one's gone on with."""
        for old in touching:
            if old.first == run.first and old.digest is not None:
                more = Run(old.last + 1, run.last)
                return with_more(old.digest, runs.targets(self.transcript, more))
        return digest_of(("run", *runs.targets(self.transcript, run.run)), self.handle_key)

    def _tools(self, first: int, last: int) -> Tally[str]:
        """How often each tool was called, by its name in a marker."""
        called = self.transcript.table.called_tools(first, last)
        shown: Tally[str] = Tally()
        for tool, times in Tally(called).items():
            shown[shown_name(tool)] += times
        return shown

    def _marker_cost(self, run: DroppedRange) -> int:
        count, groups = self.sizes.counter, self.transcript.groups
        host = note_host(self.transcript, (groups[run.first], groups[run.last]), self.drops)
        if host is None:
            pair = between_systems(
                self.transcript, (groups[run.first], groups[run.last]), self.drops
            )
            beside = count(EMPTIED) + count.scaled(MESSAGE_TOKENS) if pair else 0
            return count(run.note) + count.scaled(MESSAGE_TOKENS) + beside
        message = self.transcript.messages[host]
        marked = self.transcript.table.marked
        if message.listed or marked[run.last + 1] > marked[run.first]:
            return count(run.note)
        old = self.text(Place(host, 0, message.blocks[0]))
        return count(f"{old}\n\n{run.note}") - count(old)

    # --- a fold: the best of each speaker stands for the run ---

    def folded(self, run: Run, fold: Fold) -> DroppedRange:
        """The run with this fold: its texts and their tokens."""
        made = DroppedRange(run.first, run.last, run.opening, fold)
        steps = run.last - run.first + 1
        own = self.handle(made) if self.recall else ""
        closing = closing_of(self.transcript, run, fold.anchor is not None)
        if run.opening is not None:
            made.user_text = self._user_note(run, fold, own)
            own = ""
        if fold.anchor is not None:
            made.note = marker(steps, self._tools(run.first, run.last), own)
            if fold.lines:
                made.note = left_note(steps_text(steps), fold.lines_label, fold.lines, own)
            own = ""
        if fold.model_text:
            made.model_text = words_note(fold.words_label, fold.model_text, own)
        elif closing is not None:
            made.model_text = EMPTIED
        made.tokens = fold_tokens(self.transcript, self.sizes, made)
        return made

    def _user_note(self, run: Run, fold: Fold, own: str) -> str:
        """The fold's user message: a line that says what is left, and the kept text."""
        assert run.opening is not None
        end = self.transcript.groups[run.last].last + 1
        what = messages_text(end - run.opening)
        if fold.user_text:
            return left_note(what, USER_WORDS, fold.user_text, own)
        fetch = f'; recall("{own}") has them' if own else ""
        return f"[{what} left out to fit{fetch}]"

    def fold_saving(self, run: Run, fold: Fold) -> int:
        """Tokens that this fold would save."""
        return self.cost_of(run) - self.folded(run, fold).tokens

    def fold(self, run: Run, fold: Fold) -> None:
        """Fold a run none of whose groups is dropped yet."""
        made = self.folded(run, fold)
        self.tokens -= self.cost_of(run)
        self._count_items(run, 1)
        self._add(made)

    # --- both ---

    def is_crossed(self, message: int) -> bool:
        """Whether a whole message is folded away in a run that crosses the user's words."""
        return message in self._crossed

    def is_legal_here(self, run: Run, *, anchored: bool) -> bool:
        """Whether the messages of a fold are allowed at its place: two messages of the user must
        not meet if roles must alternate."""
        if anchored or closing_of(self.transcript, run, anchored=False) is not None:
            return True
        return not meets_user(self.transcript, run)

    def reopen(self, run: DroppedRange) -> None:
        """Undo a run: its groups are shown again."""
        del self._first[run.first], self._last[run.last]
        self.tokens -= run.tokens
        self.bytes_saved += self._shown_bytes(run)
        self.dropped.remove(run.first, run.last)
        if run.fold is None:
            self.drops.remove(run.first, run.last)
        if run.opening is not None:
            self._crossed.remove(run.opening, self._crossed_end(run))
        self.tokens += self.cost_of(run.run)
        self._count_items(run.run, -1)

    def put_back(self, run: DroppedRange) -> None:
        """Restore a run that was just reopened."""
        self.tokens -= self.cost_of(run.run)
        self._count_items(run.run, 1)
        self._add(run)

    def reword(self, run: DroppedRange, fold: Fold) -> None:
        """Put other texts in place of a fold's, unless they would cost more."""
        new = self.folded(run.run, fold)
        if new.tokens > run.tokens:
            return
        self.tokens += new.tokens - run.tokens
        self.bytes_saved += self._shown_bytes(run) - self._shown_bytes(new)
        self._first[run.first] = self._last[run.last] = new

    def _add(self, run: DroppedRange) -> None:
        self._first[run.first] = self._last[run.last] = run
        self.tokens += run.tokens
        self.bytes_saved -= self._shown_bytes(run)
        self.dropped.add(run.first, run.last)
        if run.fold is None:
            self.drops.add(run.first, run.last)
        if run.opening is not None:
            self._crossed.add(run.opening, self._crossed_end(run))

    def _crossed_end(self, run: DroppedRange) -> int:
        """The last message of a run that is folded away as a whole."""
        end = self.transcript.groups[run.last]
        return end.last - 1 if end.partial else end.last

    def _count_items(self, run: Run, sign: int) -> None:
        """Count the bytes of a run as saved (1) or as sent again (−1)."""
        if self._item_bytes is None:
            return
        saved = sum(self._item_bytes(item) + 1 for item in runs.items(self.transcript, run))
        shown = runs.places(self.transcript, run)
        saved -= sum(self._saved_bytes(place, self.offer_at(place)) for place in shown)
        self.bytes_saved += sign * saved

    def _shown_bytes(self, run: DroppedRange) -> int:
        """Bytes of the text in place of a run; for a fold an upper bound."""
        size = json_bytes(run.note) + json_bytes(run.model_text) + json_bytes(run.user_text)
        if run.fold is None or run.fold.anchor is None or self._item_bytes is None:
            return size
        message: Path = (*self.transcript.base, run.fold.anchor.call.message)
        return size + self._item_bytes(message) + FRAME_BYTES

    # --- the journal's edits ---

    def load(self, edits: Iterable[Edit]) -> None:
        """Apply the journal's edits to the state."""
        for edit in edits:
            if edit.op in ("replace", "remove"):
                place = self._edited(edit)
                op = "replace" if edit.op == "replace" else "remove"
                offer = Offer(op, edit.text, edit.loss, edit.kind, edit.why, payload=edit.payload)  # type: ignore[arg-type]
                self.show(place, offer, self.price(place, offer), edit)
            elif edit.op == "insert":
                self.insert(edit)
        for edit in edits:
            if edit.op == "fold":
                self._load_fold(edit)
        drops = [(edit, *self._span(edit)) for edit in edits if edit.op == "drop"]
        for _, first, last in drops:
            self.dropped.add(first, last)
            self.drops.add(first, last)
        for edit, first, last in drops:
            self._load_drop(edit, first, last)

    def _edited(self, edit: Edit) -> Place:
        """The place of an edit; its texts are joined as they were when the edit was made."""
        places = tuple(self.transcript.refs[ref] for ref in edit.targets)
        if self.joined.members(places[0]) != places:
            for place in places:
                self.joined.leave_out(place)
            if len(places) > 1:
                self.joined.add(places)
        return next(self.joined.as_one(places[:1]))

    def _span(self, edit: Edit) -> tuple[int, int]:
        groups = groups_of(self.transcript, edit) or ()
        first = group_index(self.transcript, groups[0])
        return first, first + len(groups) - 1

    def _load_drop(self, edit: Edit, first: int, last: int) -> None:
        run = DroppedRange(first, last, called=self._tools(first, last), note=edit.text, edit=edit)
        self.tokens -= self.run_cost(first, last)
        self._count_items(run.run, 1)
        run.tokens = self._marker_cost(run)
        self._add(run)

    def _load_fold(self, edit: Edit) -> None:
        run = runs.run_of(self.transcript, edit)
        assert run is not None
        lines, model_text, user_text = map(_body, (edit.text, edit.model_text, edit.user_text))
        fold = Fold(
            anchor_of(self.transcript, edit), lines, model_text, user_text, edit.arguments,
            _left(edit.text, LINES, (BOTH, OLD_BOTH, SUMMARY)),
            _left(edit.model_text, WORDS, (IN_BOTH, IN_SUMMARY)),
        )  # fmt: skip
        made = DroppedRange(
            *run, fold, note=edit.text, model_text=edit.model_text, user_text=edit.user_text,
            edit=edit,
        )  # fmt: skip
        made.tokens = fold_tokens(self.transcript, self.sizes, made)
        self.tokens -= self.cost_of(run)
        self._count_items(run, 1)
        self._add(made)


def _body(text: str) -> str:
    """The text below our first line."""
    return text.partition("\n")[2]


def _left(text: str, quoted: str, summaries: Sequence[str]) -> str:
    """The label in a note for what is left."""
    head = text.partition("\n")[0]
    return next((left for left in summaries if f" {left}" in head), quoted)
