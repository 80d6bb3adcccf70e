"""Notes on old steps in a model's words: what it is asked, and how its answers stand in a note.

Knows which lines a note was chosen from, and that a long run is asked about in parts, so that
nothing in it goes unread.  Does not know who answers, nor what makes an answer usable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from trimtab.planning.board import Board
from trimtab.planning.cover import Source, written
from trimtab.planning.plan import Planner
from trimtab.planning.runs import Run
from trimtab.reading.notes import BOTH, SUMMARY
from trimtab.strategies.base import Ask

PART_CHARS = 50_000
"""A longer run is asked about in parts of at most so many characters, each from a call on; only a
call that is longer by itself makes a longer one."""
LEAST_TOKENS = 40
"""Lines that take less are not asked about: no summary says more."""
SAID, KEPT = "[a model's summary:]", "[lines:]"


@dataclass(frozen=True)
class Part:
    """Some steps of a run: the lines that are shown, and the ask for better words, if any."""

    lines: str
    ask: Ask | None


@dataclass(frozen=True)
class NotedRun:
    """One run of folded steps, in parts."""

    run: Run
    parts: tuple[Part, ...]

    @property
    def asks(self) -> tuple[Ask, ...]:
        """What is asked, in order."""
        return tuple(part.ask for part in self.parts if part.ask is not None)

    def retell(self, board: Board, answers: Sequence[str]) -> None:
        """Show the answers; a part without one keeps its lines.  Nothing where none came."""
        said = iter(answers)
        rows = [(part.lines, next(said) if part.ask else "") for part in self.parts]
        if not any(answer for _, answer in rows):
            return
        if all(answer for _, answer in rows):
            board.retell(self.run, "\n".join(answer for _, answer in rows), SUMMARY)
            return
        told = [f"{SAID}\n{answer}" if answer else f"{KEPT}\n{lines}" for lines, answer in rows]
        board.retell(self.run, "\n".join(told), BOTH)


def noted_steps(plan: Planner) -> list[NotedRun]:
    """The runs that this batch folded into notes and that still stand so."""
    found = []
    for run in plan.board.runs:
        sources = plan.folded.get(run.first, ())
        if run.edit is None and run.lines and "\n".join(written(sources)) == run.lines:
            found.append(NotedRun(run, tuple(_parts(plan, run, sources))))
    return found


def _parts(plan: Planner, run: Run, sources: Sequence[Source]) -> Iterator[Part]:
    places = [place for group in plan.board.groups(run) for place in group.places]
    result = next((place for place in places if place.block.kind == "result"), places[0])
    question = plan.choice.config_for(result).question
    title = f"{run.last - run.first + 1} earlier steps of an agent's work"
    count = plan.choice.config.count
    for part in _divided(sources):
        lines = "\n".join(written(part))
        if not lines:
            continue
        tokens = count(lines) - 2 * count(SAID)
        whole = [replace(s, kept=set(range(len(s.lines.lines)))) for s in part]
        text = "\n".join(written(whole))
        worth = tokens >= LEAST_TOKENS
        yield Part(lines, Ask(title, "", text, question, tokens) if worth else None)


def _divided(sources: Sequence[Source]) -> Iterator[list[Source]]:
    """The sources in order, a call and its results together, in parts that are not too long."""
    part: list[Source] = []
    chars = 0
    for step in _steps(sources):
        size = sum(len(line.text) + 1 for source in step for line in source.lines.lines)
        if part and chars + size > PART_CHARS:
            yield part
            part, chars = [], 0
        part += step
        chars += size
    if part:
        yield part


def _steps(sources: Sequence[Source]) -> Iterator[list[Source]]:
    step: list[Source] = []
    for source in sources:
        if step and source.kind != "result":
            yield step
            step = []
        step.append(source)
    if step:
        yield step
