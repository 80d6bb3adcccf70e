"""Inputs of calls that failed: long values give way to a note, the error text stays.

Knows what kind of failure it was (``Config.facts``).  Does not know how that was found out, nor
how old the call is.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.model import Block
from trimtab.strategies.base import Config, Offer, smaller
from trimtab.strategies.values import emptied

LOSS = 0.15
LOSS_OPEN = 0.35
"""Where the input may matter still: a command may have run and only its outcome was bad; what was
not permitted may be put forward again."""
_OPEN = ("other", "permission")


def failed_inputs(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for the input of a failed call: keys and short values as they are.

    ``{"file_path": "a.py", "old_string": "[input of a failed call, 2,114 chars, left out]"}``
    """
    failed = config.facts.failed
    if block.kind != "call" or not failed:
        return
    text = emptied(block, lambda chars: f"[input of a failed call, {chars:,} chars, left out]")
    if text is not None and smaller(text, block.text, config.count):
        loss = LOSS_OPEN if failed in _OPEN else LOSS
        yield Offer("replace", text, loss, "failed-input", f"the call failed ({failed})")
