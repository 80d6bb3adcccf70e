"""Reduces results that have just arrived, before they are cached, so no cached prefix changes.

These are the results after the model's last message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Literal

from trimtab.planning.eligibility import ARRIVAL_SHARE
from trimtab.planning.planner import Planner
from trimtab.reducers import Offer
from trimtab.transcript.model import Block, Place
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript

OnArrival = Literal["none", "lossless", "large"]
"""``lossless``: a new result is rewritten if that loses nothing; not if it was read from a file,
because an edit may have to quote it.  ``large``: also, a result above a quarter of the capacity is
cut to a quarter."""

LEAST_TOKENS = 256
"""Smaller results are left alone, and rewriting must save at least so many tokens (measured)."""


def new_results(transcript: Transcript) -> Iterator[Place]:
    """The results after the model's last message, which no earlier request had."""
    messages, first = transcript.messages, len(transcript.messages)
    while first and messages[first - 1].role != "assistant":
        first -= 1
    for number in range(first, len(messages)):
        for index, block in enumerate(messages[number].blocks):
            if block.kind == "result" and not block.sealed:
                yield Place(number, index, block)


def due(
    transcript: Transcript,
    usage: TokenSizes,
    on_arrival: OnArrival,
    capacity: int,
    offers: Callable[[Block], Iterable[Offer]],
    quotable: Callable[[Place], bool],
) -> bool:
    """Whether any new result can be reduced; if not, nothing has to be planned.

    ``offers``: the levels of detail of a block by rising loss; ``quotable``: whether a result was
    read from a file.
    """
    for place in new_results(transcript):
        tokens = usage.block(transcript, place)
        if tokens <= LEAST_TOKENS:
            continue
        if on_arrival == "large" and tokens > capacity * ARRIVAL_SHARE:
            return True
        least = tokens
        for offer in takewhile(lambda offer: offer.loss == 0, offers(place.block)):
            least = usage.block_cost(replace(place.block, text=offer.text))
        if tokens - least >= LEAST_TOKENS and not quotable(place):
            return True
    return False


def _fits(plan: Planner, place: Place, most: int) -> bool:
    return plan.state.cost(place) <= most


def arrive(plan: Planner, on_arrival: OnArrival, quotable: Callable[[Place], bool]) -> None:
    """Reduce new results as far as ``on_arrival`` allows."""
    new, end = list(new_results(plan.transcript)), len(plan.transcript.messages)
    free = plan.reducible(new[0].message if new else end, end, prose=False, protected=False)
    allowed = {(place.message, place.index): place for place in free}
    for place in (allowed.get((one.message, one.index)) for one in new):
        key = (place.message, place.index) if place else None
        if place is None or key in plan.state.shown:
            continue
        before = plan.state.cost(place)
        if not quotable(place):
            plan.reduce([place], lambda: False, LEAST_TOKENS, most_loss=0.0)
        if key in plan.state.shown and before - plan.state.cost(place) < LEAST_TOKENS:
            plan.state.restore(place, None)
        most = int(plan.bounds.capacity * ARRIVAL_SHARE)
        if on_arrival == "large" and plan.state.cost(place) > most:
            plan.reduce([place], partial(_fits, plan, place, most), LEAST_TOKENS)
    plan.revert(0)  # forget these moves: a batch must not take them back
