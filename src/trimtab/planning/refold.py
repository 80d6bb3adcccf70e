"""Notes of earlier batches taken back, so that what they stood for is folded anew.

Says which notes, and which of their groups are read whole: the newest are; of older ones only the
lines that their notes left are read.  What lies ``PAST`` windows back gets a note of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.planning.dropped_ranges import DroppedRange, Fold
from trimtab.planning.lines import Key, LineIndex, Lines, Speaker, only
from trimtab.planning.planner import Planner
from trimtab.planning.runs import Run

HORIZON = 2
"""Windows of history whose lines are all chosen from (on 30 recordings as much stays as with all
of them)."""
PAST = 3
"""What lies so many windows back has a note of its own, which stands while others are chosen anew.
With 2 fewer of the lines that are needed stay: 36.7 for 38.4 of 100, on 60 recordings whose windows
were small for them; with 3 or 4 as many as without such a note (docs/benchmark.md)."""
REACH = 2
"""Windows of history that come together behind that note before it is chosen anew, with them."""
FAR_SHARE = 0.5
"""Of the room for lines so much may go to it then; and of all room, before."""


@dataclass
class ReopenedGroups:
    """Groups whose notes were taken back."""

    far: Sequence[range] = ()
    """Those of them that are not read whole."""
    left: Mapping[int, Mapping[Key, Lines]] = field(default_factory=dict)
    """Of these, what their notes left: group → block → lines."""
    past: int = 0
    """Groups before this one get a note of their own; 0: none do."""

    def read(self, run: Run) -> Iterator[int]:
        """The groups of a run of which there is anything to read."""
        number, last, _ = run
        for far in self.far:
            begin, stop = max(far.start, number), min(far.stop, last + 1)
            if begin < stop:  # a row may end within one
                yield from range(number, begin)
                yield from sorted(index for index in self.left if begin <= index < stop)
                number = stop
        yield from range(number, last + 1)

    def parted(self, runs: Iterable[Run]) -> Iterator[Run]:
        """Runs as they get a note each."""
        for run in runs:
            if run.first < self.past <= run.last and run.opening is None:
                yield from (run._replace(last=self.past - 1), run._replace(first=self.past))
            else:
                yield run


def reopen(planner: Planner) -> ReopenedGroups:
    """Take back what was dropped or folded and may be folded anew.

    What a model said of steps is none of their lines: these are read whole, or nothing would be
    left of them.
    """
    near, past, state = _newest(planner, HORIZON), _newest(planner, PAST), planner.state
    due = _due(planner, past)
    far, notes = list[range](), list[Fold]()
    for run in state.runs:
        stays = run.last < past and not due
        if not stays and _may_reopen(planner, run):
            state.reopen(run)
            if run.first < near and (run.fold is None or run.fold.quotes):
                far.append(range(run.first, min(run.last + 1, near)))
                notes += [run.fold] if run.fold else []
    return ReopenedGroups(far, _left(planner, near, far, notes) if far else {}, past if due else 0)


def _may_reopen(planner: Planner, run: DroppedRange) -> bool:
    """Whether all of a run may still go."""
    groups, last = planner.transcript.groups, run.last
    if run.opening is not None:
        return False
    while last > run.first and not groups[last].has_calls:
        last -= 1  # the model's words behind it
    return list(planner.eligibility.spans(run.first, last + 1)) == [(run.first, last)]


def _due(planner: Planner, past: int) -> bool:
    """Whether what lies before this group gets a new note: there is much that has none of its
    own, or its notes take too much."""
    runs, eligibility = planner.state.runs, planner.eligibility
    begin = next((run.first for run in runs if run.last >= past), past)
    if planner.state.size(begin, past) >= REACH * eligibility.capacity:
        return True
    return sum(run.tokens for run in runs if run.last < past) > FAR_SHARE * eligibility.room


def _left(
    planner: Planner, near: int, far: Sequence[range], notes: Sequence[Fold]
) -> dict[int, dict[Key, Lines]]:
    """The lines of these groups, all before ``near``, that stand in these notes."""
    transcript, read = planner.transcript, planner.inputs.lines
    lines_left: dict[int, dict[Key, Lines]] = {}
    end = transcript.groups[near - 1].last + 1
    texts: tuple[tuple[Speaker, list[str]], ...] = (
        ("tool", [note.lines for note in notes]),
        ("model", [note.words for note in notes]),
        ("user", [note.asked for note in notes]),
    )
    for speaker, said in texts:
        for key, rows in LineIndex(transcript, end, read, speaker).left(said).items():
            number = transcript.group_number(*key)
            if number is not None and any(number in numbers for numbers in far):
                lines = read(transcript.at(*key).block)
                lines_left.setdefault(number, {})[key] = only(lines, rows)
    return lines_left


def _newest(planner: Planner, windows: float) -> int:
    """The first group of the newest so many windows of history."""
    groups, usage, messages = planner.transcript.groups, planner.usage, planner.transcript.messages
    tokens, number = windows * planner.bounds.capacity, len(groups)
    while number and tokens > 0:
        number -= 1
        group = groups[number]
        tokens -= sum(map(usage.message, messages[group.first : group.last + 1]))
    return number
