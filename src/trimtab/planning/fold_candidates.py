"""The runs of steps that a fold may replace by a note, and what may be shown of each.

Notes of earlier cuts are opened again where there is too little room beside them.  Then only the
newest of their groups are read whole; of older groups the lines that their notes kept, and groups
more than ``PAST`` windows back get a note of their own.  So the cost of a cut does not grow with
the length of a session.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import starmap

from trimtab.formats import rules
from trimtab.planning.dropped_ranges import DroppedRange, Fold
from trimtab.planning.edits import follows_placed_system, leaves_words
from trimtab.planning.line_selection import (
    CandidateLines,
    verbatim,
    written,
)
from trimtab.planning.lines import PIECE_CHARS, Lines, only
from trimtab.planning.planner import Planner
from trimtab.planning.record import (
    Entry,
    StepRecord,
    add_sources,
    edits_of,
    quoted_rows,
)
from trimtab.planning.runs import Anchor, Run, anchor_in, closing_of, kept_beside, kept_thoughts
from trimtab.transcript.model import Block, Place

FRAME_TOKENS = 30
"""Tokens of a marker."""


@dataclass(eq=False)
class Candidate:
    """A run that may be folded: the fold with the call that would stay, and which speakers can be
    quoted in it.  ``read`` fills in what may be shown."""

    run: Run
    fold: Fold
    quotes_tools: bool
    quotes_model: bool
    droppable: bool
    """Whether a marker alone may replace it."""
    frame: int
    """Tokens of the fold without any line."""
    entries: Sequence[Entry] = ()
    prose: Sequence[CandidateLines] = ()
    """The model's and the user's texts."""

    @property
    def sources(self) -> list[CandidateLines]:
        """Everything that lines are chosen from."""
        return [*(source for entry in self.entries for source in entry.sources), *self.prose]

    @property
    def made(self) -> Fold:
        """The fold with the lines that are chosen now."""
        texts = written(self.prose)
        lines = StepRecord(self.entries).text()
        return replace(self.fold, lines=lines, **texts._asdict())

    def read(self, planner: Planner, old: ReopenedGroups) -> None:
        """Read the lines of the run; of groups in ``old`` only those that their notes kept."""
        self.entries = list(_entries(planner, self)) if self.quotes_tools else ()
        readable = set(old.read(self.run))

        def make(entry: Entry, kind: str, block: Block, lines: Lines) -> CandidateLines:
            left = old.left.get(entry.group)
            source = source_of(planner, block, lines if left is None else _of(left, lines))
            source.kind, source.head, source.group = kind, entry, entry.group
            source.tool, source.far = entry.call.tool, entry.group < old.past
            source.is_file = entry.call.arguments.action == "read"
            return source

        def blocks(entry: Entry) -> tuple[Block | None, Sequence[Block]]:
            return _blocks(planner, self, entry)

        add_sources(
            self.entries, blocks, make, planner.inputs.lines, lambda one: one.group in readable
        )
        self.prose = list(_words(planner, self, old)) if self.quotes_model else ()

    def until(self, planner: Planner, last: int) -> Candidate:
        """The same with the groups up to ``last`` alone, and the lines chosen of them."""
        shorter = candidate_for(planner, self.run._replace(last=last))
        if shorter.quotes_tools:
            steps = last - self.run.first + 1
            shorter.entries = [one.within(steps) for one in self.entries if one.group <= last]
        if shorter.quotes_model:
            shorter.prose = [source for source in self.prose if source.group <= last]
        return shorter

    def tokens_by_group(self, planner: Planner) -> dict[int, int]:
        """Group → about the tokens of what is shown of it."""
        count, tokens = planner.sizes.counter, dict[int, int]()
        for entry in self.entries:
            if entry.is_shown:
                own = count("\n".join(entry.rows()))
                tokens[entry.group] = tokens.get(entry.group, 0) + own
        for source in self.prose:
            own = count("\n".join(verbatim(source)))
            tokens[source.group] = tokens.get(source.group, 0) + own
        return tokens


def candidate_for(planner: Planner, run: Run) -> Candidate:
    """The candidate for folding ``run``, before its lines are chosen."""
    transcript, state = planner.transcript, planner.state
    groups = transcript.groups[run.first : run.last + 1]
    anchor, arguments = best_anchor(planner, run)
    made = Fold(anchor, arguments=arguments)
    closing = closing_of(transcript, run, anchor is not None)
    beside = anchor is not None and rules.takes_words_beside_calls(transcript)
    speaks = closing is not None or beside
    keeps_message = anchor is not None or closing is not None or run.opening is not None
    frame = state.folded(run, made).tokens if keeps_message else FRAME_TOKENS
    droppable = all(group.has_calls for group in groups)
    return Candidate(run, made, anchor is not None, speaks, droppable, frame)


ANCHOR_TOKENS, TINY_TOKENS = 80, 24
"""A call above TINY_TOKENS is kept only if there is no smaller one; a call above ANCHOR_TOKENS is
shown with shorter arguments."""


def best_anchor(planner: Planner, run: Run) -> tuple[Anchor | None, str]:
    """(the smallest call of a run that may stay, of tiny ones the oldest; its shortened arguments,
    or "")."""
    transcript, sizes = planner.transcript, planner.sizes
    best, least = None, 0
    groups = transcript.groups[run.first : run.last + 1]
    begin = groups[0].first
    early = run.opening is None and follows_placed_system(transcript, begin)
    for group in groups:
        if early and leaves_words(transcript, begin, group.first):
            break  # the user's words would meet a system message that has to precede the model
        anchor = anchor_in(transcript, group)
        if anchor is None:
            continue
        number = anchor.call.message
        beside = (transcript.at(number, index) for index in kept_beside(transcript, anchor))
        tokens = sizes.block(transcript, anchor.call)
        tokens += sum(sizes.block(transcript, place) for place in beside)
        thoughts = kept_thoughts(transcript, anchor)
        tokens += sum(sizes.message(transcript.messages[n]) for n in thoughts)
        if best is None or tokens < least:
            best, least = anchor, tokens
        if tokens <= TINY_TOKENS:
            break
    if best is None or least <= ANCHOR_TOKENS or best.call.block.payload_bytes:
        return best, ""  # a signature is over the arguments
    return best, planner.shortest_arguments(best.call, run)


def _entries(planner: Planner, candidate: Candidate) -> Iterator[Entry]:
    """An entry for each call of a run."""
    transcript, first = planner.transcript, candidate.run.first
    for number in range(first, candidate.run.last + 1):
        for call in planner.inputs.redundancy.calls.by_turn[number]:
            block = transcript.at(*call.inputs[0]).block
            header = planner.inputs.lines(block).header
            yield Entry(number - first + 1, number, call, header, edits_of(call, block))


def _blocks(
    planner: Planner, candidate: Candidate, entry: Entry
) -> tuple[Block | None, Sequence[Block]]:
    """(the call's block, if it is not sent anyway; the blocks of its results that are not repeated
    or superseded later)."""
    transcript, anchor = planner.transcript, candidate.fold.anchor
    call = transcript.at(*entry.call.inputs[0])
    stays = anchor is not None and call == anchor.call and not candidate.fold.arguments
    places = [transcript.at(*key) for key in entry.call.outputs]
    results = [
        place.block
        for place in places
        if place.block.kind == "result" and place.block.text and not _stale(planner, place)
    ]
    return None if stays else call.block, results


def _words(planner: Planner, candidate: Candidate, old: ReopenedGroups) -> Iterator[CandidateLines]:
    """The model's texts in a run."""
    for number in old.read(candidate.run):
        left = old.left.get(number)
        for place in planner.transcript.groups[number].places:
            if place.block.kind == "text" and place.block.text:
                lines = planner.inputs.lines(place.block)
                lines = lines if left is None else _of(left, lines)
                source = source_of(planner, place.block, lines, place)
                source.group, source.far = number, number < old.past
                yield source


def _of(left: Set[str], lines: Lines) -> Lines:
    """The lines that a note kept; a row of it may be several pieces of a long line."""
    long = [row for row in left if len(row) > PIECE_CHARS]
    kept = [
        n
        for n, line in enumerate(lines)
        if line in left
        or (n in lines.joined and any(line in row for row in long))
        or (n + 1 in lines.joined and any(line in row for row in long))
    ]
    return only(lines, kept)


def foldable_runs(planner: Planner) -> list[Run]:
    """The runs of foldable groups, each with the model's words right behind it if these have no
    other place."""
    groups, eligibility, runs = planner.transcript.groups, planner.eligibility, list[Run]()
    number, end = 0, bisect_left(groups, eligibility.raw_from, key=lambda group: group.last)
    for run in planner.state.runs:
        runs += starmap(Run, eligibility.spans(number, min(run.first, end)))
        number = run.last + 1
    runs += starmap(Run, eligibility.spans(number, end))
    if rules.takes_words_beside_calls(planner.transcript):
        return runs
    return [_with_closing(planner, run, end) for run in runs]


def _with_closing(planner: Planner, run: Run, end: int) -> Run:
    """The run and the model's words right behind it."""
    number, groups = run.last + 1, planner.transcript.groups
    if number >= min(end, len(groups) - 1) or number in planner.state.dropped:
        return run
    group = groups[number]
    free = not any(map(planner.eligibility.pinned, group.places)) and not group.has_calls
    ends = group.closed and planner.transcript.adjoin(groups[run.last], group)
    return run._replace(last=number) if free and ends else run


def _stale(planner: Planner, place: Place) -> bool:
    """Whether a block was repeated or superseded later."""
    facts = planner.inputs.redundancy.facts(place)
    return facts.duplicate in ("call", "text") or bool(facts.superseded and not facts.lacks)


def source_of(
    planner: Planner, block: Block, lines: Lines, place: Place | None = None
) -> CandidateLines:
    """These lines of a block, with what a character of it costs."""
    tokens = planner.sizes.counter(block.text)
    rate = tokens / max(lines.chars or len(block.text), 1)
    return CandidateLines(block.kind, lines, min(max(rate, 0.15), 1.5), place=place)


# --- notes of earlier cuts, opened again ---

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
    quoted = set(filter(None, run.fold.model_text.split("\n")))
    left = {run.first + step - 1: rows for step, rows in quoted_rows(run.fold.lines).items()}
    numbers = range(run.first, min(run.last + 1, near)) if quoted else sorted(left)
    return {number: left.get(number, set()) | quoted for number in numbers if number < near}


def _newest(planner: Planner, windows: float) -> int:
    """The first group of the newest ``windows`` windows of history."""
    groups, sizes, messages = planner.transcript.groups, planner.sizes, planner.transcript.messages
    tokens, number = windows * planner.bounds.capacity, len(groups)
    while number and tokens > 0:
        number -= 1
        group = groups[number]
        tokens -= sum(map(sizes.message, messages[group.first : group.last + 1]))
    return number
