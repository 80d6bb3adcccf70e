"""Dead weight: results that were repeated later, reads and writes that later ones made stale, and
the inputs of failed calls.

It is reduced before everything else, at any position, except what the user protects.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from trimtab.planning.planner import LEAST_GAIN, Planner
from trimtab.planning.presets import STALE
from trimtab.reducers import Offer
from trimtab.reducers.base import NO_FACTS
from trimtab.transcript.model import Place


@dataclass(frozen=True, slots=True)
class DeadBlock:
    """One block of dead weight: the offer to show instead, and the tokens that it saves."""

    place: Place
    offer: Offer
    saved: int


def dead_places(planner: Planner) -> Iterator[Place]:
    """The blocks that may be dead weight, of any age, including those that a preset keeps whole."""
    facts = planner.inputs.facts
    for place in planner.reducible(
        0, len(planner.transcript.messages), prose=False, protected=True
    ):
        if facts(place) != NO_FACTS and not planner.eligibility.protected_by_user(place):
            yield place


def remove_dead_weight(planner: Planner, enough: Callable[[], bool]) -> None:
    """Reduce dead weight, the least loss first, until ``enough``."""
    if not enough():
        planner.reduce(dead_places(planner), enough, most_loss=STALE, which="dead")


def dead_blocks(planner: Planner) -> list[DeadBlock]:
    """The dead weight not reduced yet, oldest first, each with the offer of least loss."""
    dead = []
    for place in dead_places(planner):
        if planner.state.is_dropped(place) or planner.state.cost(place) <= LEAST_GAIN:
            continue
        offer = next(planner.offers(place, "dead"), None)
        if offer is not None and offer.loss <= STALE:
            saved = planner.state.cost(place) - planner.state.price(place, offer)
            if saved >= LEAST_GAIN:
                dead.append(DeadBlock(place, offer, saved))
    return dead


class SentTokens:
    """The tokens before each message in the request that a plan would send."""

    def __init__(self, planner: Planner) -> None:
        transcript, usage, state = planner.transcript, planner.usage, planner.state
        sizes = []
        for number, message in enumerate(transcript.messages):
            places = [p for p in transcript.places_in(number) if not state.is_dropped(p)]
            sizes.append(sum(map(state.cost, places)) + usage.overhead(message) if places else 0)
        self._before = list(accumulate(sizes, initial=usage.head(transcript)))
        runs = state.runs
        self._noted = [transcript.groups[run.first].first for run in runs]
        self._notes = list(accumulate((run.tokens for run in runs), initial=0))

    def before(self, number: int) -> int:
        """Tokens before a message, notes included."""
        number = max(0, number)
        return self._before[number] + self._notes[bisect_right(self._noted, number - 1)]
