"""Chooses the dead weight to remove before the window is full: what pays for the cache it breaks.

Everything behind the earliest edit of a cut is written to the cache again.  So dead weight is
removed from the newest back to the point where the gain over the expected requests is largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trimtab.planning.make_room import dead_places
from trimtab.planning.planner import MIN_GAIN, Planner
from trimtab.planning.presets import STALE
from trimtab.pricing.economics import CutEffect, SentTokens, extra_cost, requests_left
from trimtab.pricing.prices import Prices
from trimtab.reducers import Offer
from trimtab.transcript.model import Place

SURE_SHARE = 0.5
"""This share of the expected requests must pay for a lost cache.  With all of them, sessions that
end sooner than expected cost more than sending everything (1.006 in one of ten sources)."""


@dataclass(frozen=True, slots=True)
class DeadBlock:
    """One block of dead weight: the offer to show instead, and the tokens that it saves."""

    place: Place
    offer: Offer
    saved: int


def worth_pruning(
    planner: Planner, prices: Prices, least: int, *, cold: bool
) -> Sequence[DeadBlock]:
    """The dead weight whose removal pays; () if it is less than ``least`` tokens.

    ``cold``: the cache has expired, so removing all of it pays.
    """
    every = [dead for dead in _dead_blocks(planner) if dead.place.message >= _first(planner)]
    if sum(dead.saved for dead in every) < max(1, least):
        return ()
    tokens, sent = planner.state.tokens, SentTokens(planner)
    left = SURE_SHARE * requests_left(planner.transcript)
    best, gain, saved = len(every), 0.0, 0
    for number in range(len(every) - 1, -1, -1):
        saved += every[number].saved
        before = sent.before(every[number].place.message)
        cut = CutEffect(rewritten=max(0, tokens - saved - before), saved=saved, cold=cold)
        worth = left * saved * prices.read - extra_cost(prices, cut)
        if saved >= least and worth > gain:
            best, gain = number, worth
    return every[best:]


def _dead_blocks(planner: Planner) -> list[DeadBlock]:
    """The dead weight not reduced yet, oldest first, each with the offer of least loss."""
    dead = []
    for place in dead_places(planner):
        if planner.state.is_dropped(place) or planner.state.cost(place) <= MIN_GAIN:
            continue
        offer = next(planner.offers(place, "dead"), None)
        if offer is not None and offer.loss <= STALE:
            saved = planner.state.cost(place) - planner.state.price(place, offer)
            if saved >= MIN_GAIN:
                dead.append(DeadBlock(place, offer, saved))
    return dead


def _first(planner: Planner) -> int:
    """The first message that may be edited: where reasoning is bound to the messages before it,
    that of the last reasoning block, as reasoning is never dead weight; else 0."""
    transcript = planner.transcript
    if not transcript.format.binds_reasoning(transcript.facts):
        return 0
    thoughts = (p.message for p in transcript.places() if p.block.kind == "reasoning")
    return max(thoughts, default=0)
