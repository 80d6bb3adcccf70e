"""Puts originals back into an agent's state that has only what was sent in their place.

With ``persist`` the state is shortened itself: after ``undo`` there is no original in the next
request that could be left whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trimtab import formats
from trimtab.clients.langchain.adapter import MessageAdapter, Tree
from trimtab.errors import TrimtabError
from trimtab.formats.registry import FORMATS
from trimtab.jsontext import paths
from trimtab.planning.operations import in_order, operations
from trimtab.session import Session
from trimtab.sessions.edit_history import undone_edits
from trimtab.transcript.model import Block, Edit


def with_originals(adapter: MessageAdapter, session: Session, conversation: str) -> Tree:
    """The body of ``adapter`` with the originals of what was undone; the very body if there is
    nothing to put back."""
    undone = undone_edits(session, conversation)
    shown = {edit.text for edit in undone}
    if not shown:
        return adapter.body
    transcript = formats.read(adapter.body, FORMATS[adapter.format])
    edits = []
    for place in transcript.places():
        if place.block.text in shown and (text := _original(session, place.block, undone)):
            edits.append(Edit("replace", (transcript.ref(place),), text, "undo", "asked for"))
    if not edits:
        return adapter.body
    put_back = operations(transcript, adapter.body, edits)
    restored: Any = paths.apply(adapter.body, in_order(put_back))
    return dict(restored)


def _original(session: Session, block: Block, undone: list[Edit]) -> str:
    """The original of a block that has the text of an edit; "" if none is of this very block:
    several edits may leave the same words."""
    for edit in undone:
        if edit.text != block.text:
            continue
        try:
            text = session.recall(edit.handle)
        except TrimtabError:  # purged, or the store does not answer
            continue
        if edit.targets[0].startswith(replace(block, text=text).digest):
            return text
    return ""
