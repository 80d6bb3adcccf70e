"""Folds the oldest steps into notes: their best lines, verbatim, under one-line headers.

Notes of earlier batches stay unchanged, so that the prompt cache keeps hitting, as long as there is
room for a fair part of what is folded.  Otherwise they are undone and lines are chosen again.  A
batch then reads the newest steps whole, of older steps only the lines kept in notes, and nothing of
steps far back; otherwise its cost would grow with the length of a session.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import starmap

from trimtab import rules
from trimtab.planning.dropped_ranges import DroppedRange, Fold
from trimtab.planning.edits import follows_placed_system, leaves_words
from trimtab.planning.line_selection import CandidateLines, LineSelector, written, written_apart
from trimtab.planning.lines import (
    Key,
    Lines,
    counts,
    identifier_weights,
)
from trimtab.planning.planner import FOLD_LOSS, LEAST_GAIN, Planner
from trimtab.planning.refold import FAR_SHARE, ReopenedGroups, reopen
from trimtab.planning.runs import Anchor, Run, anchor_in, closing_of, kept_beside, kept_thoughts
from trimtab.reducers import Offer
from trimtab.reducers.base import smaller
from trimtab.transcript.model import Block, Group, Place

FAIR_SHARE = 0.1
"""The share of the folded text that must have room, or all notes are chosen again (measured)."""
SMALL = 128
"""Blocks up to this many tokens are left alone if only the target, no limit, requires more room."""
PASSES, LEFT_TOKENS = 3, 64
"""The estimated cost of lines is a fifth too high.  If there is little room, room left over is used
in further passes: at most PASSES, while at least LEFT_TOKENS are left.  With more room the added
lines only add cost (measured)."""
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
    sources = [list(_all_sources(planner, candidate, old)) for candidate in fresh]
    read = planner.inputs.lines
    said = [_source(planner, place, read(place.block), "") for place in prose]
    every = [*(source for own in sources for source in own), *said]
    selector = LineSelector(
        every,
        identifier_weights(planner.transcript, planner.inputs.lines),
        *standing_identifiers(planner, fresh, prose),
    )
    if old.past:
        selector.far = FAR_SHARE * room
    _take(planner, selector, room, [*sources, said])
    for candidate, own in zip(fresh, sources, strict=True):
        _fold(planner, candidate, own)
    for candidate, own in reversed(list(zip(fresh, sources, strict=True))):
        _unfold_newest(planner, candidate.run, own, goal)
    for place, source in zip(prose, said, strict=True):
        _shorten(planner, place, source)
    _put_back(planner, stood)


def _put_back(planner: Planner, stood: Sequence[DroppedRange]) -> None:
    """Restore notes of the journal whose groups are in no new run: they would apply again on the
    next turn."""
    dropped = planner.state.dropped
    for run in stood:
        if run.edit and not any(number in dropped for number in range(run.first, run.last + 1)):
            planner.state.put_back(run)


def _fold(planner: Planner, candidate: Candidate, sources: Sequence[CandidateLines]) -> None:
    """Show the chosen lines of one run, or a marker if there are none."""
    state, run = planner.state, candidate.run
    kept = written_apart(sources)
    made = replace(candidate.fold, lines=kept.lines, words=kept.words)
    most = state.drop_saving(run.first, run.last) if candidate.droppable else 0
    saved = state.fold_saving(run, made) if any(kept) else 0
    if most and not 0 < saved <= most:  # nothing may be smaller than what the minimum is made of
        state.drop(run.first, run.last)
    elif saved > 0:
        state.fold(run, made)
        planner.folded[run.first] = sources
    else:
        return
    planner.used("fold")


USED = 0.7
"""A batch that ends below this share of its goal has cut more than needed.  Above it, all useful
lines are kept, and further lines cost more than they are worth (measured)."""


def _unfold_newest(
    planner: Planner, run: Run, sources: Sequence[CandidateLines], goal: int
) -> None:
    """If much of the room is left, keep the newest steps of a run whole after all."""
    state = planner.state
    made = next((one for one in state.runs if one.first == run.first and one.edit is None), None)
    if state.tokens >= USED * goal or made is None or made.last != run.last:
        return
    state.reopen(made)
    planner.folded.pop(run.first, None)
    begin = run.first + (1 if state.tokens > goal else 0)
    lines: dict[int, int] = {}
    for source in sources:
        text = "\n".join(written([source]))
        lines[source.group] = lines.get(source.group, 0) + planner.usage.counter(text)
    surplus = state.tokens - goal + (made.tokens - sum(lines.values()))
    for end in range(begin, run.last + 1):
        surplus -= state.run_cost(end - 1, end - 1) - lines.get(end - 1, 0)
        if surplus <= 0:
            break
    else:
        end = run.last + 1
    if end > run.first:
        shorter = candidate_for(planner, run._replace(last=end - 1))
        rest = [source for source in sources if source.group < end and shorter.quotes(source)]
        _fold(planner, shorter, rest)


@dataclass(frozen=True)
class Candidate:
    """A run that may be folded: the fold with the call that would stay, and which speakers can be
    quoted in it."""

    run: Run
    fold: Fold
    quotes_tools: bool
    quotes_model: bool
    droppable: bool
    """Whether a marker alone may replace it."""
    frame: int
    """Tokens of the fold without any line."""

    def quotes(self, source: CandidateLines) -> bool:
        """Whether the fold has a place for lines of this source's speaker."""
        return self.quotes_tools if source.kind == "result" else self.quotes_model


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


def _take(
    planner: Planner, selector: LineSelector, room: int, parts: Sequence[Sequence[CandidateLines]]
) -> None:
    """Keep the best lines of all parts, ``room`` tokens of them."""
    left, before = room, -1
    for _ in range(PASSES if planner.eligibility.has_little_room else 1):
        selector.take(left)
        kept = sum(len(source.kept) for part in parts for source in part)
        if kept == before:
            return
        texts = (text for part in parts for text in written_apart(part))
        left, before = room - sum(map(planner.usage.counter, texts)), kept
        if left < LEFT_TOKENS:
            return


def _all_sources(
    planner: Planner, candidate: Candidate, old: ReopenedGroups
) -> Iterator[CandidateLines]:
    """The sources of a run; of groups in ``old``, only the lines that their notes kept."""
    for number in old.read(candidate.run):
        left = old.left.get(number)
        for source in sources_of(planner, candidate, number, partial(_of, left) if left else None):
            source.far = number < old.past
            yield source


def sources_of(
    planner: Planner,
    candidate: Candidate,
    group: int,
    read: Callable[[Place], Lines | None] | None = None,
) -> Iterator[CandidateLines]:
    """The blocks of one group that can be quoted; ``read``: their lines, where not all of them."""
    whole = planner.inputs.lines
    own = read or (lambda place: whole(place.block))
    anchor = candidate.fold.anchor
    for source in _sources(planner, planner.transcript.groups[group], own, anchor, candidate):
        if candidate.quotes(source):
            source.group = group
            yield source


def _of(left: Mapping[Key, Lines], place: Place) -> Lines | None:
    return left.get((place.message, place.index))


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
    rows, state = written([source]), planner.state
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


def _sources(
    planner: Planner,
    group: Group,
    read: Callable[[Place], Lines | None],
    anchor: Anchor | None,
    candidate: Candidate,
) -> list[CandidateLines]:
    """The blocks of a group in the order in which the model reads them: each result after its call.

    The call that stays is not quoted, and its result needs no header if it is first.
    """
    results: dict[str, list[Place]] = {}
    for place in group.places:
        if place.block.kind == "result":
            results.setdefault(place.block.call_id or "", []).append(place)
    sources: list[CandidateLines] = []

    def add(places: Iterable[Place], header: str, *, of_call: bool = False) -> None:
        for place in places:
            lines = read(place)
            stale = of_call and place.block.kind == "result" and _stale(planner, place)
            if lines is not None and not stale:
                sources.append(_source(planner, place, lines, header))

    for place in group.places:
        block = place.block
        if block.kind == "text":
            add([place], "")
        elif block.kind == "call":
            stays = anchor is not None and place == anchor.call
            first = stays and planner.transcript.groups[candidate.run.first] is group
            header = "" if first else planner.inputs.lines(block).header
            own = [] if stays and not candidate.fold.arguments else [place]
            add([*own, *results.pop(block.call_id or "", ())], header, of_call=True)
    for rest in results.values():
        add(rest, "")
    return sources


def _stale(planner: Planner, place: Place) -> bool:
    """Whether a block was repeated or superseded later."""
    facts = planner.inputs.facts(place)
    return facts.duplicate in ("call", "text") or bool(facts.superseded and not facts.lacks)


def _source(planner: Planner, place: Place, lines: Lines, header: str) -> CandidateLines:
    block = place.block
    tokens = planner.usage.block(planner.transcript, place)
    rate = tokens / max(lines.chars or len(block.text), 1)
    return CandidateLines(block.kind, lines, min(max(rate, 0.15), 1.5), header)


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
