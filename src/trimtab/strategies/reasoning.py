"""Old reasoning taken out as a whole block.

Knows a block's kind.  Whether a provider allows it, and for which turns, is the planner's
business: sealed reasoning is offered too, because it may be removed though never altered.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer

LOSS = 0.3


def reasoning(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a reasoning block: its removal, loss 0.3.  Nothing if it costs nothing."""
    if block.kind == "reasoning" and (block.fixed_tokens or config.count(block.text)):
        yield Offer("remove", "", LOSS, "reasoning", "earlier reasoning removed")
