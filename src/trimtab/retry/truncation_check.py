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
"""Tokens: smaller counts say nothing; gateways that do not count report 0 or 1."""
_ONCE = 0.5
"""Share of the longest prompt counted whole: a smaller count is not a window truncated to."""
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
    return ours >= _LEAST_SENT and theirs >= _LEAST_READ and _LESS * theirs < ours


def is_truncated(counts: Counts, host: str, longest: int, before: Counts | None) -> bool:
    """Whether a short count means that the provider truncated the request.

    ``host``: who counted; ``longest``: the longest prompt it has counted lately, 0 if unknown;
    ``before``: its earlier short count.  For a host of the user's own one short count is enough,
    unless it has counted a much longer prompt.  Any other host must report about the same count
    for a larger request; a count near the growth alone is not taken as evidence, as a cache may
    explain it.
    """
    theirs, ours = counts
    if is_own_host(host) and theirs >= _ONCE * longest:
        return True
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


def is_own_host(host: str) -> bool:
    """Whether ``host`` is the user's own: loopback, a private address, a name without a dot, or ""
    (unknown).

    Public providers refuse requests that are too long instead of truncating them.
    """
    if host in ("", "localhost") or host.endswith((".local", ".internal", ".localhost")):
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return "." not in host
    return address.is_private or address.is_loopback
