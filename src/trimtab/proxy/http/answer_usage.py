"""The token usage of an answer, read from its body or from the events of its stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from trimtab.formats import FORMATS
from trimtab.formats.engine.stream_events import (
    AwsEventReader,
    EventReader,
    ServerSentEventReader,
    parsed,
)
from trimtab.pricing.call_usage import CallUsage
from trimtab.pricing.reported_usage import read_cleared, read_diagnosis, read_usage
from trimtab.proxy.http.routes import Route
from trimtab.sessions.response_chains import chained_answer


@dataclass(slots=True)
class TokenUsage:
    """Tokens as the provider billed them.  ``prompt`` includes cached tokens.

    ``sent``: tokens of the prompt as it was sent; None where the provider compacted it.
    ``managed``: the provider cleared or compacted context itself.
    """

    prompt: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    written_1h: int = 0
    """The part of ``written`` that is cached for an hour."""
    sent: int | None = 0
    managed: bool = False
    diagnosis: str = ""
    """The provider's own finding on its prompt cache; "" if the answer has none."""
    chained: Any = field(default=None, repr=False, compare=False)
    """The answer, if a later request may name its id in place of the history."""

    def take(self, answer: Any) -> None:
        """Take the usage of an answer or an event; later numbers replace earlier ones."""
        self.chained = chained_answer(answer) or self.chained
        self.diagnosis = read_diagnosis(answer) or self.diagnosis
        usage = read_usage(answer)
        if usage is None:
            if (cleared := read_cleared(answer)) is not None and self.sent:
                self.sent, self.managed = self.sent + cleared, True
            return
        self.prompt = usage.input_tokens or self.prompt
        self.sent = usage.sent or (None if usage.compacted else self.sent)
        self.managed = self.managed or usage.managed
        self.cached, self.written = usage.read or self.cached, usage.written or self.written
        self.output = usage.output_tokens or self.output
        self.written_1h = usage.written_1h or self.written_1h

    def call(self, model: str) -> CallUsage:
        """The usage split into the kinds of token that have a price."""
        plain = max(self.prompt - self.cached - self.written, 0)
        five = max(self.written - self.written_1h, 0)
        return CallUsage(model, plain, self.cached, five, self.written_1h, self.output)

    @property
    def counts(self) -> dict[str, Any] | None:
        """The usage as ``Session.observe`` takes it; None where the answer had none."""
        if not self.prompt or not self.sent:
            return None
        counts = {"prompt_tokens": self.sent, "completion_tokens": self.output}
        if not self.managed:
            return counts
        return {"usage": counts, "context_management": {"applied_edits": []}}


class UsageReader:
    """Reads the usage from a stream.  Only events that may hold a usage are parsed, and all of a
    format whose last event has only a part of the answer."""

    def __init__(self, route: Route, usage: TokenUsage) -> None:
        self._frames, self._usage = frames_for(route), usage
        format = FORMATS.get(route.format)
        assembler = format and format.rewriter.assembler
        self._answer = assembler() if assembler else None

    def feed(self, part: bytes) -> None:
        """Reads the next bytes of the stream."""
        for event in self._frames.feed(part):
            if b"sage" in event.data:
                self._usage.take(parsed(event))
            if self._answer is not None and isinstance(parsed_event := parsed(event), dict):
                self._usage.chained = self._answer.take(parsed_event) or self._usage.chained


def frames_for(route: Route) -> EventReader:
    """The reader that splits the stream of a route into events."""
    return AwsEventReader() if route.framed else ServerSentEventReader()
