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
from collections.abc import Iterator, Sequence
from itertools import islice

from trimtab.planning.dropped_ranges import DroppedRange
from trimtab.planning.fold_candidates import (
    FAR_SHARE,
    FRAME_TOKENS,
    Candidate,
    ReopenedGroups,
    candidate_for,
    foldable_runs,
    reopen,
    source_of,
)
from trimtab.planning.line_selection import (
    CandidateLines,
    LineSelector,
    verbatim,
)
from trimtab.planning.lines import PIECE_CHARS, Lines, counts, identifier_weights
from trimtab.planning.planner import FOLD_LOSS, MIN_GAIN, Planner
from trimtab.planning.record import Entry, listed_first
from trimtab.reducers import Offer
from trimtab.reducers.base import smaller
from trimtab.reducers.content.base import BY_NAME, ERROR, FAILURE, SUMMARY
from trimtab.reducers.digest import worth_of_lines
from trimtab.reducers.query_terms import QueryTerms, places
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
HEADER_CHARS, CHARS_PER_TOKEN = 200, 6
"""Of a note: its first line and the names of calls; at most so many characters a token of lines."""


def fold(planner: Planner, goal: int) -> None:
    """Fold every old group; keep as many of their lines as fit under ``goal`` tokens."""
    state, old = planner.state, ReopenedGroups()
    fresh = [candidate_for(planner, run) for run in foldable_runs(planner)]
    prose = _prose(planner, fresh)
    if not fresh and not prose:
        return
    room, size = _room(planner, goal, fresh, prose)
    before_runs = state.runs
    if before_runs and room < FAIR_SHARE * size:
        old = reopen(planner)
        fresh = [candidate_for(planner, run) for run in old.parted(foldable_runs(planner))]
        prose = _prose(planner, fresh, again=True)
        room, size = _room(planner, goal, fresh, prose)
    for candidate in fresh:
        candidate.read(planner, old)
    read = planner.inputs.lines
    prose_lines = [source_of(planner, place.block, read(place.block), place) for place in prose]
    selector = selector_of(planner, fresh, prose_lines)
    if old.past:
        selector.far = FAR_SHARE * room
    choose(planner, selector, int(FILLED * room), fresh, prose_lines)
    for candidate in fresh:
        _fold(planner, candidate)
    for candidate in reversed(fresh):
        _unfold_newest(planner, candidate, goal)
    for place, source in zip(prose, prose_lines, strict=True):
        _shorten(planner, place, source)
    put_back_rest(planner, before_runs)


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


NAMED = 100.0
"""What a line is worth that tells what is asked for."""
OUTCOME, FAILED, WRONG = 24.0, 10.0, 4.0
"""What a line is worth for saying an outcome, what failed, an error; identifiers are worth 1 to 10
each."""
EDIT, EDIT_LINES = 100.0, 2
"""What each of an edit's first new lines is worth, so that it shows what it did."""
MIN_WEIGHED = 3
"""Texts of fewer lines are not searched for outcomes."""
MAX_NAMED_LINES = 12
"""So many lines of one text are told because somebody asks for them."""
MAX_TEXTS = 3
"""A name that more of the folded texts have does not say which of them is meant."""


class _Seldom:
    """Which names few of the folded texts have."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts, self._few = texts, dict[str, bool]()

    def of(self, terms: QueryTerms) -> QueryTerms:
        """The names that point at a text."""
        return QueryTerms(tuple(filter(self._is_few, terms.names)), ())

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
    terms = seldom.of(planner.inputs.context.terms(_arguments(planner, source)))
    hits: list[int] | None = None
    if source.kind == "text" or source.is_file:
        hits = sorted(places(lines.text, terms))
        if not hits:
            return
    begins, start = [0], -1
    while (start := lines.text.find("\n", start + 1)) >= 0:
        begins.append(start + 1)
    weights = worth_of_lines(lines.text, source.tool, terms)
    rows = [bisect_right(begins, at) - 1 for at in lines.starts]
    pieces = Counter(rows)
    hit = (row for row, weight in enumerate(weights) if weight >= BY_NAME)
    named = sorted(hit, key=lambda row: -weights[row])[:MAX_NAMED_LINES]
    for index, row in enumerate(rows):
        weight = weights[row]
        if weight < ERROR or (source.is_file and weight < BY_NAME):
            continue
        if weight >= BY_NAME and row not in named:
            continue
        worth = _WORTH[bisect_right(_TIERS, weight) - 1]
        if worth == NAMED and pieces[row] > 2:
            hits = sorted(places(lines.text, terms)) if hits is None else hits
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


_TIERS = [ERROR, FAILURE, SUMMARY, BY_NAME]
_WORTH = [WRONG, FAILED, OUTCOME, NAMED]


def put_back_rest(planner: Planner, before_runs: Sequence[DroppedRange]) -> None:
    """Restore notes of the journal whose groups are in no new run: they would apply again on the
    next turn."""
    dropped = planner.state.dropped
    for run in before_runs:
        if run.edit and not any(number in dropped for number in range(run.first, run.last + 1)):
            planner.state.put_back(run)


def _fold(planner: Planner, candidate: Candidate) -> None:
    """Show the chosen lines of one run, or a marker if there are none."""
    state, run = planner.state, candidate.run
    made = candidate.made
    most = state.drop_saving(run.first, run.last) if candidate.droppable else 0
    saved = state.fold_saving(run, made) if made.lines or made.model_text else 0
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
    count, used = planner.sizes.counter, 0
    for candidate in candidates:
        made = candidate.made
        used += sum(count(text) for text in (made.lines, made.model_text, made.user_text) if text)
    return used + sum(count("\n".join(verbatim(source))) for source in more)


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
    if gain >= MIN_GAIN and smaller(offer.text, place.block.text, planner.sizes.counter):
        planner.show(place, offer)


def standing_identifiers(
    planner: Planner, fresh: Sequence[Candidate], prose: Sequence[Place] = ()
) -> tuple[set[str], set[str]]:
    """Identifiers that occur among words in what is sent anyway: (in words of tools, the user and
    the system, in the model's own)."""
    read, transcript, state = planner.inputs.lines, planner.transcript, planner.state
    covered: set[str] = set()
    own_words: set[str] = set()
    chosen = {(place.message, place.index) for place in prose}
    for number in _kept_messages(planner, fresh):
        by_model = number >= 0 and transcript.messages[number].role == "assistant"
        for place in transcript.places_in(number):
            speaks = counts(place.block) or place.block.kind == "system"
            if speaks and (number, place.index) not in chosen:
                own = own_words if by_model and place.block.kind != "result" else covered
                own |= read(place.block).grounded()
    for candidate in fresh:
        if (anchor := candidate.fold.anchor) is not None:
            own_words |= read(anchor.call.block).grounded()
    for run in state.runs:
        if run.fold is not None:
            shown = "\n".join(filter(None, (run.fold.lines, run.fold.user_text)))
            for names, text in ((covered, shown), (own_words, run.fold.model_text)):
                names |= read(Block("text", (), (), text or "")).grounded()
    return covered, own_words


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
