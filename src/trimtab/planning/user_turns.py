"""Folds old turns together with the user's words in them, into one message of the user, one call
with a result of ours (if any call can stay), and one message of the model.

    user:  Fix it, and never push.    user:  [8 earlier messages, of which these words are left]
    model: call Read a.py                    Fix it, and never push.
    tool:  37 lines                          Now the tests.
    model: It is the sign.            model: call Read a.py
    user:  Now the tests.             tool:  [4 earlier steps, of which this record is left, …]
    model: call Bash pytest                  1 Read a.py → 37 lines
    tool:  exit 1, 94 lines                  3 Bash pytest → exit 1, 94 lines
    model: One fails.                 model: [earlier words, in part] One fails.
    user:  Go on.                     user:  Go on.

This is the last resort, if nothing else frees enough.  What the user wrote stays verbatim as far
as it fits, newest first; what was pasted is shortened.  The newest turns stay whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from trimtab.planning.dropped_ranges import DroppedRange, Fold
from trimtab.planning.eligibility import OLD_WORDS
from trimtab.planning.fold import (
    choose,
    fold,
    put_back_rest,
    selector_of,
)
from trimtab.planning.fold_candidates import ReopenedGroups, candidate_for
from trimtab.planning.line_selection import USER, CandidateLines, with_gaps
from trimtab.planning.lines import asked_lines, only
from trimtab.planning.old_turns import newest_words, stretches
from trimtab.planning.planner import Planner
from trimtab.planning.runs import Run, closing_of
from trimtab.planning.user_cuts import cut_pastes
from trimtab.transcript.user_text import pieces_of, spans_of

PASSES, MIN_TOKENS = 4, 24
"""Words are put back as far as they fit: at most so many times, each time so many tokens fewer."""
KEPT_SHARE = 0.25
"""The share of the folded text that must have room for its lines; else more turns are folded."""


def fold_user_turns(planner: Planner, first: int, anew: int) -> None:
    """Fold as few of the oldest turns as bring the request under ``first`` tokens with a fair share
    of their lines; if that is impossible, all of them, including earlier folds, under ``anew``
    tokens.  The parts of earlier runs outside the new folds are folded again.  Nothing changes if
    the request would be larger."""
    state = planner.state
    before, before_runs = state.tokens, state.runs
    for again, goal in ((False, first), (True, anew)):
        reopened = _reopen(planner, crossing=again)
        chosen = _oldest(planner, goal, whatever=again)
        _put_back(planner, [run for run in reopened if not _overlaps(chosen, run)])
        if chosen:
            _fold(planner, chosen, goal)
            if state.tokens > goal and planner.inputs.folds:
                fold(planner, goal)
            put_back_rest(planner, reopened)  # where its turn was not folded after all
            if state.tokens > before:
                _restore(planner, before_runs)
            return


def fold_all_user_turns(planner: Planner, *, constraints: bool) -> None:
    """Fold every old turn into the least possible; ``constraints``: then put back what the user
    wrote there, newest first, as far as it fits.  Turns that would become larger are not folded."""
    state = planner.state
    before, before_runs = state.tokens, state.runs
    reopened = _reopen(planner, crossing=True)
    folded = list[Run]()
    for stretch in stretches(planner, protected=True):
        for index in reversed(range(len(stretch.ends))):
            run = stretch.run(planner, index)
            made = _bare(planner, run)
            if made is not None:
                if state.fold_saving(run, made) > 0:
                    state.fold(run, made)
                    folded.append(run)
                    planner.used("fold")
                break
    _put_back(planner, [run for run in reopened if not _overlaps(state.runs, run)])
    planner.drop_until(lambda: False, len(planner.transcript.messages), protected=True)
    if constraints:
        for run in reversed(folded):
            _write_back(planner, run)
    if state.tokens > before:
        _restore(planner, before_runs)


def _write_back(planner: Planner, run: Run) -> None:
    """Put what the user wrote in a folded run into its note: all of it, or the newest that fits."""
    state, bounds = planner.state, planner.bounds
    most = bounds.trigger if state.tokens <= bounds.trigger else bounds.capacity  # as in _limit
    before_runs = next((one for one in state.runs if one.run == run), None)
    if before_runs is None or before_runs.fold is None or planner.over():
        return
    sources = list(_user_texts(planner, run))
    room = most - state.tokens
    for _ in range(PASSES):
        room = int(room)
        _keep_written(planner, sources, room)
        user_text = "\n".join(filter(None, map(_forced, sources)))
        state.reopen(before_runs)
        made = replace(before_runs.fold, user_text=user_text)
        if user_text and state.fold_saving(run, made) > 0:
            state.fold(run, made)
            if state.tokens <= most and not planner.over():
                return
            over = state.tokens - most
            state.reopen(next(one for one in state.runs if one.run == run))
        else:
            over = MIN_TOKENS
        state.put_back(before_runs)
        room -= max(over, MIN_TOKENS)
        if room <= 0:
            return


def _oldest(planner: Planner, goal: int, *, whatever: bool) -> list[Run]:
    """The fewest of the oldest turns that free enough; none if even all don't (with ``whatever``:
    all of them)."""
    transcript, sizes, state = planner.transcript, planner.sizes, planner.state
    costs = [
        sizes.overhead(message) + sum(map(state.cost, transcript.places_in(number)))
        for number, message in enumerate(transcript.messages)
    ]
    before = list(accumulate(costs, initial=0))
    limit = len(transcript.messages) if whatever else planner.eligibility.raw_from
    chosen: list[Run] = []
    freed = held = 0
    seen: set[str] = set()
    for stretch in stretches(planner, protected=False):
        begin = at = stretch.opening
        run: Run | None = None
        for index, end in enumerate(stretch.ends):
            last = transcript.groups[end].last + 1
            if last > limit:
                break
            run = stretch.run(planner, index)
            held += _written_tokens(planner, range(at, last), seen)
            at = last
            size = freed + before[last] - before[begin]
            room = goal - (state.tokens - size) - held - FRAME_TOKENS * (len(chosen) + 1)
            if room >= KEPT_SHARE * size:
                return [*chosen, run]
        if run is not None:
            chosen.append(run)
            freed += before[at] - before[begin]
    return chosen if whatever else []


FRAME_TOKENS = 80
"""Tokens of a fold that crosses the user's words, without its lines."""


def _written_tokens(planner: Planner, numbers: range, seen: set[str]) -> int:
    """Tokens of what the user wrote in these messages and is not in ``seen``."""
    tokens = 0
    for number in numbers:
        if planner.transcript.messages[number].role == "user":
            for place in planner.transcript.places_in(number):
                if place.block.kind != "text":
                    continue
                new = [row for row in _written(place.block.text) if row not in seen]
                seen.update(new)
                tokens += sum(planner.sizes.counter(row) + 1 for row in new)
    return tokens


def _written(text: str) -> Iterator[str]:
    """The pieces that the user wrote."""
    for span in spans_of(text):
        if span.kind == "written":
            yield from (text[start:end].strip() for start, end in pieces_of(text, span))


# --- runs taken back and put back ---


def _reopen(planner: Planner, *, crossing: bool) -> list[DroppedRange]:
    """Take back the runs before the user's newest words; ``crossing``: also those that cross the
    user's."""
    newest, groups = newest_words(planner), planner.transcript.groups
    reopened = [
        run
        for run in planner.state.runs
        if groups[run.first].first < newest and (crossing or run.opening is None)
    ]
    for run in reopened:
        planner.state.reopen(run)
    return reopened


def _put_back(planner: Planner, runs: Sequence[DroppedRange]) -> None:
    for run in runs:
        planner.state.put_back(run)


def _restore(planner: Planner, before_runs: Sequence[DroppedRange]) -> None:
    """Restore the state with exactly these runs."""
    state = planner.state
    for run in state.runs:
        if not any(run is one for one in before_runs):
            state.reopen(run)
    _put_back(planner, [run for run in before_runs if not any(run is one for one in state.runs)])


def _overlaps(chosen: Sequence[Run | DroppedRange], run: DroppedRange) -> bool:
    return any(one.first <= run.last and run.first <= one.last for one in chosen)


# --- what stays of them ---


def _fold(planner: Planner, chosen: Sequence[Run], goal: int) -> None:
    """Fold these runs; keep as many of their lines as fit under the goal."""
    state = planner.state
    candidates = [candidate_for(planner, run) for run in chosen]
    texts = list[CandidateLines]()
    for candidate in candidates:
        candidate.read(planner, ReopenedGroups())
        own = list(_user_texts(planner, candidate.run))
        candidate.prose = [*candidate.prose, *own]
        texts += own
    size = sum(state.cost_of(run) for run in chosen)
    frames = sum(candidate.frame for candidate in candidates)
    need = sum(planner.sizes.counter(_forced(source)) for source in texts)
    # What was pasted gives way before what was written, in the newest text too.
    cut_pastes(planner, goal + size - frames - need, newest=True)
    room = goal - (state.tokens - size) - frames
    limit = _limit(planner, chosen)
    most = room + limit - goal
    if need > most:
        least = min(most, int(OLD_WORDS * planner.bounds.capacity))
        _keep_written(planner, texts, max(room, least))
    selector = selector_of(planner, candidates)
    selector.force()
    choose(planner, selector, goal - (state.tokens - size) - frames, candidates)
    for candidate in candidates:
        made = candidate.made
        after = state.tokens - state.fold_saving(candidate.run, made)
        if not made.lines or after > limit:  # its record may be what is too much
            made = _bare(planner, candidate.run, made) or made
        if state.fold_saving(candidate.run, made) > 0:
            state.fold(candidate.run, made)
            planner.folded[candidate.run.first] = candidate
            planner.used("fold")


def _limit(planner: Planner, chosen: Sequence[Run]) -> int:
    """Tokens up to which the user's words may stay: the trigger, as the next turn cuts again above
    it; the capacity where it does so in any case, since even nothing of these runs is above it."""
    least = planner.state.tokens
    for run in chosen:
        made = _bare(planner, run)
        least -= max(0, planner.state.fold_saving(run, made)) if made else 0
    bounds = planner.bounds
    return bounds.trigger if least <= bounds.trigger else bounds.capacity


def _user_texts(planner: Planner, run: Run) -> Iterator[CandidateLines]:
    """The user's texts of a run in order; what was written is forced to stay."""
    transcript = planner.transcript
    assert run.opening is not None
    seen: set[str] = set()
    end = transcript.groups[run.last]
    for number in range(run.opening, end.last + 1):
        message = transcript.messages[number]
        if message.role != "user" or (number == end.last and end.partial):
            continue
        for place in transcript.places_in(number):
            if place.block.kind == "text" and place.block.call_id is None:
                yield _user_lines(planner, place.block.text, seen)


def _user_lines(planner: Planner, text: str, seen: set[str]) -> CandidateLines:
    lines, wanted = asked_lines(text)
    rate = planner.sizes.counter(text) / max(len(text), 1)
    new = {index for index in wanted if lines[index] not in seen}
    seen.update(lines[index] for index in new)
    return CandidateLines(USER, lines, min(max(rate, 0.15), 1.5), forced=frozenset(new))


def _keep_written(planner: Planner, sources: Sequence[CandidateLines], room: int) -> None:
    """Of what the user wrote, let only the newest pieces stay that ``room`` holds together.

    An older piece never stays where a newer one had to go: what corrects outlives what it corrects.
    """
    full = False
    for source in reversed(sources):
        gone = set[int]()
        for index in sorted(source.forced, reverse=True):
            room -= 0 if full else planner.sizes.counter(source.lines[index]) + 1
            full = full or room < 0
            if full:
                gone.add(index)
        if gone:
            _leave_out(source, gone)


def _leave_out(source: CandidateLines, gone: set[int]) -> None:
    """Take lines out of a source: no choice of lines can keep them."""
    left = [index for index in range(len(source.lines)) if index not in gone]
    source.forced = frozenset(n for n, index in enumerate(left) if index in source.forced)
    source.lines = only(source.lines, left)


def _forced(source: CandidateLines) -> str:
    """The lines that are forced to stay, with notes on what is cut."""
    return "\n".join(with_gaps(source.lines, sorted(source.forced)))


def _bare(planner: Planner, run: Run, made: Fold | None = None) -> Fold | None:
    """A fold without any lines of tools, and without a call unless one is required."""
    made = Fold(None) if made is None else made
    if planner.state.is_legal_here(run, anchored=False):
        closing = closing_of(planner.transcript, run, anchored=False)
        model_text = made.model_text if closing else ""
        return replace(made, anchor=None, lines="", arguments="", model_text=model_text)
    anchor = candidate_for(planner, run).fold
    if anchor.anchor is None:
        return None
    return replace(made, anchor=anchor.anchor, arguments=anchor.arguments)
