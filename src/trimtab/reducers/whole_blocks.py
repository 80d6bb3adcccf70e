"""Reduces whole blocks: images and documents to a line of text, old reasoning to nothing."""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.reducers.base import Config, Offer, json_bytes
from trimtab.transcript.model import Block

LOSS_MEDIA = 0.9
FRAME_BYTES = 24
"""Bytes of JSON around the text of a text part: ``{"type":"text","text":}``."""


def media(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for an image or document: ``[image left out to fit]``, loss 0.9.

    No offer if the line would cost as much as the block.  The recall tool is not mentioned: it
    answers in text, and a payload as text is of no use to the model.
    """
    if not block.media:
        return
    size = f", {len(block.text):,} chars," if block.text else ""
    text = f"[{block.media}{size} left out to fit]"
    if block.payload_bytes and json_bytes(text) + FRAME_BYTES >= block.payload_bytes:
        return
    if config.count(text) < block.fixed_tokens + config.count(block.text):
        yield Offer("replace", text, LOSS_MEDIA, "media", f"{block.media} to a line of text")


LOSS_REASONING = 0.3


def reasoning(block: Block, config: Config) -> Iterator[Offer]:
    """One offer for a reasoning block: its removal, loss 0.3.  No offer if it costs no tokens."""
    if block.kind == "reasoning" and (block.fixed_tokens or config.count(block.text)):
        yield Offer("remove", "", LOSS_REASONING, "reasoning", "earlier reasoning removed")
