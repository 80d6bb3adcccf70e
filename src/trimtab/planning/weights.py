"""What each identifier of a conversation weighs: most where the agent itself wrote it.

Knows blocks, their lines and who wrote them.  Does not know which lines will be kept.  Goes on
where it ended, so that a batch reads what is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from trimtab.model import Block, Message, Transcript
from trimtab.planning.lines import Lines, lines_of

WRITTEN, REUSED = 4.0, 2.5
"""How much more an identifier counts that the agent ever wrote, and that it wrote after it had
seen it (tried on recorded sessions: docs/benchmark.md)."""


def counts(block: Block) -> bool:
    """Whether a block has lines that are weighed."""
    return block.kind in ("text", "call", "result") and bool(block.text)


class Weights:
    """Of the messages that were added, in order.  What is missing weighs 1."""

    def __init__(self) -> None:
        self.messages: tuple[Message, ...] = ()
        self.weights: dict[str, float] = {}
        self._seen: set[str] = set()

    def add(self, blocks: Iterable[tuple[bool, Lines]]) -> None:
        """Go on with these blocks, each with whether the agent wrote it."""
        seen, weights = self._seen, self.weights
        for own, lines in blocks:
            if own:
                weights |= dict.fromkeys(lines.names - weights.keys(), WRITTEN)
                weights |= dict.fromkeys(lines.names & seen, WRITTEN * REUSED)
            seen |= lines.names

    def go_on(self, messages: tuple[Message, ...], read: Callable[[Block], Lines]) -> bool:
        """Add what is new in these messages; False where they begin otherwise."""
        old = len(self.messages)
        if messages[:old] != self.messages:
            return False
        new = messages[old:]
        self.add((m.role == "assistant", read(b)) for m in new for b in m.blocks if counts(b))
        self.messages = messages
        return True


def weights_in(
    transcript: Transcript, read: Callable[[Block], Lines] = lines_of
) -> Mapping[str, float]:
    """The weights in a transcript."""
    found = Weights()
    found.go_on(transcript.messages, read)
    return found.weights
