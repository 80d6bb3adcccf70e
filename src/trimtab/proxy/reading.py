"""What an answer says it cost, read as it passes.

Knows how streams of each format are cut and which of their events can hold a usage.  Does not know
requests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from trimtab.money.billed import billed
from trimtab.proxy.frames import AwsFrames, Event, Frames, ServerSent


@dataclass(slots=True)
class Usage:
    """Tokens as the provider counted them: of the prompt (cached ones included), output."""

    prompt: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0

    def take(self, answer: Any) -> None:
        """Add what an answer or an event says; later numbers replace earlier ones."""
        found = billed(answer)
        if found is None:
            return
        self.prompt = found.input_tokens or self.prompt
        self.cached, self.written = found.read or self.cached, found.written or self.written
        self.output = found.output_tokens or self.output

    def add(self, other: Usage) -> None:
        """Another call of the model for the same answer: its prompt is what counts, its output is
        added."""
        self.prompt, self.cached = other.prompt or self.prompt, other.cached or self.cached
        self.written += other.written
        self.output += other.output

    @property
    def bill(self) -> dict[str, int] | None:
        """As the library takes a usage; None where nothing was said."""
        if not self.prompt:
            return None
        return {"prompt_tokens": self.prompt, "completion_tokens": self.output}


class Watch:
    """Reads the usage out of a stream; what cannot hold one is not parsed."""

    def __init__(self, format: str, usage: Usage) -> None:
        self._frames, self._usage = frames_for(format), usage

    def feed(self, part: bytes) -> None:
        """The next piece."""
        for event in self._frames.feed(part):
            if b"sage" in event.data:
                self._usage.take(parsed(event))


def frames_for(format: str) -> Frames:
    """How streams of this format are cut."""
    return AwsFrames() if format == "bedrock" else ServerSent()


def parsed(event: Event) -> Any:
    """The JSON in an event; None where there is none."""
    try:
        return json.loads(event.data)
    except (ValueError, RecursionError):
        return None
