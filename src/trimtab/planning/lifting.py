"""Which notes are taken back when lines are chosen anew, and what was left of old steps.

Knows windows of history, runs and their notes.  Does not know what a line is worth.  A batch reads
the newest steps whole; of what lies before them, the lines that notes left; of what lies far back,
nothing: else it would cost more the longer a session lasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from trimtab.planning.lines import Lines
from trimtab.planning.plan import Planner
from trimtab.planning.remains import Key, only
from trimtab.reading.notes import LINES

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
class Lifted:
    """Groups whose notes were taken back."""

    far: Sequence[range] = ()
    """Those of them that are not read whole."""
    left: Mapping[int, Mapping[Key, Lines]] = field(default_factory=dict)
    """Of these, what their notes left: group → block → lines."""
    past: int = 0
    """Groups before this one get a note of their own; 0: none do."""

    def read(self, span: tuple[int, int]) -> Iterator[int]:
        """The groups of a row of which there is anything to read."""
        number, last = span
        for far in self.far:
            begin, stop = max(far.start, number), min(far.stop, last + 1)
            if begin < stop:  # a row may end within one
                yield from range(number, begin)
                yield from sorted(index for index in self.left if begin <= index < stop)
                number = stop
        yield from range(number, last + 1)

    def parted(self, spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Rows of groups as they get a note each."""
        for first, last in spans:
            if first < self.past <= last:
                yield from ((first, self.past - 1), (self.past, last))
            else:
                yield first, last


def lift(planner: Planner) -> Lifted:
    """Take back what was dropped or folded and may be folded anew.

    What a model said of steps is none of their lines: these are read whole, or nothing would be
    left of them.
    """
    near, past, board = _newest(planner, HORIZON), _newest(planner, PAST), planner.board
    due = _due(planner, past)
    far, notes = list[range](), list[str]()
    for run in board.runs:
        stays = run.last < past and not due
        if not stays and list(planner.scope.spans(run.first, run.last + 1)) == [run.span]:
            board.lift(run)
            if run.left == LINES and run.first < near:
                far.append(range(run.first, min(run.last + 1, near)))
                notes.append(run.lines)
    return Lifted(far, _left(planner, near, far, notes) if far else {}, past if due else 0)


def _due(planner: Planner, past: int) -> bool:
    """Whether what lies before this group gets a new note: there is much that has none of its
    own, or its notes take too much."""
    runs, scope = planner.board.runs, planner.scope
    begin = next((run.first for run in runs if run.last >= past), past)
    if planner.board.size(begin, past) >= REACH * scope.capacity:
        return True
    return sum(run.tokens for run in runs if run.last < past) > FAR_SHARE * scope.room


def _left(
    planner: Planner, near: int, far: Sequence[range], notes: Sequence[str]
) -> dict[int, dict[Key, Lines]]:
    """The lines of these groups, all before ``near``, that stand in these notes."""
    transcript, read = planner.transcript, planner.choice.lines
    found: dict[int, dict[Key, Lines]] = {}
    end = transcript.groups[near - 1].last + 1
    for key, rows in planner.choice.remains(transcript, end).left(notes).items():
        number = transcript.group_at.get(key, -1)
        if any(number in numbers for numbers in far):
            lines = read(transcript.at(*key).block)
            found.setdefault(number, {})[key] = only(lines, rows)
    return found


def _newest(planner: Planner, windows: float) -> int:
    """The first group of the newest so many windows of history."""
    groups, usage, messages = planner.transcript.groups, planner.usage, planner.transcript.messages
    tokens, number = windows * planner.bounds.capacity, len(groups)
    while number and tokens > 0:
        number -= 1
        group = groups[number]
        tokens -= sum(map(usage.message, messages[group.first : group.last + 1]))
    return number
