"""Undoes notes of earlier batches, so that their groups are folded again.

Decides which notes, and which of their groups are read whole: the newest.  Of older groups only the
lines kept in their notes are read.  Groups more than ``PAST`` windows back get a note of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from trimtab.planning.dropped_ranges import DroppedRange
from trimtab.planning.planner import Planner
from trimtab.planning.record import quoted_rows
from trimtab.planning.runs import Run

HORIZON = 2
"""Windows of history whose lines are all candidates (on 30 recordings as much is kept as with the
whole history)."""
PAST = 3
"""History more than so many windows back has a note of its own, unchanged while others are redone.
With 2 fewer of the lines that are needed stay: 36.7 for 38.4 of 100, on 60 recordings whose windows
were small for them; with 3 or 4 as many as without such a note (docs/benchmark.md)."""
REACH = 2
"""Windows of history that may collect after that note before they are folded into a new one."""
FAR_SHARE = 0.5
"""Share of the room for lines that a new note may use; and the share of all room above which the
old note is redone."""


@dataclass
class ReopenedGroups:
    """Groups whose notes were undone."""

    far: Sequence[range] = ()
    """Ranges of groups that are not read whole."""
    left: Mapping[int, Set[str]] = field(default_factory=dict)
    """The rows that their notes kept: group → rows."""
    past: int = 0
    """Groups before this one get a note of their own; 0: none do."""

    def read(self, run: Run) -> Iterator[int]:
        """The groups of a run that have lines to read."""
        number, last, _ = run
        for far in self.far:
            begin, stop = max(far.start, number), min(far.stop, last + 1)
            if begin < stop:  # a row may end within one
                yield from range(number, begin)
                yield from sorted(index for index in self.left if begin <= index < stop)
                number = stop
        yield from range(number, last + 1)

    def parted(self, runs: Iterable[Run]) -> Iterator[Run]:
        """``runs`` split at ``past``, so that each part gets its own note."""
        for run in runs:
            if run.first < self.past <= run.last and run.opening is None:
                yield from (run._replace(last=self.past - 1), run._replace(first=self.past))
            else:
                yield run


def reopen(planner: Planner) -> ReopenedGroups:
    """Undo drops and folds whose groups may be folded again.

    A model's summary contains no lines of the steps, so summarized steps are read whole; otherwise
    nothing of them would be kept.
    """
    near, past, state = _newest(planner, HORIZON), _newest(planner, PAST), planner.state
    due = _due(planner, past)
    far, left = list[range](), dict[int, set[str]]()
    for run in state.runs:
        stays = run.last < past and not due
        if not stays and _may_reopen(planner, run):
            state.reopen(run)
            if run.first < near and (run.fold is None or run.fold.quotes):
                far.append(range(run.first, min(run.last + 1, near)))
                left |= _left(run, near)
    return ReopenedGroups(far, left, past if due else 0)


def _may_reopen(planner: Planner, run: DroppedRange) -> bool:
    """Whether a run may still be folded as a whole."""
    groups, last = planner.transcript.groups, run.last
    if run.opening is not None:
        return False
    while last > run.first and not groups[last].has_calls:
        last -= 1  # the model's words behind it
    return list(planner.eligibility.spans(run.first, last + 1)) == [(run.first, last)]


def _due(planner: Planner, past: int) -> bool:
    """Whether the groups before ``past`` get a new note: many of them are not in their own note, or
    its notes take too much."""
    runs, eligibility = planner.state.runs, planner.eligibility
    begin = next((run.first for run in runs if run.last >= past), past)
    if planner.state.size(begin, past) >= REACH * eligibility.capacity:
        return True
    return sum(run.tokens for run in runs if run.last < past) > FAR_SHARE * eligibility.room


def _left(run: DroppedRange, near: int) -> dict[int, set[str]]:
    """Group → the rows that the note of a run kept of it, for groups before ``near``."""
    if run.fold is None:
        return {}
    words = set(filter(None, run.fold.words.split("\n")))
    left = {run.first + step - 1: rows for step, rows in quoted_rows(run.fold.lines).items()}
    numbers = range(run.first, min(run.last + 1, near)) if words else sorted(left)
    return {number: left.get(number, set()) | words for number in numbers if number < near}


def _newest(planner: Planner, windows: float) -> int:
    """The first group of the newest ``windows`` windows of history."""
    groups, usage, messages = planner.transcript.groups, planner.usage, planner.transcript.messages
    tokens, number = windows * planner.bounds.capacity, len(groups)
    while number and tokens > 0:
        number -= 1
        group = groups[number]
        tokens -= sum(map(usage.message, messages[group.first : group.last + 1]))
    return number
