"""Head-and-tail cut: the beginning and the end of a text, and how much stood between.

Knows whose text may be cut how far: results and the model's prose.
Does not know how a cut is made.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer, loss_of, smaller
from trimtab.strategies.excerpt import cut_to_chars, cut_to_tokens, excerpt
from trimtab.strategies.marker import marker_offer, recall_call

__all__ = [
    "cut",
    "cut_levels",
    "cut_to",
    "cut_to_chars",
    "cut_to_tokens",
    "text_levels",
]

SMALLEST_TOKENS = 60


def cut_levels(text: str, config: Config, note: str) -> Iterator[Offer]:
    """Excerpts of 60 × 2ⁿ tokens, the largest at most three quarters of the text.

    Sizes from a fixed scale, not shares of the text: so an excerpt is never offered its own level.
    """
    total = config.count(text)
    budget, last = SMALLEST_TOKENS, text
    while budget * 8 <= total * 3:
        budget *= 2
    while SMALLEST_TOKENS <= budget <= total * 3 // 4:
        new = excerpt(text, budget, config.count, note)
        if new is not None and smaller(new, last, config.count):
            used = config.count(new)
            why = f"first and last {used:,} of {total:,} tokens"
            yield Offer("replace", new, loss_of(used, total), "head-and-tail", why)
            last = new
        budget //= 2


def cut(block: Block, config: Config) -> Iterator[Offer]:
    """Excerpts of a tool result, about a half, a quarter, … down to 60 tokens."""
    if block.kind == "result" and block.text:
        yield from cut_levels(block.text, config, _note(block.text, config))


def _note(text: str, config: Config) -> str:
    fetch = recall_call(text, config)
    return f"{fetch} has all" if fetch else "run the tool again to see them"


def cut_to(block: Block, config: Config, tokens: int) -> Offer | None:
    """An excerpt of a tool result of just so many tokens, between two levels; None if none is."""
    total = config.count(block.text)
    if block.kind != "result" or not SMALLEST_TOKENS <= tokens < total:
        return None
    new = excerpt(block.text, tokens, config.count, _note(block.text, config))
    if new is None or not smaller(new, block.text, config.count):
        return None
    used = config.count(new)
    why = f"first and last {used:,} of {total:,} tokens"
    return Offer("replace", new, loss_of(used, total), "head-and-tail", why)


def text_levels(block: Block, config: Config) -> Iterator[Offer]:
    """The same for prose of the assistant, then its marker; not part of ``levels``.

    A block does not know its speaker: the caller asks for this where the words are the model's.
    """
    if block.kind == "text" and block.text and not block.sealed:
        fetch = recall_call(block.text, config)
        smallest = block.text
        for offer in cut_levels(block.text, config, f"{fetch} has all" if fetch else ""):
            smallest = offer.text
            yield offer
        for offer in marker_offer(block, config):
            if smaller(offer.text, smallest, config.count):
                yield offer
