"""The levels of detail of each block, worked out once, as far as somebody asked.

A memo: it changes no result, only time.  Knows blocks and their chains of offers.  Does not know
what any of them costs, nor which is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from trimtab.strategies import Offer

Key = tuple[int, int, bool]
"""(message, index) of a block, and whether levels that lose something are among them."""


class _Chain:
    """One block's levels: those worked out, the rest of them, and the strategies that failed."""

    __slots__ = ("failures", "offers", "rest")

    def __init__(self, begin: Callable[[list[str]], Iterator[Offer]]) -> None:
        self.offers: list[Offer] = []
        self.failures: list[str] = []
        self.rest = begin(self.failures)


class Offered:
    """The chains of one transcript, for one choice of strategies."""

    def __init__(self) -> None:
        self._chains: dict[Key, _Chain] = {}

    def levels(
        self,
        key: Key,
        begin: Callable[[list[str]], Iterator[Offer]],
        failures: list[str],
    ) -> Iterator[Offer]:
        """The levels of one block in order; ``begin`` starts them, given a list for failures.

        Each reader is told of the failures on its way, in a list of its own.
        """
        chain = self._chains.get(key)
        if chain is None:
            chain = self._chains[key] = _Chain(begin)
        read = told = 0
        while True:
            offer = chain.offers[read] if read < len(chain.offers) else next(chain.rest, None)
            if len(chain.failures) > told:
                failures += chain.failures[told:]
                told = len(chain.failures)
            if offer is None:
                return
            if read == len(chain.offers):
                chain.offers.append(offer)
            read += 1
            yield offer
