"""Finds requests that lost the provider's prompt cache, and the cause of each loss.

A break shows in the usage that the provider reports.  Its cause follows from what changed between
two requests of a session: our edits, the client's own history, or the time that passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from zlib import crc32

from trimtab.proxy.records.session_record import SessionRecord, TurnRecord
from trimtab.wire.base import MESSAGE_LISTS

LEAST = 2_048
"""Tokens.  A shorter prefix may never have been in the cache: providers keep none below 1,024 to
4,096 tokens, which depends on the model."""
LIFETIME = 300.0
"""Seconds that a prefix surely stays cached with the providers that say so."""
OURS, CLIENT, EXPIRED, PROVIDER = "our edits", "the client", "expiry", "the provider"
CAUSES = {
    OURS: "edits were new on this turn: each is paid for once",
    CLIENT: "the client changed its model, system text, tools or earlier messages",
    EXPIRED: "more than five minutes passed since the last request",
    PROVIDER: "nothing changed that can be seen from here",
}
SYSTEM_KEYS = ("system", "instructions", "systemInstruction", "system_instruction")
_MOST_STRINGS = 200
_END = 2_000
"""Characters of a string at its beginning and at its end that are looked at."""


def beginning(tree: Any) -> tuple[tuple[str, int], ...]:
    """Hashes of model, system text, tools and of some messages by their place: 0, 1, 2, 4, 8 …

    The last two messages stay out: clients still move their cache breakpoints there.
    """
    if not isinstance(tree, Mapping):
        return ()
    messages: Any = next(
        (tree[key] for key in MESSAGE_LISTS if isinstance(tree.get(key), list)), []
    )
    tools = tree.get("tools")
    hashes = [
        ("model", _hash(tree.get("model"))),
        ("system", _hash([tree.get(key) for key in SYSTEM_KEYS])),
        ("tools", len(tools) if isinstance(tools, list) else 0),
    ]
    place = 0
    while place < len(messages) - 2:
        hashes.append((str(place), _hash(messages[place])))
        place = place * 2 or place + 1
    return tuple(hashes)


def _hash(value: Any) -> int:
    """Of the strings in it, as far as the first two hundred, and of each its ends; the same in
    every process, since it is kept."""
    found = 0
    for text in islice(_strings(value), _MOST_STRINGS):
        told = f"{len(text)} {text[:_END]} {text[-_END:]}"
        found = crc32(told.encode("utf-8", "surrogatepass"), found)
    return found


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in ("cache_control", "cachePoint"):
                yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def note_break(
    session: SessionRecord, turn: TurnRecord, began: tuple[tuple[str, int], ...]
) -> None:
    """Record on an answered turn how many cached tokens it lost, and why.

    ``began``: the hashes of its request (``beginning``).
    """
    before, session.beginning = dict(session.beginning), began
    earlier = next(
        (one for one in reversed(session.turns) if one is not turn and one.prompt and one.answered),
        None,
    )
    if earlier is None or not turn.prompt:
        return
    if not (turn.cached or turn.written or earlier.cached or earlier.written):
        return  # this provider says nothing of its cache
    standing = min(earlier.cached + earlier.written or earlier.prompt, turn.prompt)
    if standing < LEAST or turn.cached > 0.8 * standing:
        return
    turn.lost = standing - turn.cached
    changed = any(name in before and before[name] != value for name, value in began)
    if turn.new or turn.sends > 1:
        turn.cause = OURS
    elif changed or turn.arrived < 0.9 * earlier.arrived:
        turn.cause = CLIENT
    elif turn.when - earlier.when > LIFETIME:
        turn.cause = EXPIRED
    else:
        turn.cause = PROVIDER
