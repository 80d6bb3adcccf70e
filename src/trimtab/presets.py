"""Named choices: how deep a batch goes, and what it may lose on the way.

Knows numbers.  One dial, the target; the rest follows from it or from the preset's name.
"""

from __future__ import annotations

from dataclasses import dataclass

LOSSLESS_AND_DUPLICATES = 0.05
"""Loss up to which an offer re-spells, or says that the same came again later."""

STALE = 0.15
"""Loss up to which an offer concerns what is out of date as well: superseded reads and writes,
inputs of failed calls."""


@dataclass(frozen=True, slots=True)
class Preset:
    """``target``: share of the room that a batch goes down to.  ``most_loss``: of an offer that is
    taken before the window is full; then everything is allowed, down to the target.  ``folds``:
    whether old steps become notes of their best lines; else each result is shrunk where it stands.
    ``recent_results``, ``recent_turns``: so many of the newest steps keep their results, and what
    the model said and called, as long as the window allows it."""

    target: float
    most_loss: float = 1.0
    folds: bool = True
    recent_results: int = 0
    recent_turns: int = 0


PRESETS = {
    "cautious": Preset(target=0.75, most_loss=LOSSLESS_AND_DUPLICATES),
    "balanced": Preset(target=0.75),
    "deep": Preset(target=0.5),
    "in-place": Preset(target=0.6, folds=False, recent_results=5, recent_turns=10),
}
