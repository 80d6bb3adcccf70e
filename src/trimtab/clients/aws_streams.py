"""Converse streams of several rounds as one, in botocore's parsed events."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from trimtab.clients.answer_rounds import shown
from trimtab.clients.effects import Effects, chunks
from trimtab.formats.engine.aws_event_stream import AwsFrame, AwsFrameReader, event_frame
from trimtab.formats.engine.stream_events import AwsEventReader
from trimtab.retry.own_header import ROUNDS
from trimtab.rounds.answer_steps import steps
from trimtab.rounds.recall_rounds import RecallRounds


class RoundsStream:
    """The events of one round after the other, as one answer.

    ``events``: those of the first round; ``send`` sends a body and returns the events of its
    answer, or raises what botocore raises, which the reader of this stream then gets; ``headers``
    are told the number of rounds.
    """

    def __init__(
        self, rounds: RecallRounds, events: Any, send: Callable[[bytes], Any],
        headers: dict[str, str],
    ) -> None:  # fmt: skip
        self._rounds, self._events, self._send = rounds, events, send
        self._headers = headers
        self._frames = map(_framed, events)
        self._shown = self._made()

    def __iter__(self) -> Iterator[Any]:
        """All events in order."""
        return self._shown

    def _made(self) -> Iterator[Any]:
        frames, run = AwsFrameReader(), steps(self._rounds, AwsEventReader)
        for data in chunks(shown(run, self._read, self._next_round)):
            yield from map(_event, frames.feed(data))

    def _read(self) -> Effects[bytes | None]:
        frame: bytes | None = yield partial(next, self._frames, None)
        return frame

    def _next_round(self, body: bytes) -> Effects[None]:
        self._events.close()
        self._events = yield partial(self._send, body)
        self._frames = map(_framed, self._events)
        self._headers[ROUNDS] = str(self._rounds.rounds)

    def close(self) -> None:
        """Release the connection of the newest round."""
        self._events.close()


def _framed(event: Mapping[str, Any]) -> bytes:
    """A parsed event as the frame that it was."""
    name = next(iter(event))
    text = json.dumps(event[name], default=lambda value: b64encode(value).decode())
    return event_frame(name, text.encode())


def _event(frame: AwsFrame) -> dict[str, Any]:
    """A frame as botocore parses it: the only bytes are those of redacted reasoning."""
    value = json.loads(frame.payload)
    said = (value.get("delta") or {}).get("reasoningContent") or {}
    if isinstance(said.get("redactedContent"), str):
        said["redactedContent"] = b64decode(said["redactedContent"])
    return {frame.headers[":event-type"]: value}
