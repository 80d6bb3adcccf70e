"""What a conversation does to its store, turn by turn, as arithmetic: no text, no store.

Of one conversation: when a batch of edits is due, which replica decides it, what each of them reads
and writes.  The rules are those of ``sessions/conversation_store.py``, the sizes are fitted
(``Constants``) to a measured run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

WINDOW = 32_000
MAX_A_TURN = WINDOW // 4
"""Tokens; a turn of more is taken as of so many."""


@dataclass(frozen=True)
class Constants:
    """Fitted to a measured run: shares of the window where a batch begins and ends; bytes kept by
    a batch and for each token that is cut by then."""

    trigger: float = 0.98
    target: float = 0.75
    batch_bytes: float = 300.0
    bytes_a_token: float = 1.0


@dataclass
class Known:
    """What one replica knows of a conversation: tokens that its edits take out."""

    cut: int = 0
    loaded: bool = False


def play(
    shape: Sequence[int], replicas: Sequence[int], constants: Constants, *, kept: bool = True
) -> Counter[str]:
    """Counts of one conversation.  ``replicas``: which of them serves each turn; ``kept``: whether
    a replica still remembers a conversation that another has served since."""
    found, known, stored = Counter[str](), dict[int, Known](), 0
    total, served_by, last = 0, -1, 0
    for turn, growth in enumerate(shape):
        total += min(growth, MAX_A_TURN)
        here = known.setdefault(replicas[turn], Known())
        found["reads"] += 1  # how the provider counts
        if not here.loaded or (not kept and served_by != replicas[turn]):
            found["reads"] += 1
            here.cut, here.loaded = stored, True
        if total - here.cut > constants.trigger * WINDOW:
            found["reads"] += 1  # has another one decided?
            here.cut = stored
        if total - here.cut > constants.trigger * WINDOW:
            here.cut = stored = total - round(constants.target * WINDOW)
            # Each fold is kept with everything that it stands for, what was folded before too.
            found["cut"] += here.cut
            found["bytes"] += round(constants.batch_bytes + here.cut * constants.bytes_a_token)
            found.update(("batches", "writes", "reads"))
        found["reads"] += 1  # what do others write?
        found["breaks"] += bool(turn) and here.cut != last
        last, served_by = here.cut, replicas[turn]
        found["turns"] += 1
    return found


def balanced(rng: random.Random, turns: int, replicas: int, sticky: bool) -> list[int]:
    """Which replica serves each turn."""
    if sticky:
        return [rng.randrange(replicas)] * turns
    return [rng.randrange(replicas) for _ in range(turns)]
