"""Presets: when a cut is made, how deep it goes, and whether old steps become notes.

There is one dial, the target; all else follows from the preset's name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

STALE = 0.15
"""The largest loss of offers that rewrite without loss, point to a later repetition or replace
outdated content: superseded reads and writes, inputs of failed calls."""

ECONOMY_ROOM = 28_000
"""Tokens: with its target ``economy`` leaves a history of 20,000.  A cut to so much, made when it
pays, costs .62 (caches of five minutes) and .69 (of an hour) of everything sent, the agent's own
compaction at 160k .76 and .78 (``python bench/when_to_cut.py``)."""


@dataclass(frozen=True, slots=True)
class Preset:
    """``target``: share of the room that a cut goes down to.  ``folds``: whether old steps become
    notes of their best lines; else each result is shortened in its place.  ``recent_results``,
    ``recent_turns``: so many of the newest steps keep their results, and what the model said and
    called, as long as the window allows it.  ``history``: the most room that the history gets, in
    tokens; a cut begins as soon as it pays.  None: all the room there is, and a cut begins at the
    trigger."""

    target: float
    folds: bool = True
    recent_results: int = 0
    recent_turns: int = 0
    history: int | None = None


PresetName = Literal["balanced", "economy", "in-place"]

PRESETS: dict[PresetName, Preset] = {
    "balanced": Preset(target=0.7),
    "economy": Preset(target=0.7, history=ECONOMY_ROOM),
    "in-place": Preset(target=0.6, folds=False, recent_results=5, recent_turns=10),
}
