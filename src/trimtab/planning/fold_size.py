"""What a run takes as it stands, and what the fold of one takes, in tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

from trimtab.planning import runs
from trimtab.planning.dropped_ranges import DroppedRange, Fold
from trimtab.planning.runs import (
    Anchor,
    Run,
    anchor_of,
    beside_words,
    closing_of,
    kept_beside,
    kept_thoughts,
)
from trimtab.transcript.model import Edit, Place, is_of_result
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.tokens import MESSAGE_TOKENS
from trimtab.transcript.transcript import Transcript


def run_tokens(
    transcript: Transcript, usage: TokenSizes, run: Run, cost: Callable[[Place], int]
) -> int:
    """Tokens of a run that crosses the user's words, each block at this cost."""
    end, tokens = transcript.groups[run.last], 0
    assert run.opening is not None
    for number in range(run.opening, end.last + 1):
        message = transcript.messages[number]
        some = end.partial and number == end.last
        own = transcript.places_in(number)
        tokens += sum(cost(place) for place in own if not some or is_of_result(place.block))
        tokens += usage.pairs(message.results) if some else usage.overhead(message)
    return tokens


def fold_tokens(transcript: Transcript, usage: TokenSizes, made: DroppedRange) -> int:
    """Tokens of what stands for a folded run."""
    fold, count = made.fold, usage.counter
    assert fold is not None
    frame, tokens = count.scaled(MESSAGE_TOKENS), 0
    if made.opening is not None:
        tokens += count(made.asked) + frame
    closing = closing_of(transcript, made.run, fold.anchor is not None)
    if fold.anchor is not None:
        words = made.said if closing is None else ""
        tokens += _call_tokens(transcript, usage, fold.anchor, fold.arguments, words)
        answer, end = transcript.messages[fold.anchor.message], transcript.groups[made.last]
        part = end.partial and fold.anchor.message == end.last
        part = part or beside_words(transcript, made.run)
        tokens += count(made.note) + (frame if answer.framed and not part else 0)
        tokens += usage.pairs((fold.anchor.result,))
    if closing is not None:
        tokens += count(made.said) + frame
        beside = (transcript.at(closing.message, index) for index in closing.kept)
        tokens += sum(usage.block(transcript, place) for place in beside)
    return tokens


def folded_tokens(transcript: Transcript, usage: TokenSizes, edit: Edit) -> tuple[int, int]:
    """Tokens of what a fold takes out as it came, and of what stands for it."""
    run = runs.run_of(transcript, edit)
    assert run is not None
    fold = Fold(anchor_of(transcript, edit), arguments=edit.arguments)
    made = DroppedRange(*run, fold, note=edit.text, said=edit.said, asked=edit.asked)
    sums = usage.runs(transcript).tokens
    before = sums[run.last + 1] - sums[run.first]
    if run.opening is not None:
        before = run_tokens(transcript, usage, run, partial(usage.block, transcript))
    return before, fold_tokens(transcript, usage, made)


def _call_tokens(
    transcript: Transcript, usage: TokenSizes, anchor: Anchor, arguments: str, words: str
) -> int:
    """The anchor's message: the call, what stays beside it, and these words."""
    number, count = anchor.call.message, usage.counter
    message, frame = transcript.messages[number], count.scaled(MESSAGE_TOKENS)
    beside = (transcript.at(number, index) for index in kept_beside(transcript, anchor))
    thoughts = kept_thoughts(transcript, anchor)
    tokens = usage.pairs((anchor.part,)) + (frame if message.framed else 0)
    tokens += sum(usage.block(transcript, place) for place in beside)
    tokens += sum(usage.message(transcript.messages[thought]) for thought in thoughts)
    if words:  # where a call is an item of its own, they are one too
        tokens += count(words) + (0 if message.framed else frame)
    block = anchor.call.block
    if not arguments:
        return tokens + usage.block(transcript, anchor.call)
    if block.spelling == "json":
        arguments = json.dumps(json.loads(arguments), ensure_ascii=False, separators=(",", ":"))
    fixed = count.scaled(block.fixed_tokens) if block.text else 0
    return tokens + count(arguments) + (count(block.label) if block.label else 0) + fixed
