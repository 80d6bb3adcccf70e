"""Computes the levels of detail of each block lazily and once, and the value of a whole block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from typing import Literal

from trimtab import interruption
from trimtab.reducers import Offer
from trimtab.transcript.model import Block

Which = Literal["all", "light", "dead"]
"""The reducers to use: all, those that don't always lose something, those for dead weight."""
Key = tuple[int, int, Which, int]
"""(message, index) of a block, which reducers, and how many texts are joined in it."""


class _Chain:
    """One block's levels: those computed so far, the rest, and the reducers that failed."""

    __slots__ = ("failures", "offers", "rest")

    def __init__(self, begin: Callable[[list[str]], Iterator[Offer]]) -> None:
        self.offers: list[Offer] = []
        self.failures: list[str] = []
        self.rest = begin(self.failures)


class OfferCache:
    """The offers of one transcript for one set of reducers."""

    def __init__(self) -> None:
        self._chains: dict[Key, _Chain] = {}

    def levels(
        self,
        key: Key,
        begin: Callable[[list[str]], Iterator[Offer]],
        failures: list[str],
    ) -> Iterator[Offer]:
        """The levels of one block in order; ``begin(failures)`` starts their computation.

        The failures met so far are added to the caller's list ``failures``.
        """
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = _Chain(begin)
        read = reported = 0
        while True:
            interruption.check()
            offer = chain.offers[read] if read < len(chain.offers) else next(chain.rest, None)
            if len(chain.failures) > reported:
                failures += chain.failures[reported:]
                reported = len(chain.failures)
            if offer is None:
                return
            if read == len(chain.offers):
                chain.offers.append(offer)
            read += 1
            yield offer


_WEIGHT = {"result": 1.0, "call": 1.5, "reasoning": 0.3, "media": 0.8, "text": 2.0}
"""Agents write text from arguments again 1.4–3.5 times as often as from results, per token
(measured on real coding sessions); text from old reasoning hardly ever."""


def value(block: Block, tokens: int, age: float) -> float:
    """The value of a block, which is lost if all of it is removed.

    ``age`` runs from 0 (newest) to 1 (oldest).  Value grows with the square root of size: the
    second thousand tokens of a block say less than the first.
    """
    recency = 1.0 - 0.6 * age
    error = 1.5 if block.error else 1.0
    return _WEIGHT.get(block.kind, 1.0) * recency * error * sqrt(max(tokens, 1))
