"""Makes one cut: down to the target if that is cheap, under the limits in any case.

Dead weight is reduced first, then what loses little; then old steps are folded, the newest turn is
cut if it is too large, and last, old turns are folded together with the user's words in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from trimtab.planning.fold import SMALL, fold
from trimtab.planning.planner import Planner
from trimtab.planning.presets import STALE
from trimtab.planning.user_cuts import cut_pastes, cut_users
from trimtab.planning.user_turns import fold_all_user_turns, fold_user_turns
from trimtab.reducers.base import NO_FACTS
from trimtab.transcript.model import Place
from trimtab.transcript.notes import has_note


def make_room(planner: Planner) -> None:
    """Reduce to the target if that is cheap, and below the limits in any case."""
    bounds, state, eligibility = planner.bounds, planner.state, planner.eligibility
    goal, came_over = eligibility.target, planner.over()
    if planner.inputs.to_target and state.tokens > bounds.begin:
        planner.goal = goal
        places = list(planner.reducible(0, eligibility.raw_from, prose=False, protected=False))
        if planner.inputs.reducers_only:
            planner.reduce(places, lambda: state.tokens <= goal, SMALL)
            remove_dead_weight(planner, lambda: state.tokens <= goal)
            if not planner.over():
                planner.fill(goal)
                planner.revert(goal)
                return
        planner.reduce(places, lambda: state.tokens <= goal, SMALL, max_loss=STALE, priced=True)
        remove_dead_weight(planner, lambda: state.tokens <= goal)
        if state.tokens > goal:
            goal = planner.goal = eligibility.lasting_target
        if state.tokens > goal:
            _cut_newest(planner)
            if state.tokens > goal and planner.inputs.folds:
                _attempt(planner, "fold", partial(fold, planner, goal))
        planner.reduce(places, lambda: state.tokens <= goal, SMALL)
        enough = _enough(planner, goal)
        if state.tokens > enough:
            _attempt(planner, "cut of pastes", partial(_cut_pastes, planner, goal))
        crosses = state.tokens > enough and planner.inputs.drops
        if crosses and (came_over or not _was_fitted_before(planner)):
            room = max(0, bounds.trigger - eligibility.min_fixed) if bounds.lasts else 0
            first, anew = (min(goal, bounds.trigger - int(f * room)) for f in LEFT_FREE)
            _attempt(planner, "fold of turns", partial(fold_user_turns, planner, first, anew))
        planner.strip_notes(lambda: state.tokens <= bounds.trigger)
        if not planner.over():
            planner.fill(goal)
            planner.revert(goal)
            return
    if planner.over():
        remove_dead_weight(planner, lambda: not planner.over())
        force_fit(planner, lambda: not planner.over())
        planner.revert(goal)


def _was_fitted_before(planner: Planner) -> bool:
    """Whether a request that no session cut yet has our notes in its texts.

    A step or an image can stand in the way of a fold.  Once it is gone, a second fit could fold
    more than the first.  So such a request is folded again only where it does not fit.
    """
    return planner.is_first and any(
        block.kind == "text" and has_note(block.text)
        for message in planner.transcript.messages
        if message.role != "system"
        for block in message.blocks
    )


OVERSHOOT = 0.25
"""If reducing tools alone brings a request to within this share of the distance from target to
trigger, the user's words are not folded."""


LEFT_FREE = 0.21, 0.3
"""The share of the room that a fold of the user's words leaves free: for a new fold, and if earlier
folds are rewritten, as every time in a long chat.  Such a fold rewrites the request from its
beginning, so it should seldom be needed.  A target that the user set is kept to (``lasts`` 0)."""


def _cut_pastes(planner: Planner, goal: int) -> None:
    """Shorten what the user pasted; in the newest text only where the request does not fit."""
    cut_pastes(planner, goal, newest=planner.over())


def _enough(planner: Planner, goal: int) -> int:
    """Tokens above which old turns are folded with the user's words in them."""
    trigger = planner.bounds.trigger
    return goal + int(OVERSHOOT * max(0, trigger - goal)) if planner.inputs.folds else trigger


def _attempt(planner: Planner, name: str, act: Callable[[], None]) -> None:
    """Run ``act``; an error of ours is recorded and never breaks the request."""
    try:
        act()
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        planner.inputs.failures.append(f"{name} skipped: {problem}")


def _cut_newest(planner: Planner) -> None:
    """Cut a newest turn that is too large for the room, so that older turns don't lose everything
    for it."""
    groups, eligibility, state = planner.transcript.groups, planner.eligibility, planner.state
    if not groups or groups[-1].first >= eligibility.raw_from:
        return
    end = len(planner.transcript.messages)
    newest = planner.reducible(groups[-1].first, end, prose=False, protected=False)
    planner.reduce(
        newest, lambda: state.group_cost(groups[-1]) <= eligibility.next_turn_tokens, SMALL
    )


def force_fit(planner: Planner, enough: Callable[[], bool]) -> None:
    """Take ever more costly steps until ``enough``."""
    end, raw = len(planner.transcript.messages), planner.eligibility.raw_from
    planner.reduce(planner.reducible(0, raw, prose=False, protected=False), enough)
    planner.drop_until(enough, raw, protected=False)
    planner.strip_notes(enough)
    planner.reduce(planner.reducible(0, end, prose=False, protected=False), enough)
    planner.reduce(planner.reducible(0, end, prose=True, protected=True), enough)
    planner.drop_until(enough, end, protected=True)
    if not enough():
        cut_pastes(planner, planner.bounds.capacity, newest=True)
    if planner.inputs.drops and not enough():
        fold_all_user_turns(planner, constraints=True)
    cut_users(planner, enough, bare=False)
    if planner.inputs.drops and not enough():
        fold_all_user_turns(planner, constraints=False)
    cut_users(planner, enough, bare=True)


# --- dead weight: what came again, what is out of date, the inputs of failed calls ---


def dead_places(planner: Planner) -> Iterator[Place]:
    """The blocks that may be dead weight, of any age, including those that a preset keeps whole."""
    facts = planner.inputs.redundancy.facts
    for place in planner.reducible(
        0, len(planner.transcript.messages), prose=False, protected=True
    ):
        if facts(place) != NO_FACTS and not planner.eligibility.protected_by_user(place):
            yield place


def remove_dead_weight(planner: Planner, enough: Callable[[], bool]) -> None:
    """Reduce dead weight, the least loss first, until ``enough``."""
    if not enough():
        planner.reduce(dead_places(planner), enough, max_loss=STALE, which="dead")
