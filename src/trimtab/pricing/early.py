"""Which dead weight goes before the window asks for it: that which pays for the cache it breaks.

What stands behind the earliest edit of a batch is written to the cache again.  So of all dead
weight the newest part is taken that brings most over the requests still to come.
"""

from __future__ import annotations

from collections.abc import Sequence

from trimtab import rules
from trimtab.planning.dead_weight import DeadBlock, SentTokens, dead_blocks
from trimtab.planning.planner import Planner
from trimtab.pricing.economics import EditBatch, extra_cost, requests_left
from trimtab.pricing.prices import Prices

DEFAULT = "claude-5m"
"""The price table where none was named: of those in which a lost cache is dear."""

SURE_SHARE = 0.5
"""Of the requests expected to come so many have to pay for a lost cache: with all of them sessions
that end sooner cost more than if everything had been sent (1.006 in one of ten sources)."""


def worth_pruning(
    planner: Planner, prices: Prices, least: int, *, cold: bool
) -> Sequence[DeadBlock]:
    """The dead weight that pays by itself; () where that is less than ``least`` tokens.

    ``cold``: the cache has expired, so all of it pays.
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
    """The message from which on an edit leaves reasoning alone that is bound to what stands before
    it: no thought is dead weight."""
    transcript = planner.transcript
    if not rules.binds_reasoning(transcript.format.name, transcript.facts):
        return 0
    thoughts = (p.message for p in transcript.places() if p.block.kind == "reasoning")
    return max(thoughts, default=0)
