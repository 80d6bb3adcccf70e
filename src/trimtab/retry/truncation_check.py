"""Detects that a provider silently read less of a request than was sent, as local servers do.

It compares our token count of a request with the provider's, and with the provider's earlier count.
A short count alone is weak evidence: some gateways count only what was not in their cache.
"""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

_LESS = 1.5
"""Tokenizers differ by less than this on the texts of agents."""
_LEAST_SENT, _LEAST_READ = 1_000, 512
"""Tokens: below these counts say nothing; gateways that do not count put 0, 1 or so there."""
_ONCE = 0.5
"""Of the longest prompt it has counted whole: a window that it shortens to is not far below."""
_ALIKE = 1.1
"""Two counts within this factor are of the same window: whole messages are left out."""
_GROWN = 0.25
"""From a growth by this share of a count on it shows whether the count grows along."""


class Counts(NamedTuple):
    """One request: tokens as the provider counted them, and ours of what was sent."""

    theirs: int
    ours: int


def is_short_count(counts: Counts) -> bool:
    """Whether a count is too small to be one of all that was sent."""
    theirs, ours = counts
    return ours >= _LEAST_SENT and theirs >= _LEAST_READ and _LESS * theirs < ours


def is_truncated(counts: Counts, host: str, longest: int, before: Counts | None) -> bool:
    """Whether a short count means that something was left out.

    ``host``: who counted; ``longest``: the longest prompt it has counted of late, 0 where that is
    not known; ``before``: an earlier short count of its.  A server nearby is believed at once,
    unless it has read much more before.  Others have to count the same once more although more
    was sent by then, where neither all of the growth was counted nor the growth alone.
    """
    theirs, ours = counts
    if is_own_host(host) and theirs >= _ONCE * longest:
        return True
    if before is None or not _alike(theirs, before.theirs, _ALIKE):
        return False
    growth = ours - before.ours
    return growth >= _GROWN * theirs and not _alike(theirs, growth, _LESS * _ALIKE)


def count_to_compare(counts: Counts, before: Counts | None) -> Counts:
    """Which of two short counts the next one is to be compared with: the older while too little
    has come since."""
    if before is None or not _alike(counts.theirs, before.theirs, _ALIKE):
        return counts
    grown = counts.ours - before.ours
    return before if 0 <= grown < _GROWN * counts.theirs else counts


def _alike(one: int, other: int, factor: float) -> bool:
    return one <= other * factor and other <= one * factor


def is_own_host(host: str) -> bool:
    """Whether a host is of the user's own: loopback, a private address, a name without a dot.

    Public providers refuse what is too long.  "" is one nobody named.
    """
    if host in ("", "localhost") or host.endswith((".local", ".internal", ".localhost")):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return "." not in host
    return address.is_private or address.is_loopback
