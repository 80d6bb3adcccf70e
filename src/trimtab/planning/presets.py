"""Presets: how deep a batch goes, and what it may lose.

There is one dial, the target; all else follows from it or from the preset's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LOSSLESS_AND_DUPLICATES = 0.05
"""The largest loss of offers that rewrite without loss, or point to a later repetition."""

STALE = 0.15
"""The largest loss of offers for outdated content too: superseded reads and writes, inputs of
failed calls."""


EARLY = 1_000
"""The least tokens of dead weight that are worth breaking the cache before the trigger."""


ECONOMY_ROOM = 28_000
"""Tokens: with its target ``economy`` leaves a history of 20,000.  A cut to so much, made when it
pays, costs .62 (caches of five minutes) and .69 (of an hour) of everything sent, the agent's own
compaction at 160k .76 and .78 (``python bench/when_to_cut.py``)."""


@dataclass(frozen=True, slots=True)
class Preset:
    """``target``: share of the room that a batch goes down to.  ``most_loss``: of an offer that is
    taken before the window is full; then everything is allowed, down to the target.  ``folds``:
    whether old steps become notes of their best lines; else each result is shrunk where it stands.
    ``recent_results``, ``recent_turns``: so many of the newest steps keep their results, and what
    the model said and called, as long as the window allows it.  ``dead_only``: until the window is
    full nothing but dead weight goes.  ``trigger``: share of the window at which a batch begins,
    whatever is cold; None: as sure as the counts are.  ``early``: from so many tokens of dead
    weight on it goes before the trigger, as soon as that pays for the cache it breaks; None: not
    before.  ``history``: the most room that the history gets, in tokens; a cut begins as soon as it
    pays.  None: all the room there is, and a cut begins at the trigger."""

    target: float
    most_loss: float = 1.0
    folds: bool = True
    recent_results: int = 0
    recent_turns: int = 0
    dead_only: bool = False
    trigger: float | None = None
    early: int | None = None
    history: int | None = None


PresetName = Literal["cautious", "balanced", "economy", "in-place", "prune", "manual"]

PRESETS: dict[PresetName, Preset] = {
    "cautious": Preset(target=0.7, most_loss=LOSSLESS_AND_DUPLICATES),
    "balanced": Preset(target=0.7),
    "economy": Preset(target=0.7, history=ECONOMY_ROOM),
    "in-place": Preset(target=0.6, folds=False, recent_results=5, recent_turns=10),
    "manual": Preset(target=0.7, trigger=1.0),
    "prune": Preset(target=0.7, dead_only=True, early=EARLY),
}
