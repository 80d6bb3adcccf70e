"""Finds requests that lost the provider's prompt cache, and the cause of each loss.

A break shows in the usage that the provider reports.  Its cause follows from what changed between
two requests of a session: our edits, the client's own history, or the time that passed.  What the
provider itself reports (Anthropic's ``diagnostics``, OpenAI's ``prompt_cache_diagnostics``) counts
before our own guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any
from zlib import crc32

from trimtab.formats.words import messages_of
from trimtab.proxy.records.request_record import RequestRecord
from trimtab.proxy.records.session_record import SessionRecord

MIN_PREFIX = 2_048
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
_CLIENTS_OWN = frozenset({
    "model_changed", "system_changed", "tools_changed", "prompt_cache_key_changed",
    "text_format_changed", "reasoning_effort_changed", "verbosity_changed", "service_tier_changed",
})  # fmt: skip
"""Findings of providers on what only the client sets."""
_HISTORY = frozenset({"messages_changed", "input_changed"})
"""Findings of providers on earlier messages, which our edits change too."""
_UNCHANGED = "cache_hit"
"""OpenAI: the compared request has the same prefix."""
_PROVIDERS_OWN = "context_compacted"
SYSTEM_KEYS = ("system", "instructions", "systemInstruction", "system_instruction")
_MAX_STRINGS, _MAX_ITEMS = 200, 1_000
_END = 2_000
"""Characters of a string at its beginning and at its end that are looked at."""


def beginning(tree: Any) -> tuple[tuple[str, int], ...]:
    """Hashes of model, system text, tools and of some messages by their place: 0, 1, 2, 4, 8 …

    The last two messages stay out: clients still move their cache breakpoints there.
    """
    if not isinstance(tree, Mapping):
        return ()
    messages, tools = messages_of(tree), tree.get("tools")
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
    """A checksum of the first two hundred strings in ``value``: their lengths and their ends.

    It is stored, so it is the same in every process.
    """
    checksum = 0
    for text in islice(_strings(value), _MAX_STRINGS):
        ends = f"{len(text)} {text[:_END]} {text[-_END:]}"
        checksum = crc32(ends.encode("utf-8", "surrogatepass"), checksum)
    return checksum


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key not in ("cache_control", "cachePoint"):
                yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value[:_MAX_ITEMS]:
            yield from _strings(inner)


def note_break(
    session: SessionRecord, turn: RequestRecord, began: tuple[tuple[str, int], ...]
) -> None:
    """Record on an answered turn how many cached tokens it lost, and why.

    ``began``: the hashes of its request (``beginning``).
    """
    before, session.beginning = dict(session.beginning), began
    earlier = next(
        (
            other
            for other in reversed(session.turns)
            if other is not turn and other.prompt and other.answered
        ),
        None,
    )
    if earlier is None or not turn.prompt:
        return
    if not (turn.cached or turn.written or earlier.cached or earlier.written):
        return  # this provider says nothing of its cache
    prefix = min(earlier.cached + earlier.written or earlier.prompt, turn.prompt)
    if prefix < MIN_PREFIX or turn.cached > 0.8 * prefix:
        return
    turn.lost = prefix - turn.cached
    changed = any(name in before and before[name] != value for name, value in began)
    changed = changed or turn.arrived < 0.9 * earlier.arrived
    turn.cause = _cause(turn, changed=changed, idle=turn.when - earlier.when)


def _cause(turn: RequestRecord, *, changed: bool, idle: float) -> str:
    """Whose break it is.  ``changed``: whether the client's request seems to have another beginning
    than the one before; ``idle``: seconds since that one."""
    ours = bool(turn.new) or turn.sends > 1
    if turn.diagnosis in _CLIENTS_OWN:
        return CLIENT
    if turn.diagnosis in _HISTORY:
        return OURS if ours else CLIENT
    if turn.diagnosis == _PROVIDERS_OWN:
        return PROVIDER
    if turn.diagnosis != _UNCHANGED:
        if ours:
            return OURS
        if changed:
            return CLIENT
    return EXPIRED if idle > LIFETIME else PROVIDER
