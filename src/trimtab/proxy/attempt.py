"""One send: the request goes up, and its answer is held until it has begun to say something.

Knows when a stream has begun, and when status 200 hides an error.  Does not know what to do about
a refusal.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from trimtab.proxy import reading
from trimtab.proxy.bodies import unpacked
from trimtab.proxy.headers import Raw
from trimtab.proxy.reading import Usage
from trimtab.proxy.wire import Answer, Client, UpstreamFailed

MOST_ERROR_BYTES = 1_000_000
MOST_ANSWER_BYTES = 256_000_000
MOST_HELD_BYTES = 1_000_000
"""A stream that has said nothing by then is let go."""


@dataclass
class Sent:
    """An answer as far as it was read: ``held`` is what came, ``more`` what is still to come.

    ``error``: the text of a refusal, unpacked; None where the answer is one.  ``complete``:
    whether ``held`` is all of it.
    """

    status: int
    headers: Raw
    held: list[bytes]
    more: AsyncIterator[bytes] | None
    error: bytes | None = None
    complete: bool = False
    usage: Usage = field(default_factory=Usage)
    streamed: bool = False


class Attempt:
    """Sends once; ``close`` gives the connection back, or breaks it off."""

    def __init__(self, client: Client, format: str, *, stream: bool) -> None:
        self._client, self._format, self._stream = client, format, stream
        self._stack = AsyncExitStack()

    async def send(self, method: str, address: str, headers: Raw, body: bytes) -> Sent:
        """The answer, or what the provider said instead.  Raises UpstreamFailed."""
        sending = self._client.send(method, address, headers, body)
        answer = await self._stack.enter_async_context(sending)
        if answer.status >= 400:
            return await self._refusal(answer)
        events = "event-stream" in answer.type or "eventstream" in answer.type
        if answer.encoding not in ("", "identity"):
            return Sent(answer.status, answer.headers, [], answer.parts())
        if events:
            return await self._opened(answer)
        if self._stream and "json" not in answer.type:
            return Sent(answer.status, answer.headers, [], answer.parts(), streamed=True)
        return await self._whole(answer)

    async def close(self) -> None:
        """The connection is no longer needed."""
        await self._stack.aclose()

    async def _refusal(self, answer: Answer) -> Sent:
        raw = await answer.whole(MOST_ERROR_BYTES)
        text = unpacked(raw, answer.encoding, MOST_ERROR_BYTES)
        error = raw if text is None else text
        return Sent(answer.status, answer.headers, [raw], None, error, complete=True)

    async def _whole(self, answer: Answer) -> Sent:
        """An answer in one piece.  A stream of Gemini's that is no events comes as JSON, too."""
        if self._stream:
            return await self._listed(answer)
        raw = await answer.whole(MOST_ANSWER_BYTES)
        tree = reading.parsed(raw)
        error = raw if not raw.strip() or reading.is_error(tree) else None
        sent = Sent(answer.status, answer.headers, [raw], None, error, complete=True)
        sent.usage.take(tree)
        return sent

    async def _listed(self, answer: Answer) -> Sent:
        """A stream as one JSON array: its first piece tells an error."""
        parts = answer.parts()
        first = await anext(parts, b"")
        if b'"error"' in first[:200]:
            whole = first + b"".join([part async for part in parts])
            if reading.is_error(reading.parsed(whole)):
                return Sent(answer.status, answer.headers, [whole], None, whole, complete=True)
            return Sent(answer.status, answer.headers, [whole], None, complete=True)
        return Sent(answer.status, answer.headers, [first], parts, streamed=True)

    async def _opened(self, answer: Answer) -> Sent:
        """Read events until one has content, or is an error, or nothing comes any more."""
        sent = Sent(answer.status, answer.headers, [], None, streamed=True)
        frames, parts, size = reading.frames_for(self._format), answer.parts(), 0
        async for part in parts:
            sent.held.append(part)
            size += len(part)
            for event in frames.feed(part):
                tree = reading.parsed(event.data)
                sent.usage.take(tree)
                match reading.says(self._format, event, tree):
                    case "error":
                        sent.error, sent.more = event.data, parts
                        return sent
                    case "content":
                        sent.more = parts
                        return sent
            if size > MOST_HELD_BYTES:
                sent.more = parts
                return sent
        sent.complete = True
        sent.error = b""  # a stream that says nothing at all
        return sent


__all__ = ["Attempt", "Sent", "UpstreamFailed"]
