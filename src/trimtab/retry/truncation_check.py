"""Detects that a provider silently read less of a request than was sent, as local servers do.

A short count alone says nothing: tokenizers differ, gateways count only what was not in their
cache, replicas have models of their own.  What does: a count that stays the same while the request
grows.
"""

from __future__ import annotations

from typing import NamedTuple

_LESS = 1.5
"""Tokenizers differ by less than this on the texts of agents."""
_MIN_SENT, _MIN_READ = 1_000, 512
"""Tokens: smaller counts say nothing; gateways that do not count report 0 or 1."""
_ALIKE = 1.1
"""Two counts within this factor come from the same window: servers leave out whole messages."""
_GROWN = 0.25
"""How much a request must have grown, as a share of the count, to see if the count grows too."""


class Counts(NamedTuple):
    """One request in tokens: the provider's count, and ours of what was sent."""

    theirs: int
    ours: int


def is_short_count(counts: Counts) -> bool:
    """Whether the provider's count is too small to cover all that was sent."""
    theirs, ours = counts
    return ours >= _MIN_SENT and theirs >= _MIN_READ and _LESS * theirs < ours


def is_truncated(counts: Counts, before: Counts | None) -> bool:
    """Whether the provider truncates: about the same count as ``before`` for a request that has
    grown.  A count near the growth alone may be what was not in a cache."""
    theirs, ours = counts
    if before is None or not _alike(theirs, before.theirs, _ALIKE):
        return False
    growth = ours - before.ours
    return growth >= _GROWN * theirs and not _alike(theirs, growth, _LESS * _ALIKE)


def count_to_compare(counts: Counts, before: Counts | None) -> Counts:
    """The short count to compare the next one with: ``before`` until the request has grown
    enough, else ``counts``."""
    if before is None or not _alike(counts.theirs, before.theirs, _ALIKE):
        return counts
    grown = counts.ours - before.ours
    return before if 0 <= grown < _GROWN * counts.theirs else counts


def _alike(one: int, other: int, factor: float) -> bool:
    return one <= other * factor and other <= one * factor
