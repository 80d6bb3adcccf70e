"""Finds a fold again after the client emptied results that the fold had replaced.

Coding agents take old tool results out of their own history to save tokens.  What the fold shows is
then the better rest of them, and a new fold would break the prompt cache for nothing.  Only texts
that agents are known to put in place of a result count: any other change is the client's will.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trimtab.transcript.model import Block, Edit, Place
from trimtab.transcript.transcript import Transcript

CLEARED_TEXTS = ("<tool_output_masked>", "[Old tool result content cleared]")
"""How a result begins that its client emptied: Gemini CLI 0.61.0; Claude Code 2.1, opencode 1.18
and Qwen Code 0.15."""


def is_cleared(block: Block) -> bool:
    """Whether this is a result that the client emptied."""
    return block.kind == "result" and block.text.lstrip().startswith(CLEARED_TEXTS)


def retargeted(transcript: Transcript, edit: Edit, places: Sequence[Place]) -> Edit:
    """The edit with the refs that its blocks have now.

    The same edit unless its anchor is still there, and around it the same blocks in the same order,
    of which some results were emptied.  ``places``: every block of the messages, in order.
    """
    anchor = transcript.refs.get(edit.anchor)
    if anchor is None or edit.anchor not in edit.targets:
        return edit
    at = next(n for n, place in enumerate(places) if place == anchor)
    first = at - edit.targets.index(edit.anchor)
    run = places[first : first + len(edit.targets)] if first >= 0 else ()
    same = len(run) == len(edit.targets) and all(
        place.block.digest == target.partition(".")[0] or is_cleared(place.block)
        for place, target in zip(run, edit.targets, strict=True)
    )
    return replace(edit, targets=tuple(map(transcript.ref, run))) if same else edit
