"""The lines of a result that say most, in their order, and how many stood between them.

Knows budgets, and what a digest of one loses.  Does not know what makes a line weigh
(line_weights.py) nor which lines a budget takes (shown_lines.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as counting

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer, loss_of, smaller
from trimtab.strategies.line_weights import Reading, read
from trimtab.strategies.marker import recall_call
from trimtab.strategies.shown_lines import Shown

SMALLEST_TOKENS = 60
LEAST_LINES = 12
"""Below, a text is rather a few long lines, which head and tail show as well."""
_BY_WEIGHT = 0.7


def digest(block: Block, config: Config) -> Iterator[Offer]:
    """Levels of a tool result of many lines: 60 × √2ⁿ tokens, the largest at most 3/4 of it.

    Whole lines, exactly as they came; where lines are missing stands ``[214 lines left out]``,
    and a line of more than 400 characters may be cut in its middle.  Sizes from a fixed scale, so
    a digest is never offered its own level.  Mandatory lines come first, then the most weight
    per character.
    """
    text = block.text
    if block.kind != "result" or text.count("\n") < LEAST_LINES - 1:
        return
    total = config.count(text)
    budgets = list(_budgets(total))
    if not budgets:
        return
    reading = read(text, block.tool or "")
    shown = Shown(reading, _advice(text, config))
    last = text
    for budget in reversed(budgets):
        new = shown.within(budget, total, config)
        if new is not None and smaller(new, last, config.count):
            yield _offer(new, reading, shown, total, config)
            last = new


def digest_to(block: Block, config: Config, tokens: int) -> Offer | None:
    """A digest of at most so many tokens, between two levels; None if none is."""
    text, total = block.text, config.count(block.text)
    if block.kind != "result" or not SMALLEST_TOKENS <= tokens < total:
        return None
    if text.count("\n") < LEAST_LINES - 1:
        return None
    reading = read(text, block.tool or "")
    shown = Shown(reading, _advice(text, config))
    new = shown.within(tokens, total, config)
    if new is None or not smaller(new, text, config.count):
        return None
    return _offer(new, reading, shown, total, config)


def _offer(text: str, reading: Reading, shown: Shown, total: int, config: Config) -> Offer:
    used = config.count(text)
    loss = _BY_WEIGHT * shown.loss + (1 - _BY_WEIGHT) * loss_of(used, total)
    why = f"{len(shown.picked):,} of {len(reading.lines):,} lines, {used:,} tokens"
    return Offer("replace", text, round(loss, 3), f"{reading.kind}-digest", why)


def _budgets(total: int) -> Iterator[int]:
    for half_octaves in counting():
        budget = int(SMALLEST_TOKENS * 2 ** (half_octaves / 2))
        if budget * 4 > total * 3:
            return
        yield budget


def _advice(text: str, config: Config) -> str:
    fetch = recall_call(text, config)
    return f"{fetch} has all" if fetch else "run the tool again to see them"
