"""Recognise a client's own requests: for a title, a summary of the conversation, a classification.

They share a session with the conversation but are not part of it.  They are reduced only where they
would exceed the limits, never for the target.  No edit made for them is written to the journal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trimtab.transcript.model import Message
from trimtab.transcript.transcript import MessagePass, Transcript

SIGNATURES = (
    "You are a title generator",
    "Generate a title for this conversation",
    "Analyze if this message indicates a new conversation topic",
    "Your task is to create a detailed summary of the conversation",
    "You are a helpful AI assistant tasked with summarizing conversations",
    "Provide a detailed prompt for continuing our conversation",
    "You are performing a CONTEXT CHECKPOINT COMPACTION",
    "You are the component that summarizes internal chat history",
    "First, reason in your scratchpad. Then, generate the <state_snapshot>",
)
"""How the system text or the user's last message of such a request begins."""


def is_client_request(transcript: Transcript, signatures: Sequence[str]) -> bool:
    """Whether a system text or a text of the user's last message begins with a signature."""
    return bool(signatures) and begins_with_any(_instructions(transcript), signatures)


def begins_with_any(texts: Iterable[str], signatures: Sequence[str] = SIGNATURES) -> bool:
    """Whether a text begins with a signature; case and surrounding blanks are ignored."""
    begins = tuple(signature.strip().casefold() for signature in signatures if signature.strip())
    longest = max(map(len, begins), default=0)
    return any(text[: 2 * longest + 64].lstrip().casefold().startswith(begins) for text in texts)


def _instructions(transcript: Transcript) -> list[str]:
    texts = [block.text for block in transcript.head if block.kind in ("system", "text")]
    texts += [b.text for m in transcript.messages[:2] if m.role == "system" for b in m.blocks]
    newest = transcript.passed(_Said).last
    blocks = () if newest is None else transcript.messages[newest].blocks
    return texts + [b.text for b in blocks if b.kind == "text" and b.call_id is None]


class _Said(MessagePass):
    """The index of the user's last message."""

    last: int | None = None

    def add(self, number: int, message: Message) -> None:
        if message.role == "user":
            self.last = number
