"""What came again later: results of repeated calls, and files read or written anew.

Knows what the rest of the transcript tells of a block (``Config.facts``).  Does not compare texts
itself, and never says where the other one stands.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer, smaller
from trimtab.strategies.marker import recall_call
from trimtab.strategies.values import emptied

LOSS_SAME, LOSS_NEAR, LOSS_SUPERSEDED = 0.02, 0.04, 0.1

_AGAIN = {
    "call": "the same call gave the same result again later",
    "text": "the same text came again later",
    "near": "the same call gave this again later, but for these lines",
}
_OVER = {
    "read": "the same file was read again later",
    "write": "the file was written anew later",
    "edit": "an edit replaced these lines later",
    "call": "the same call was made again later",
}


def duplicates(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a result whose very content came again, its own lines kept if it had any;
    then one for what is out of date; for a written file's content a note in the call."""
    facts = config.facts
    if block.kind == "call":
        yield from _written(block, config)
        return
    if block.kind == "result" and not block.text:
        return
    if block.kind not in ("result", "media"):
        return
    if facts.duplicate and not (block.media and facts.duplicate == "near"):
        text = _marker("duplicate", _AGAIN[facts.duplicate], block, config)
        if facts.duplicate == "near":
            text = "\n".join((text, *facts.unique))
        loss = LOSS_NEAR if facts.duplicate == "near" else LOSS_SAME
        offer = Offer("replace", text, loss, "duplicate", _AGAIN[facts.duplicate])
        if _pays(offer, block, config):
            yield offer
    if facts.superseded and not block.media:
        why = _OVER[facts.superseded]
        text = _marker("superseded", why, block, config)
        offer = Offer("replace", text, LOSS_SUPERSEDED, "superseded", why)
        if _pays(offer, block, config):
            yield offer


def _marker(what: str, why: str, block: Block, config: Config) -> str:
    """``[superseded: the same file was read again later]``"""
    fetch = recall_call(block.text, config)
    return f"[{what}: {why}{f'; {fetch} has it' if fetch else ''}]"


def _pays(offer: Offer, block: Block, config: Config) -> bool:
    if block.media:
        return config.count(offer.text) < block.fixed_tokens
    return smaller(offer.text, block.text, config.count)


def _written(block: Block, config: Config) -> Iterator[Offer]:
    over = config.facts.superseded
    if not over:
        return
    text = emptied(block, lambda chars: f"[superseded, {chars:,} chars: {_OVER[over]}]")
    if text is not None and smaller(text, block.text, config.count):
        yield Offer("replace", text, LOSS_SUPERSEDED, "superseded", _OVER[over])
