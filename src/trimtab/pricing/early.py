"""Chooses the dead weight to remove before the window is full: what pays for the cache it breaks.

Everything behind the earliest edit of a batch is written to the cache again.  So dead weight is
removed from the newest back to the point where the gain over the expected requests is largest.
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab.planning.dead_weight import DeadBlock, SentTokens, dead_blocks
from trimtab.planning.planner import Planner
from trimtab.pricing.economics import EditBatch, extra_cost, requests_left
from trimtab.pricing.prices import Prices

SURE_SHARE = 0.5
"""This share of the expected requests must pay for a lost cache.  With all of them, sessions that
end sooner than expected cost more than sending everything (1.006 in one of ten sources)."""


def worth_pruning(
    planner: Planner, prices: Prices, least: int, *, cold: bool
) -> Sequence[DeadBlock]:
    """The dead weight whose removal pays; () if it is less than ``least`` tokens.

    ``cold``: the cache has expired, so removing all of it pays.
    """
    every = [dead for dead in dead_blocks(planner) if dead.place.message >= _first(planner)]
    if sum(dead.saved for dead in every) < max(1, least):
        return ()
    tokens, sent = planner.state.tokens, SentTokens(planner)
    left = SURE_SHARE * requests_left(planner.transcript)
    best, gain, saved = len(every), 0.0, 0
    for number in range(len(every) - 1, -1, -1):
        saved += every[number].saved
        before = sent.before(every[number].place.message)
        batch = EditBatch(rewritten=max(0, tokens - saved - before), saved=saved, cold=cold)
        worth = left * saved * prices.read - extra_cost(prices, batch)
        if saved >= least and worth > gain:
            best, gain = number, worth
    return every[best:]


def _first(planner: Planner) -> int:
    """The first message that may be edited: where reasoning is bound to the messages before it,
    that of the last reasoning block, as reasoning is never dead weight; else 0."""
    transcript = planner.transcript
    if not transcript.format.binds_reasoning(transcript.facts):
        return 0
    thoughts = (p.message for p in transcript.places() if p.block.kind == "reasoning")
    return max(thoughts, default=0)
