"""Summaries of old steps: the asks to the model, and how its answers are put into a note.

Tool results and the agent's own words are summarized separately, and each summary keeps its
speaker.  A long run is summarized in parts, so that all of it is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import NamedTuple

from trimtab.planning.dropped_ranges import DroppedRange
from trimtab.planning.line_selection import CandidateLines
from trimtab.planning.plan_state import PlanState
from trimtab.planning.planner import Planner
from trimtab.planning.record import text_of
from trimtab.reducers.base import Ask
from trimtab.transcript.notes import BOTH, IN_BOTH, IN_SUMMARY, LINES, SUMMARY, WORDS

PART_CHARS = 50_000
"""A longer run is summarized in parts of at most so many characters.  A part begins with a call; it
is longer only if a single call is."""
LEAST_TOKENS = 40
"""Lines of fewer tokens are not summarized: no summary would say more."""
SAID, KEPT = "[a model's summary:]", "[lines:]"


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
    words: tuple[StepPart, ...]

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The asks of all parts, in order."""
        parts = (*self.results, *self.words)
        return tuple(part.ask for part in parts if part.ask is not None)

    def reword(self, state: PlanState, answers: Sequence[str]) -> None:
        """Show the answers; a part without one keeps its lines.  Without any, change nothing."""
        fold = self.run.fold
        if fold is None or not any(answers):
            return
        many = sum(part.ask is not None for part in self.results)
        lines = _reworded(self.results, answers[:many], Reworded(fold.lines, LINES))
        words = _reworded(
            self.words, answers[many:], Reworded(fold.words, WORDS), (IN_SUMMARY, IN_BOTH)
        )
        new = replace(
            fold, lines=lines.text, lines_left=lines.left, words=words.text, words_left=words.left
        )
        state.reword(self.run, new)


def _reworded(
    parts: Sequence[StepPart],
    answers: Sequence[str],
    before: Reworded,
    named: tuple[str, str] = (SUMMARY, BOTH),
) -> Reworded:
    remaining = iter(answers)
    rows = [(part.lines, next(remaining) if part.ask else "") for part in parts]
    if not any(answer for _, answer in rows):
        return before
    if all(answer for _, answer in rows):
        return Reworded("\n".join(answer for _, answer in rows), named[0])
    texts = [f"{SAID}\n{answer}" if answer else f"{KEPT}\n{lines}" for lines, answer in rows]
    return Reworded("\n".join(texts), named[1])


def noted_steps(plan: Planner) -> list[NotedRun]:
    """The runs that this batch folded into notes and that are still unchanged."""
    noted = []
    for run in plan.state.runs:
        sources = plan.folded.get(run.first, ())
        if run.edit is None and run.fold and run.fold.quotes and sources:
            results = [source for source in sources if source.head is not None]
            words = [source for source in sources if source.kind == "text"]
            noted.append(NotedRun(
                run,
                tuple(_parts(plan, run, results, "what tools returned in")),
                tuple(_parts(plan, run, words, "what the agent itself wrote in")),
            ))  # fmt: skip
    return noted


def _parts(
    plan: Planner, run: DroppedRange, sources: Sequence[CandidateLines], what: str
) -> Iterator[StepPart]:
    places = [place for group in plan.state.groups(run) for place in group.places]
    result = next((place for place in places if place.block.kind == "result"), places[0])
    question = plan.inputs.config_for(result).question
    title = f"{what} {run.last - run.first + 1} earlier steps of an agent's work"
    count = plan.inputs.config.count
    for part in _divided(sources):
        lines = text_of(part)
        if not lines:
            continue
        tokens = count(lines) - 2 * count(SAID)
        whole = [replace(s, kept=set(range(len(s.lines)))) for s in part]
        text = text_of(whole)
        worth = tokens >= LEAST_TOKENS
        yield StepPart(lines, Ask(title, "", text, question, tokens) if worth else None)


def _divided(sources: Sequence[CandidateLines]) -> Iterator[list[CandidateLines]]:
    """The sources in order, split into parts of at most PART_CHARS; a call is never split."""
    part: list[CandidateLines] = []
    chars = 0
    for _, own in groupby(sources, key=lambda source: source.group):
        step = list(own)
        size = sum(len(line) + 1 for source in step for line in source.lines)
        if part and chars + size > PART_CHARS:
            yield part
            part, chars = [], 0
        part += step
        chars += size
    if part:
        yield part
