"""Estimates the tokens that the tool calls still to come will take, and adjusts when to cut."""

from __future__ import annotations

from dataclasses import replace

from trimtab.planning.eligibility import Bounds
from trimtab.transcript.token_sizes import TokenSizes
from trimtab.transcript.transcript import Transcript

MARGIN = 1.1
"""Factor on the average size of a call, because results vary in size."""


def growth(transcript: Transcript, usage: TokenSizes, calls_left: int) -> int | None:
    """The tokens that ``calls_left`` more calls will add, if they are as large as past calls.

    None if there were no calls yet.
    """
    sums = usage.runs(transcript)
    calls, cost = sums.calls[-1], sums.closed[-1]
    if not calls:
        return None if calls_left else 0
    return int(MARGIN * calls_left * cost / calls)


def with_calls_left(
    bounds: Bounds, transcript: Transcript, usage: TokenSizes, calls_left: int
) -> Bounds:
    """Bounds that cut no earlier and no deeper than ``calls_left`` more calls need."""
    added = growth(transcript, usage, calls_left)
    if added is None:
        return bounds
    if usage.measure(transcript) + added <= bounds.capacity:
        return replace(bounds, trigger=bounds.capacity)
    return replace(bounds, target=max(bounds.target, 1 - added / bounds.capacity))
