"""Cuts a user's text to its two ends and the constraints it states.  This is the last resort."""

from __future__ import annotations

from collections.abc import Callable

from trimtab.reducers.base import Config, recall_call, smaller
from trimtab.reducers.cutting import cut_note, replace_middle
from trimtab.reducers.text_boundaries import (
    at_or_after,
    at_or_before,
    chars_within,
    fits_tokens,
    head_end,
    tail_start,
)
from trimtab.transcript.user_constraints import demand_spans, may_demand

USER_CHARS = 100
"""Characters of a user's text that are always kept at each end."""
DEMANDS_SHARE = 0.5
"""Most of the kept tokens of a user's text, as a share, that may be demands from its middle."""


def user_cut(text: str, config: Config, tokens: int) -> str | None:
    """A user's text cut to ``tokens``, but never below its first and last 100 characters.

    Sentences in which the user demands or forbids something are kept too, up to ``DEMANDS_SHARE``
    of the tokens.  The result can exceed ``tokens``.  None if the text fits, or if less than 200
    characters could be cut.
    """
    count = config.count
    if fits_tokens(text, tokens, count):
        return None
    fetch = recall_call(text, config)
    note = f"{fetch} has all" if fetch else ""
    least = at_or_after(text, USER_CHARS)
    most = at_or_before(text, len(text) - USER_CHARS)
    if most - least < 2 * USER_CHARS:
        return None
    demands = ""
    if may_demand(text[least:most]):
        share = int(tokens * DEMANDS_SHARE)
        start = max(least, head_end(text, chars_within(text, share * 6 // 10, count)))
        end = min(most, tail_start(text, chars_within(text, share * 4 // 10, count, last=True)))
        demands = _demands(text[start:end], count, share) if start < end else ""
    shortest = replace_middle(text, least, most, note)
    for said in dict.fromkeys((demands, "")):
        if new := _ends_and(said, text, least, most, note, tokens, count):
            # More text can be fewer tokens, but no cut may be below the one the minimum uses.
            new = shortest if count(new) < count(shortest) else new
            return new if smaller(new, text, count) else None
    return shortest if smaller(shortest, text, count) else None


def demands_tokens(text: str, config: Config) -> int:
    """Tokens below which ``user_cut`` can no longer keep every demand in the text."""
    said = _demands(text, config.count, 10**9)
    return int(config.count(said) / DEMANDS_SHARE) + 1 if said else 0


def _demands(text: str, count: Callable[[str], int], tokens: int) -> str:
    """The first sentences that demand something, one per line, as many as fit into ``tokens``."""
    rows: list[str] = []
    for start, end in demand_spans(text):
        tokens -= count(text[start:end]) + 1
        if tokens < 0:
            break
        rows.append(text[start:end])
    return "\n".join(rows)


def _ends_and(
    said: str, text: str, least: int, most: int, note: str, tokens: int,
    count: Callable[[str], int],
) -> str | None:  # fmt: skip
    """Beginning and end of ``text`` with ``said`` between them, within ``tokens``; None if that is
    impossible."""
    room = tokens - count(cut_note(text.count("\n"), len(text), note)) - 4
    room = max(0, room - (count(said) + 2 if said else 0))
    for _ in range(4):
        head = max(least, head_end(text, chars_within(text, room * 6 // 10, count)))
        tail = chars_within(text, room - room * 6 // 10, count, last=True)
        tail = min(most, tail_start(text, tail))
        head = min(head, most - 2 * USER_CHARS)  # a shorter gap would not pay for its note
        tail = max(tail, head + 2 * USER_CHARS)
        new = replace_middle(text, head, tail, note, said)
        over = count(new) - tokens
        if over <= 0:
            return new
        room = max(0, room - over - 2)
    return None
