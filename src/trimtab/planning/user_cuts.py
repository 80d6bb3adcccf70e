"""Shortens the user's own texts, when nothing else gives way: what was pasted before what was
written.
"""

from __future__ import annotations

from collections.abc import Callable

from trimtab.planning.planner import Planner
from trimtab.reducers import Offer, has_paste, user_cut, with_handle, written_tokens
from trimtab.transcript.model import Place

USER_TOKENS, SHORTEST = 60, 1
"""Tokens that the last step but one leaves of what a user wrote; if that is not enough, SHORTEST:
only its first and last 100 chars."""


def cut_pastes(planner: Planner, goal: int, *, newest: bool) -> None:
    """Shorten what the user pasted, the oldest first, until ``goal`` is reached; what the user
    wrote stays.  ``newest``: also in the newest text."""
    texts = planner.eligibility.user_texts
    for place in texts if newest else texts[:-1]:
        over = planner.state.tokens - goal
        if over <= 0:
            return
        text, config = place.block.text, planner.inputs.config
        if has_paste(text) and not planner.state.is_crossed(place.message):
            least = written_tokens(text, config)
            cut_user(planner, place, max(planner.state.cost(place) - over, least))


def cut_users(planner: Planner, enough: Callable[[], bool], *, bare: bool) -> None:
    """Cut the user's own texts until ``enough``: what was pasted in any of them, then what was
    written, longest first; ``bare``: to their two ends."""
    if not bare and not enough():
        cut_pastes(planner, 0 if planner.bytes_over() else planner.bounds.capacity, newest=True)
    texts = sorted(planner.eligibility.user_texts, key=lambda p: (-len(p.block.text), p.message))
    least = SHORTEST if bare else USER_TOKENS
    for place in texts:
        if enough():
            return
        over = planner.state.tokens - planner.bounds.capacity
        room = least if planner.bytes_over() else planner.state.cost(place) - over
        for tokens in dict.fromkeys((max(room, least), least)):
            cut_user(planner, place, tokens)
            if enough():
                return


def cut_user(planner: Planner, place: Place, tokens: int) -> None:
    """Cut one text of the user to ``tokens``, if that helps and is allowed."""
    state, eligibility = planner.state, planner.eligibility
    if (
        eligibility.pinned(place)
        or state.is_dropped(place)
        or place.message >= eligibility.open_from
    ):
        return
    text = user_cut(place.block.text, planner.inputs.config, tokens)
    if text is None:
        return
    text = with_handle(text, place.block.text, planner.handle(place))
    offer = Offer(
        "replace",
        text,
        0.9,
        "user-text",
        "shortened to fit: what was pasted before what was written",
    )
    if state.price(place, offer) < state.cost(place):
        planner.show(place, offer)
