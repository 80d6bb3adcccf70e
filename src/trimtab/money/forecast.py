"""How much room the tool calls still to come will take, and what that means for when to cut.

Knows sizes of past results.  Does not know limits of a provider or how anything is cut.
"""

from __future__ import annotations

from dataclasses import replace

from trimtab.model import Transcript
from trimtab.planning.plan import Bounds
from trimtab.reading.usage import Usage

MARGIN = 1.1
"""Results vary in size: so much more than the average is kept free."""


def growth(transcript: Transcript, usage: Usage, calls_left: int) -> int | None:
    """Tokens that so many more calls will add, if they are as large as those before on average.

    None where there were none to judge by.
    """
    sums = usage.runs(transcript)
    calls, cost = sums.calls[-1], sums.closed[-1]
    if not calls:
        return None if calls_left else 0
    return int(MARGIN * calls_left * cost / calls)


def with_calls_left(
    bounds: Bounds, transcript: Transcript, usage: Usage, calls_left: int
) -> Bounds:
    """Bounds that cut no earlier and no deeper than the calls still to come make necessary."""
    more = growth(transcript, usage, calls_left)
    if more is None:
        return bounds
    if usage.measure(transcript) + more <= bounds.capacity:
        return replace(bounds, trigger=bounds.capacity)
    return replace(bounds, target=max(bounds.target, 1 - more / bounds.capacity))
