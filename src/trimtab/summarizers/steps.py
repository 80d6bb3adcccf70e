"""Summaries of old steps: the asks to the model, and how its answers are put into a note.

Tool results and the agent's own words are summarized separately, and each summary keeps its
speaker.  A long run is summarized in parts, so that all of it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple, Protocol, TypeVar

from trimtab.planning.dropped_ranges import DroppedRange
from trimtab.planning.line_selection import CandidateLines, verbatim
from trimtab.planning.plan_state import PlanState
from trimtab.planning.planner import Planner
from trimtab.planning.record import Entry, StepRecord
from trimtab.reducers.base import Ask
from trimtab.transcript.notes import BOTH, IN_BOTH, IN_SUMMARY, LINES, SUMMARY, WORDS

PART_CHARS = 50_000
"""A longer run is summarized in parts of at most so many characters.  A part begins with a call; it
is longer only if a single call is."""
MIN_TOKENS = 40
"""Lines of fewer tokens are not summarized: no summary would say more."""
SAID = "[a model's summary:]"
RECORD, QUOTED = "[record:]", "[lines:]"
"""The labels over parts without a summary: steps of the record, lines that the agent wrote."""


@dataclass(frozen=True)
class StepPart:
    """Some steps of a run: the lines that are shown, and the ask for a summary, if any."""

    lines: str
    ask: Ask | None


class Reworded(NamedTuple):
    """The new text of one speaker's part of a note, and the label the note gives it."""

    text: str
    left: str


@dataclass(frozen=True)
class NotedRun:
    """One run of folded steps: its tool results and the model's words, in parts."""

    run: DroppedRange
    results: tuple[StepPart, ...]
    prose: tuple[StepPart, ...]

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The asks of all parts, in order."""
        parts = (*self.results, *self.prose)
        return tuple(part.ask for part in parts if part.ask is not None)

    def reword(self, state: PlanState, answers: Sequence[str]) -> None:
        """Show the answers; a part without one keeps its lines.  Without any, change nothing."""
        fold = self.run.fold
        if fold is None or not any(answers):
            return
        many = sum(part.ask is not None for part in self.results)
        lines = _reworded(
            self.results, answers[:many], Reworded(fold.lines, LINES), (SUMMARY, BOTH, RECORD)
        )
        words = _reworded(
            self.prose,
            answers[many:],
            Reworded(fold.model_text, WORDS),
            (IN_SUMMARY, IN_BOTH, QUOTED),
        )
        new = replace(
            fold,
            lines=lines.text,
            lines_label=lines.left,
            model_text=words.text,
            words_label=words.left,
        )
        state.reword(self.run, new)


def _reworded(
    parts: Sequence[StepPart],
    answers: Sequence[str],
    before: Reworded,
    named: tuple[str, str, str],
) -> Reworded:
    """The parts with their answers; ``named``: the note's label for summaries alone, for summaries
    and lines, and the label over lines."""
    remaining = iter(answers)
    rows = [(part.lines, next(remaining) if part.ask else "") for part in parts]
    if not any(answer for _, answer in rows):
        return before
    if all(answer for _, answer in rows):
        return Reworded("\n".join(answer for _, answer in rows), named[0])
    texts = [f"{SAID}\n{answer}" if answer else f"{named[2]}\n{lines}" for lines, answer in rows]
    return Reworded("\n".join(texts), named[1])


def noted_steps(plan: Planner) -> list[NotedRun]:
    """The runs that this cut folded into notes and that are still unchanged."""
    noted = []
    for run in plan.state.runs:
        steps, fold = plan.folded.get(run.first), run.fold
        if run.edit is None and fold and fold.quotes and steps:
            words = [source for source in steps.prose if source.kind == "text"]
            noted.append(NotedRun(
                run,
                tuple(_records(plan, run, steps.entries)) if fold.lines else (),
                tuple(_quotes(plan, run, words)) if fold.model_text else (),
            ))  # fmt: skip
    return noted


def _records(plan: Planner, run: DroppedRange, entries: Sequence[Entry]) -> Iterator[StepPart]:
    """The parts of a record.  A model reads the head of each step, also of those that the record
    has in one line with their neighbours, and all lines that may be shown."""
    listed = [replace(one, listed=True, sources=_whole(one.sources)) for one in entries]
    whole = {id(one): new for one, new in zip(entries, listed, strict=True)}

    def chars(entry: Entry) -> int:
        return sum(len(row) + 1 for row in whole[id(entry)].rows())

    for part in _divided(entries, chars):
        shown = StepRecord(part).rows()
        rows = StepRecord([whole[id(entry)] for entry in part]).rows()
        yield _part(plan, run, "calls and what tools returned in", shown, rows)


def _quotes(
    plan: Planner, run: DroppedRange, sources: Sequence[CandidateLines]
) -> Iterator[StepPart]:
    """The parts of the model's words that are quoted."""

    def chars(source: CandidateLines) -> int:
        return sum(len(line) + 1 for line in source.lines)

    for part in _divided(sources, chars):
        if shown := [row for source in part for row in verbatim(source)]:
            rows = [row for source in _whole(part) for row in verbatim(source)]
            yield _part(plan, run, "what the agent itself wrote in", shown, rows)


def _whole(sources: Sequence[CandidateLines]) -> list[CandidateLines]:
    """The sources with all their lines."""
    return [replace(source, kept=set(range(len(source.lines)))) for source in sources]


def _part(
    plan: Planner, run: DroppedRange, what: str, shown: Sequence[str], rows: Sequence[str]
) -> StepPart:
    """A part with the rows that are shown of it, and the ask with those that a model reads."""
    places = [place for group in plan.state.groups(run) for place in group.places]
    result = next((place for place in places if place.block.kind == "result"), places[0])
    question, count = plan.inputs.config_for(result).question, plan.inputs.config.count
    lines = "\n".join(shown)
    tokens = count(lines) - 2 * count(SAID)
    if tokens < MIN_TOKENS:
        return StepPart(lines, None)
    title = f"{what} {run.last - run.first + 1} earlier steps of an agent's work"
    return StepPart(lines, Ask(title, "", "\n".join(rows), question, tokens))


class _InStep(Protocol):
    @property
    def group(self) -> int: ...


Piece = TypeVar("Piece", bound=_InStep)


def _divided(pieces: Sequence[Piece], chars: Callable[[Piece], int]) -> Iterator[list[Piece]]:
    """The pieces in order, split into parts of at most PART_CHARS; a step is never split."""
    part: list[Piece] = []
    total = 0
    for _, own in groupby(pieces, key=lambda piece: piece.group):
        step = list(own)
        size = sum(map(chars, step))
        if part and total + size > PART_CHARS:
            yield part
            part, total = [], 0
        part += step
        total += size
    if part:
        yield part
