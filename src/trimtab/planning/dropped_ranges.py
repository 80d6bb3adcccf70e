"""Dropped and folded runs of groups: the text in place of each and its tokens, and the set of their
group numbers."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections import Counter as Tally
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from trimtab.planning.runs import (
    Anchor,
    Run,
    anchor_of,
    beside_words,
    closing_of,
    kept_beside,
    kept_thoughts,
    run_of,
)
from trimtab.transcript.model import Edit, Place, is_of_result
from trimtab.transcript.notes import EARLIER_WORDS, LINES, WORDS
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import MESSAGE_TOKENS
from trimtab.transcript.transcript import Transcript


@dataclass(frozen=True)
class Fold:
    """The contents of a fold by speaker; "" if nothing of one is left.

    ``lines`` of results are put into the anchor's result; ``model_text`` stays the model's and
    ``user_text`` the user's.
    """

    anchor: Anchor | None
    lines: str = ""
    model_text: str = ""
    user_text: str = ""
    arguments: str = ""
    """The anchor's arguments, if they are shown shorter; else ""."""
    lines_label: str = LINES
    words_label: str = WORDS
    """The label of what is left, in notes."""

    @property
    def quotes(self) -> bool:
        """Whether everything in the fold is verbatim, nothing summarized by a model."""
        return (self.lines_label, self.words_label) == (LINES, WORDS)


@dataclass
class DroppedRange:
    """Neighbouring groups that are dropped or folded together, and the text in their place.

    ``note``: a marker for a drop; for a fold the anchor's result.
    """

    first: int
    last: int
    opening: int | None = None
    fold: Fold | None = None
    note: str = ""
    model_text: str = ""
    user_text: str = ""
    tokens: int = 0
    edit: Edit | None = None
    called: Tally[str] = field(default_factory=Tally)
    """Of a drop: how often each tool was called; ranges that join add theirs."""
    digest: hashlib.blake2b | None = None
    """Of a drop with a handle: what its handle is made of; one that grows goes on from there."""

    @property
    def run(self) -> Run:
        """The run of groups."""
        return Run(self.first, self.last, self.opening)


def shown_name(name: str) -> str:
    """A tool's name as notes show it; "other" if it is long or not ASCII."""
    return name if name.isascii() and len(name) <= 24 else "other"


def marker(steps: int, tools: Tally[str], handle: str = "") -> str:
    """``[14 earlier steps left out to fit: Read ×9, Bash ×4, others ×1]``; at most 64 tokens.

    ``handle``: of what was left out, if the model can recall it.
    """
    named = sorted(tools.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{name} ×{count}" for name, count in named[:3]]
    rest = sum(count for _, count in named[3:])
    if rest:
        shown.append(f"others ×{rest}")
    return f"[{steps_text(steps)} left out to fit: {', '.join(shown)}{_fetch(handle)}]"


def left_note(what: str, left: str, text: str, handle: str = "") -> str:
    """``[14 earlier steps, of which this record is left; recall("…") has them]`` over the text."""
    if left != LINES:
        return f"[{what}, of which {left} left{_fetch(handle)}]\n{text}"
    one = f'; recall("{handle}", steps="3") has step 3 whole' if handle else ""
    return f"[{what}, of which {left} left, true after the last of them{one}]\n{text}"


def words_note(left: str, text: str, handle: str = "") -> str:
    """``[earlier words, in part]`` over the model's words."""
    return f"[{EARLIER_WORDS}, {left}{_fetch(handle)}]\n{text}"


def steps_text(steps: int) -> str:
    """``14 earlier steps``."""
    return "1 earlier step" if steps == 1 else f"{steps:,} earlier steps"


def messages_text(count: int) -> str:
    """``9 earlier messages``."""
    return "1 earlier message" if count == 1 else f"{count:,} earlier messages"


def _fetch(handle: str) -> str:
    return f'; recall("{handle}") has them' if handle else ""


class IntervalSet:
    """A set of numbers kept as intervals: its cost grows with the gaps, not with the members."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._last: list[int] = []

    def __contains__(self, number: int) -> bool:
        row = bisect_right(self._first, number) - 1
        return row >= 0 and number <= self._last[row]

    def begin(self, number: int) -> int:
        """The start of the interval that ends right before ``number`` or contains it; ``number`` if
        there is none."""
        row = bisect_left(self._first, number) - 1
        return self._first[row] if row >= 0 and self._last[row] >= number - 1 else number

    def add(self, first: int, last: int) -> None:
        begin, end = bisect_left(self._last, first - 1), bisect_right(self._first, last + 1)
        if begin < end:
            first, last = min(first, self._first[begin]), max(last, self._last[end - 1])
        self._first[begin:end], self._last[begin:end] = [first], [last]

    def remove(self, first: int, last: int) -> None:
        begin, end = bisect_left(self._last, first), bisect_right(self._first, last)
        firsts, lasts = self._first[begin:end], self._last[begin:end]
        rows = [(n, first - 1) for n in firsts[:1] if n < first]
        rows += [(last + 1, n) for n in lasts[-1:] if n > last]
        self._first[begin:end], self._last[begin:end] = [n for n, _ in rows], [n for _, n in rows]


# --- what a run takes unchanged, and what the fold of one takes, in tokens ---


def run_tokens(
    transcript: Transcript, sizes: TokenSizes, run: Run, cost: Callable[[Place], int]
) -> int:
    """Tokens of a run that crosses the user's words; ``cost`` gives the tokens of a block."""
    end, tokens = transcript.groups[run.last], 0
    assert run.opening is not None
    for number in range(run.opening, end.last + 1):
        message = transcript.messages[number]
        some = end.partial and number == end.last
        own = transcript.places_in(number)
        tokens += sum(cost(place) for place in own if not some or is_of_result(place.block))
        tokens += sizes.pairs(message.results) if some else sizes.overhead(message)
    return tokens


def fold_tokens(transcript: Transcript, sizes: TokenSizes, made: DroppedRange) -> int:
    """Tokens of the fold in place of a run."""
    fold, count = made.fold, sizes.counter
    assert fold is not None
    frame, tokens = count.scaled(MESSAGE_TOKENS), 0
    if made.opening is not None:
        tokens += count(made.user_text) + frame
    closing = closing_of(transcript, made.run, fold.anchor is not None)
    if fold.anchor is not None:
        model_text = made.model_text if closing is None else ""
        tokens += _call_tokens(transcript, sizes, fold.anchor, fold.arguments, model_text)
        answer, end = transcript.messages[fold.anchor.message], transcript.groups[made.last]
        part = end.partial and fold.anchor.message == end.last
        part = part or beside_words(transcript, made.run)
        tokens += count(made.note) + (frame if answer.framed and not part else 0)
        tokens += sizes.pairs((fold.anchor.result,))
    if closing is not None:
        tokens += count(made.model_text) + frame
        beside = (transcript.at(closing.message, index) for index in closing.kept)
        tokens += sum(sizes.block(transcript, place) for place in beside)
    return tokens


def folded_tokens(transcript: Transcript, sizes: TokenSizes, edit: Edit) -> tuple[int, int]:
    """(original tokens of the run that a fold replaces, tokens of the fold)."""
    run = run_of(transcript, edit)
    assert run is not None
    fold = Fold(anchor_of(transcript, edit), arguments=edit.arguments)
    made = DroppedRange(
        *run, fold, note=edit.text, model_text=edit.model_text, user_text=edit.user_text
    )
    if run.opening is not None:
        before = run_tokens(transcript, sizes, run, partial(sizes.block, transcript))
    else:
        groups = transcript.groups[run.first : run.last + 1]
        before = sum(sizes.group(transcript, group) for group in groups)
    return before, fold_tokens(transcript, sizes, made)


def _call_tokens(
    transcript: Transcript, sizes: TokenSizes, anchor: Anchor, arguments: str, model_text: str
) -> int:
    """Tokens of the anchor's message: the call, the blocks that stay beside it, and ``words``."""
    number, count = anchor.call.message, sizes.counter
    message, frame = transcript.messages[number], count.scaled(MESSAGE_TOKENS)
    beside = (transcript.at(number, index) for index in kept_beside(transcript, anchor))
    thoughts = kept_thoughts(transcript, anchor)
    tokens = sizes.pairs((anchor.part,)) + (frame if message.framed else 0)
    tokens += sum(sizes.block(transcript, place) for place in beside)
    tokens += sum(sizes.message(transcript.messages[thought]) for thought in thoughts)
    if model_text:  # where a call is a separate item, they are one too
        tokens += count(model_text) + (0 if message.framed else frame)
    block = anchor.call.block
    if not arguments:
        return tokens + sizes.block(transcript, anchor.call)
    if block.spelling == "json":
        arguments = json.dumps(json.loads(arguments), ensure_ascii=False, separators=(",", ":"))
    fixed = count.scaled(block.fixed_tokens) if block.text else 0
    return tokens + count(arguments) + (count(block.label) if block.label else 0) + fixed
