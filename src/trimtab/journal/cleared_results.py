"""Results that the client emptied in its own history: finds a fold of them again, tells new ones.

Coding agents replace old tool results in their own history with a short fixed text, to save tokens.
The fold shows more of such a result than that text does, and a new fold would break the prompt
cache without need.  Only the texts that agents are known to use count.  After any other change the
old result may not be sent on: the client may have taken a secret out.  A result that was still sent
whole breaks the prompt cache when it is emptied, whatever we do.
"""

from __future__ import annotations

from dataclasses import replace

from trimtab.transcript.model import Block, Edit
from trimtab.transcript.transcript import Transcript

CLEARED_TEXTS = ("<tool_output_masked>", "[Old tool result content cleared]")
"""How a result begins that its client emptied: Gemini CLI 0.61.0; Claude Code 2.1, opencode 1.18
and Qwen Code 0.15."""


def is_cleared(block: Block) -> bool:
    """Whether this is a result that the client emptied."""
    return block.kind == "result" and block.text.lstrip().startswith(CLEARED_TEXTS)


def cleared_key(ref: str) -> str:
    """The name under which a journal remembers that a result was seen empty."""
    return f"cleared {ref}"


def retargeted(transcript: Transcript, edit: Edit) -> Edit:
    """The edit with the refs that its blocks have now.

    It is the same edit unless its anchor is still there, and around it the same blocks in the same
    order, except that some results are empty now.
    """
    anchor = transcript.refs.get(edit.anchor)
    if anchor is None or edit.anchor not in edit.targets:
        return edit
    places = list(transcript.places())
    first = places.index(anchor) - edit.targets.index(edit.anchor)
    run = places[first : first + len(edit.targets)] if first >= 0 else ()
    same = len(run) == len(edit.targets) and all(
        place.block.digest == target.partition(".")[0] or is_cleared(place.block)
        for place, target in zip(run, edit.targets, strict=True)
    )
    return replace(edit, targets=tuple(map(transcript.ref, run))) if same else edit
