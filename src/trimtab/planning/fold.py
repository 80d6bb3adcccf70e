"""Folds the oldest steps into notes: a record of what was done, with the lines worth showing.

Before and after, with the smallest call of the run as the one that stays:

    model: call Read a.py        model: call Read a.py
    tool:  37 lines              tool:  [3 earlier steps, of which this record is left]
    model: call Edit a.py               1 Read a.py → 37 lines, edited in step 2
    tool:  ok                            def parse(text):
    model: call Bash pytest             2 Edit a.py → ok
    tool:  exit 1, 94 lines             +    return int(text)
                                        3 Bash pytest → exit 1, 94 lines

Notes of earlier cuts stay unchanged, so that the prompt cache keeps hitting, as long as there is
room for a fair part of what is folded.  Otherwise they are undone and lines are chosen again.  A
cut then reads the newest steps whole, of older steps only the lines kept in notes, and nothing of
steps far back; otherwise its cost would grow with the length of a session.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice, starmap

from trimtab.formats import rules
from trimtab.planning.dropped_ranges import DroppedRange, Fold
from trimtab.planning.edits import follows_placed_system, leaves_words
from trimtab.planning.line_selection import (
    CandidateLines,
    LineSelector,
    verbatim,
    written,
)
from trimtab.planning.lines import PIECE_CHARS, Lines, counts, identifier_weights, only
from trimtab.planning.planner import FOLD_LOSS, LEAST_GAIN, Planner
from trimtab.planning.record import Entry, StepRecord, add_sources, edits_of, listed_first
from trimtab.planning.refold import FAR_SHARE, ReopenedGroups, reopen
from trimtab.planning.runs import Anchor, Run, anchor_in, closing_of, kept_beside, kept_thoughts
from trimtab.reducers import Offer
from trimtab.reducers.asked import Asked, places
from trimtab.reducers.base import smaller
from trimtab.reducers.content.base import ASKED as TIER_ASKED
from trimtab.reducers.content.base import ERROR, FAILURE, SUMMARY
from trimtab.reducers.digest import worth_of_lines
from trimtab.transcript.model import Block, Place

FAIR_SHARE = 0.1
"""The share of the folded text that must have room, or all notes are chosen again (measured)."""
SMALL = 128
"""Blocks up to this many tokens are left alone if only the target, no limit, requires more room."""
PASSES, LEFT_TOKENS = 6, 32
"""A note's size is found by writing it: at most PASSES times, while LEFT_TOKENS of the room are
left."""
FILLED = 0.9
"""The share of its room that a note takes: what it leaves delays the next cut, which a fuller note
would bring forward (measured)."""
HEAD_SHARE = 0.15
"""The most of the room that lines which only name a step may take."""
FRAME_TOKENS = 30
"""Tokens of a marker."""
HEADER_CHARS, CHARS_PER_TOKEN = 200, 6
"""Of a note: its first line and the names of calls; at most so many characters a token of lines."""


def fold(planner: Planner, goal: int) -> None:
    """Fold every old group; keep as many of their lines as fit under ``goal`` tokens."""
    state, old = planner.state, ReopenedGroups()
    fresh = _foldable(planner)
    prose = _prose(planner, fresh)
    if not fresh and not prose:
        return
    room, size = _room(planner, goal, fresh, prose)
    stood = state.runs
    if stood and room < FAIR_SHARE * size:
        old = reopen(planner)
        fresh = [candidate_for(planner, run) for run in old.parted(_spans(planner))]
        prose = _prose(planner, fresh, again=True)
        room, size = _room(planner, goal, fresh, prose)
    for candidate in fresh:
        candidate.read(planner, old)
    read = planner.inputs.lines
    said = [_source(planner, place.block, read(place.block), place) for place in prose]
    selector = selector_of(planner, fresh, said)
    if old.past:
        selector.far = FAR_SHARE * room
    choose(planner, selector, int(FILLED * room), fresh, said)
    for candidate in fresh:
        _fold(planner, candidate)
    for candidate in reversed(fresh):
        _unfold_newest(planner, candidate, goal)
    for place, source in zip(prose, said, strict=True):
        _shorten(planner, place, source)
    put_back_rest(planner, stood)


def selector_of(
    planner: Planner, candidates: Sequence[Candidate], more: Sequence[CandidateLines] = ()
) -> LineSelector:
    """The choice of lines for all these runs together."""
    every = [*(source for one in candidates for source in one.sources), *more]
    seldom = _Seldom([source.lines.text for source in every if source.kind in ("result", "text")])
    for source in every:
        _weigh(planner, source, seldom)
    weights = identifier_weights(planner.transcript, planner.inputs.lines)
    places = [source.place for source in more if source.place is not None]
    return LineSelector(every, weights, *standing_identifiers(planner, candidates, places))


TOLD = 100.0
"""What a line is worth that tells what is asked for."""
OUTCOME, FAILED, WRONG = 24.0, 10.0, 4.0
"""What a line is worth for saying an outcome, what failed, an error; identifiers are worth 1 to 10
each."""
EDIT, EDIT_LINES = 100.0, 2
"""What each of an edit's first new lines is worth, so that it shows what it did."""
MIN_WEIGHED = 3
"""Texts of fewer lines are not searched for outcomes."""
MAX_TOLD = 12
"""So many lines of one text are told because somebody asks for them."""
MAX_TEXTS = 3
"""A name that more of the folded texts have does not say which of them is meant."""


class _Seldom:
    """Which names few of the folded texts have."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts, self._few = texts, dict[str, bool]()

    def of(self, asked: Asked) -> Asked:
        """The names that point at a text."""
        return Asked(tuple(filter(self._is_few, asked.names)), ())

    def _is_few(self, name: str) -> bool:
        known = self._few.get(name)
        if known is None:
            having = islice((text for text in self._texts if name in text), MAX_TEXTS + 1)
            known = self._few[name] = len(list(having)) <= MAX_TEXTS
        return known


def _weigh(planner: Planner, source: CandidateLines, seldom: _Seldom) -> None:
    """Set the worth of lines for what they say: what is asked for, then by the kind of content."""
    lines = source.lines
    if source.sign == "+" or _only_takes_out(source):
        changed = (index for index in range(len(lines)) if index not in source.plain)
        source.worth.update(dict.fromkeys(islice(changed, EDIT_LINES), EDIT))
    if source.far or len(lines) < MIN_WEIGHED or source.kind not in ("result", "text"):
        return
    asked = seldom.of(planner.inputs.asked(_arguments(planner, source)))
    hits: list[int] | None = None
    if source.kind == "text" or source.is_file:
        hits = sorted(places(lines.text, asked))
        if not hits:
            return
    begins, start = [0], -1
    while (start := lines.text.find("\n", start + 1)) >= 0:
        begins.append(start + 1)
    weights = worth_of_lines(lines.text, source.tool, asked)
    rows = [bisect_right(begins, at) - 1 for at in lines.starts]
    pieces = Counter(rows)
    hit = (row for row, weight in enumerate(weights) if weight >= TIER_ASKED)
    told = sorted(hit, key=lambda row: -weights[row])[:MAX_TOLD]
    for index, row in enumerate(rows):
        weight = weights[row]
        if weight < ERROR or (source.is_file and weight < TIER_ASKED):
            continue
        if weight >= TIER_ASKED and row not in told:
            continue
        worth = _WORTH[bisect_right(_TIERS, weight) - 1]
        if worth == TOLD and pieces[row] > 2:
            hits = sorted(places(lines.text, asked)) if hits is None else hits
            if not _near(lines, index, hits):
                continue  # of a long line only the pieces around the name
        source.worth[index] = worth


def _only_takes_out(source: CandidateLines) -> bool:
    """Whether these are the old lines of a call that wrote no new ones."""
    entry = source.head
    return (
        source.sign == "-"
        and isinstance(entry, Entry)
        and not any(one.sign == "+" for one in entry.sources)
    )


def _near(lines: Lines, index: int, hits: Sequence[int]) -> bool:
    """Whether a mention is in this piece of a line or the next one."""
    low, high = lines.starts[index] - PIECE_CHARS, lines.ends[index] + PIECE_CHARS
    at = bisect_left(hits, low)
    return at < len(hits) and hits[at] <= high


def _arguments(planner: Planner, source: CandidateLines) -> str:
    """The arguments of the call that a source answers."""
    if not isinstance(source.head, Entry):
        return ""
    return planner.transcript.at(*source.head.call.inputs[0]).block.text


_TIERS = [ERROR, FAILURE, SUMMARY, TIER_ASKED]
_WORTH = [WRONG, FAILED, OUTCOME, TOLD]


def put_back_rest(planner: Planner, stood: Sequence[DroppedRange]) -> None:
    """Restore notes of the journal whose groups are in no new run: they would apply again on the
    next turn."""
    dropped = planner.state.dropped
    for run in stood:
        if run.edit and not any(number in dropped for number in range(run.first, run.last + 1)):
            planner.state.put_back(run)


def _fold(planner: Planner, candidate: Candidate) -> None:
    """Show the chosen lines of one run, or a marker if there are none."""
    state, run = planner.state, candidate.run
    made = candidate.made
    most = state.drop_saving(run.first, run.last) if candidate.droppable else 0
    saved = state.fold_saving(run, made) if made.lines or made.words else 0
    if most and not 0 < saved <= most:  # nothing may be smaller than what the minimum is made of
        state.drop(run.first, run.last)
    elif saved > 0:
        state.fold(run, made)
        planner.folded[run.first] = candidate
    else:
        return
    planner.used("fold")


USED = 0.95
"""A cut that ends below this share of its goal has room for more."""


def _unfold_newest(planner: Planner, candidate: Candidate, goal: int) -> None:
    """If room is left, keep the newest steps of a run whole after all."""
    state, run = planner.state, candidate.run
    made = next((one for one in state.runs if one.first == run.first and one.edit is None), None)
    if state.tokens >= USED * goal or made is None or made.last != run.last:
        return
    state.reopen(made)
    planner.folded.pop(run.first, None)
    rows = candidate.tokens_by_group(planner)
    surplus = state.tokens - goal + (made.tokens - sum(rows.values()))
    for end in range(run.first, run.last + 2):
        if surplus <= 0 and (end > run.first or state.tokens <= goal):
            break
        if end <= run.last:
            surplus -= state.run_cost(end, end) - rows.get(end, 0)
    for last in range(end - 1, min(end + 3, run.last)):
        if last < run.first:
            return  # all of it fits
        shorter = candidate.until(planner, last)
        _fold(planner, shorter)
        if state.tokens <= goal:
            return
        if any(one.first == run.first for one in state.runs):
            state.reopen(next(one for one in state.runs if one.first == run.first))
            planner.folded.pop(run.first, None)
    state.put_back(made)
    planner.folded[run.first] = candidate


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
    words: Sequence[CandidateLines] = ()
    """The model's and the user's texts."""

    @property
    def sources(self) -> list[CandidateLines]:
        """Everything that lines are chosen from."""
        return [*(source for entry in self.entries for source in entry.sources), *self.words]

    @property
    def made(self) -> Fold:
        """The fold with the lines that are chosen now."""
        texts = written(self.words)
        lines = StepRecord(self.entries).text()
        return replace(self.fold, lines=lines, words=texts.words, asked=texts.asked)

    def read(self, planner: Planner, old: ReopenedGroups) -> None:
        """Read the lines of the run; of groups in ``old`` only those that their notes kept."""
        self.entries = list(_entries(planner, self)) if self.quotes_tools else ()
        readable = set(old.read(self.run))

        def make(entry: Entry, kind: str, block: Block, lines: Lines) -> CandidateLines:
            left = old.left.get(entry.group)
            source = _source(planner, block, lines if left is None else _of(left, lines))
            source.kind, source.head, source.group = kind, entry, entry.group
            source.tool, source.far = entry.call.tool, entry.group < old.past
            source.is_file = entry.call.arguments.action == "read"
            return source

        def blocks(entry: Entry) -> tuple[Block | None, Sequence[Block]]:
            return _blocks(planner, self, entry)

        add_sources(
            self.entries, blocks, make, planner.inputs.lines, lambda one: one.group in readable
        )
        self.words = list(_words(planner, self, old)) if self.quotes_model else ()

    def until(self, planner: Planner, last: int) -> Candidate:
        """The same with the groups up to ``last`` alone, and the lines chosen of them."""
        shorter = candidate_for(planner, self.run._replace(last=last))
        if shorter.quotes_tools:
            steps = last - self.run.first + 1
            shorter.entries = [one.within(steps) for one in self.entries if one.group <= last]
        if shorter.quotes_model:
            shorter.words = [source for source in self.words if source.group <= last]
        return shorter

    def tokens_by_group(self, planner: Planner) -> dict[int, int]:
        """Group → about the tokens of what is shown of it."""
        count, tokens = planner.usage.counter, dict[int, int]()
        for entry in self.entries:
            if entry.is_shown:
                own = count("\n".join(entry.rows()))
                tokens[entry.group] = tokens.get(entry.group, 0) + own
        for source in self.words:
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
    stands = anchor is not None or closing is not None or run.opening is not None
    frame = state.folded(run, made).tokens if stands else FRAME_TOKENS
    droppable = all(group.has_calls for group in groups)
    return Candidate(run, made, anchor is not None, speaks, droppable, frame)


ANCHOR_TOKENS, TINY_TOKENS = 80, 24
"""A call above TINY_TOKENS is kept only if there is no smaller one; a call above ANCHOR_TOKENS is
shown with shorter arguments."""


def best_anchor(planner: Planner, run: Run) -> tuple[Anchor | None, str]:
    """(the smallest call of a run that may stay, of tiny ones the oldest; its shortened arguments,
    or "")."""
    transcript, usage = planner.transcript, planner.usage
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
        tokens = usage.block(transcript, anchor.call)
        tokens += sum(usage.block(transcript, place) for place in beside)
        thoughts = kept_thoughts(transcript, anchor)
        tokens += sum(usage.message(transcript.messages[n]) for n in thoughts)
        if best is None or tokens < least:
            best, least = anchor, tokens
        if tokens <= TINY_TOKENS:
            break
    if best is None or least <= ANCHOR_TOKENS or best.call.block.payload_bytes:
        return best, ""  # a signature is over the arguments
    return best, planner.shortest_arguments(best.call, run)


def choose(
    planner: Planner,
    selector: LineSelector,
    room: int,
    candidates: Sequence[Candidate],
    more: Sequence[CandidateLines] = (),
) -> None:
    """Name the newest steps, then keep the best lines of all runs, ``room`` tokens in all."""
    heads = HEAD_SHARE * room
    for entry in listed_first([entry for one in candidates for entry in one.entries]):
        if (heads := heads - entry.head_tokens) < 0:
            break
        entry.listed = True
    left = room - _used(planner, candidates, more)
    take = selector.take
    for _ in range(PASSES):
        before = left
        take(left)
        left = room - _used(planner, candidates, more)
        if left < LEFT_TOKENS:
            return
        if left > 0.9 * before:
            if selector.rest:
                return
            take = selector.take_rest


def _used(planner: Planner, candidates: Sequence[Candidate], more: Sequence[CandidateLines]) -> int:
    """Tokens of what is shown now."""
    count, used = planner.usage.counter, 0
    for candidate in candidates:
        made = candidate.made
        used += sum(count(text) for text in (made.lines, made.words, made.asked) if text)
    return used + sum(count("\n".join(verbatim(source))) for source in more)


def _entries(planner: Planner, candidate: Candidate) -> Iterator[Entry]:
    """An entry for each call of a run."""
    transcript, first = planner.transcript, candidate.run.first
    for number in range(first, candidate.run.last + 1):
        for call in planner.inputs.calls(number):
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
                source = _source(planner, place.block, lines, place)
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


def _room(
    planner: Planner, goal: int, fresh: Sequence[Candidate], prose: Sequence[Place]
) -> tuple[int, int]:
    """(tokens available for lines, tokens of the blocks they are chosen from)."""
    state = planner.state
    size = sum(state.cost_of(candidate.run) for candidate in fresh)
    size += sum(state.cost(place) for place in prose)
    frames = sum(candidate.frame for candidate in fresh) + FRAME_TOKENS * len(prose)
    room = goal - (state.tokens - size) - frames
    if (chars := planner.bounds.result_chars) is not None:  # a note is a tool result, too
        room = min(room, max(chars - HEADER_CHARS, 0) // CHARS_PER_TOKEN)
    return room, size


def _prose(planner: Planner, fresh: Sequence[Candidate], *, again: bool = False) -> list[Place]:
    """The agent's texts in old turns without calls that are in no run of ``fresh``; ``again``: also
    those shortened before."""
    state, transcript, eligibility = planner.state, planner.transcript, planner.eligibility
    folded = {n for one in fresh for n in range(one.run.first, one.run.last + 1)}
    apart = (number for number in transcript.table.without_calls if number not in folded)
    places = []
    for group in (transcript.groups[number] for number in apart):
        if group.last >= eligibility.raw_from or not group.closed:
            continue
        for place in group.places:
            block, key = place.block, (place.message, place.index)
            if block.kind != "text" or block.sealed or eligibility.pinned(place):
                continue
            if state.is_dropped(place):
                continue  # in a fold that crosses the user's words
            if state.cost(place) > SMALL or (again and key in state.shown):
                places.append(place)
    return places


def _shorten(planner: Planner, place: Place, source: CandidateLines) -> None:
    """Show the kept lines of one text, in place."""
    rows, state = verbatim(source), planner.state
    left = len(source.lines) - len(source.kept)
    if left < 1:
        return
    text = "\n".join([*rows, f"[{left:,} more line{'s' * (left > 1)} left out to fit]"])
    offer = Offer("replace", text, FOLD_LOSS, "fold", "its lines that may be needed again")
    least = min(planner.offers(place), key=lambda o: state.price(place, o), default=None)
    if least is None:
        return
    if not rows or state.price(place, offer) < state.price(place, least):
        offer = least  # nothing may be smaller than what the minimum is made of
    gain = state.cost(place) - state.price(place, offer)
    if gain >= LEAST_GAIN and smaller(offer.text, place.block.text, planner.usage.counter):
        planner.show(place, offer)


def _foldable(planner: Planner) -> list[Candidate]:
    """The candidates among groups that are not folded yet."""
    return [candidate_for(planner, run) for run in _spans(planner)]


def _spans(planner: Planner) -> list[Run]:
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
    words = groups[number]
    free = not any(map(planner.eligibility.pinned, words.places)) and not words.has_calls
    ends = words.closed and planner.transcript.adjoin(groups[run.last], words)
    return run._replace(last=number) if free and ends else run


def _stale(planner: Planner, place: Place) -> bool:
    """Whether a block was repeated or superseded later."""
    facts = planner.inputs.facts(place)
    return facts.duplicate in ("call", "text") or bool(facts.superseded and not facts.lacks)


def _source(
    planner: Planner, block: Block, lines: Lines, place: Place | None = None
) -> CandidateLines:
    tokens = planner.usage.counter(block.text)
    rate = tokens / max(lines.chars or len(block.text), 1)
    return CandidateLines(block.kind, lines, min(max(rate, 0.15), 1.5), place=place)


def standing_identifiers(
    planner: Planner, fresh: Sequence[Candidate], prose: Sequence[Place] = ()
) -> tuple[set[str], set[str]]:
    """Identifiers that occur among words in what is sent anyway: (in words of tools, the user and
    the system, in the model's own)."""
    read, transcript, state = planner.inputs.lines, planner.transcript, planner.state
    covered: set[str] = set()
    said: set[str] = set()
    chosen = {(place.message, place.index) for place in prose}
    for number in _kept_messages(planner, fresh):
        by_model = number >= 0 and transcript.messages[number].role == "assistant"
        for place in transcript.places_in(number):
            speaks = counts(place.block) or place.block.kind == "system"
            if speaks and (number, place.index) not in chosen:
                own = said if by_model and place.block.kind != "result" else covered
                own |= read(place.block).grounded()
    for candidate in fresh:
        if (anchor := candidate.fold.anchor) is not None:
            said |= read(anchor.call.block).grounded()
    for run in state.runs:
        if run.fold is not None:
            told = "\n".join(filter(None, (run.fold.lines, run.fold.asked)))
            for names, text in ((covered, told), (said, run.fold.words)):
                names |= read(Block("text", (), (), text or "")).grounded()
    return covered, said


def _kept_messages(planner: Planner, fresh: Sequence[Candidate]) -> Iterator[int]:
    """The numbers of all messages outside dropped and ``fresh`` runs, the head (−1) included."""
    groups = planner.transcript.groups
    every = [*(run.run for run in planner.state.runs), *(candidate.run for candidate in fresh)]
    spans = [
        (groups[first].first if opening is None else opening, groups[last].last)
        for first, last, opening in every
    ]
    number = -1
    for first, last in sorted(spans):
        yield from range(number, first)
        number = last + 1
    yield from range(number, len(planner.transcript.messages))
