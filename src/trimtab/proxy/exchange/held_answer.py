"""Sends a request once and holds its answer until the first content has arrived.

``retry.refusals`` says which answers hold an error, ``retry.flow`` what to do about a refusal.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from typing import Any

from trimtab.proxy.http.answer_usage import TokenUsage
from trimtab.proxy.http.headers import Raw
from trimtab.proxy.http.http_client import HttpAnswer, HttpClient
from trimtab.retry.content_encoding import unpacked
from trimtab.retry.refusals.response_errors import error_in_body
from trimtab.retry.refusals.stream_start import StreamStart

HOLD_SECONDS = 15.0
"""Seconds that a stream of nothing but comments is held back at most.  Clients give up on a silent
stream; the least patient one after half a minute."""
MAX_ERROR_BYTES = 1_000_000
MAX_ANSWER_BYTES = 8_000_000
"""Bytes.  A longer answer is passed on unread, since parsing it would block all other requests."""


@dataclass
class HeldAnswer:
    """An answer received so far: ``held`` are the bytes received, ``more`` yields the rest.

    ``refused``: whether it is a refusal, and ``error`` its body; ``streamed``: whether it is a
    stream of events; ``whole``: whether ``held`` is one JSON answer, and ``answer`` its parsed
    form; ``usage``: the usage that it reports, as far as it was read.
    """

    status: int
    headers: Raw
    held: list[bytes]
    more: AsyncIterator[bytes] | None = None
    refused: bool = False
    error: Any = None
    streamed: bool = False
    whole: bool = False
    encoding: str = ""
    answer: Any = None
    usage: TokenUsage = field(default_factory=TokenUsage)

    def read(self) -> None:
        """Parse a whole answer, or the body of a refusal.  Runs in a worker thread: it may be
        long."""
        if self.streamed:
            return
        raw = b"".join(self.held)
        if self.refused:
            text = unpacked(raw, self.encoding, MAX_ERROR_BYTES)
            self.error = raw if text is None else text
        elif self.whole:
            try:
                self.answer = json.loads(raw) if raw else raw
            except (ValueError, RecursionError):
                return
            # Some gateways answer 200 with nothing instead of an error; 202, 204 and redirects may.
            if raw or self.status == 200:
                self.error = error_in_body(self.answer)
            self.refused = self.error is not None
            self.usage.take(self.answer)

    async def parts(self) -> AsyncIterator[bytes]:
        """The held bytes, then the rest as it arrives.  Raises UpstreamFailed."""
        for part in self.held:
            yield part
        if self.more is not None:
            async for part in self.more:
                yield part


class Attempt:
    """Sends a request once; ``close`` returns the connection to the pool, or breaks it off."""

    def __init__(self, client: HttpClient, *, framed: bool, stream: bool) -> None:
        self._client, self._framed, self._stream = client, framed, stream
        self._stack = AsyncExitStack()

    async def send(self, method: str, address: str, headers: Raw, body: bytes) -> HeldAnswer:
        """The answer or the refusal.  Raises UpstreamFailed."""
        sending = self._client.send(method, address, headers, body, waits=True)
        answer = await self._stack.enter_async_context(sending)
        if answer.status >= 400:
            return await self._refusal(answer)
        if answer.encoding not in ("", "identity"):
            return HeldAnswer(answer.status, answer.headers, [], answer.parts())
        if "event-stream" in answer.type or "eventstream" in answer.type:
            return await self._opened(answer)
        if not self._stream:
            return await self._whole(answer)
        async with aclosing(answer.parts()) as parts:
            first = await anext(parts, b"")
        # ``streams`` may be a guess; an answer declared as JSON is a whole answer.
        whole = answer.type.startswith("application/json") and first.lstrip()[:1] == b"{"
        return await (self._whole if whole else self._opened)(answer, first)

    async def close(self) -> None:
        """Release the connection."""
        await self._stack.aclose()

    async def _refusal(self, answer: HttpAnswer) -> HeldAnswer:
        raw = await answer.whole(MAX_ERROR_BYTES)
        more = answer.parts() if len(raw) > MAX_ERROR_BYTES else None
        return HeldAnswer(
            answer.status, answer.headers, [raw], more, refused=True, encoding=answer.encoding
        )

    async def _whole(self, answer: HttpAnswer, first: bytes = b"") -> HeldAnswer:
        """A whole answer.  ``first``: the bytes read so far."""
        raw = first + await answer.whole(MAX_ANSWER_BYTES)
        if len(raw) > MAX_ANSWER_BYTES:
            return HeldAnswer(answer.status, answer.headers, [raw], answer.parts())
        return HeldAnswer(answer.status, answer.headers, [raw], whole=True)

    async def _opened(self, answer: HttpAnswer, first: bytes = b"") -> HeldAnswer:
        """Hold a stream until it has content, is an error, ends, or ``HOLD_SECONDS`` have passed,
        so that a client with a read timeout does not give up.  ``first``: the bytes read so far."""
        sent = HeldAnswer(answer.status, answer.headers, [], streamed=True)
        opening, parts = (
            StreamStart(frames=self._framed),
            _after(first, answer.parts()),
        )
        began = time.monotonic()
        async for part in parts:
            sent.held.append(part)
            if opening.feed(part) or time.monotonic() - began >= HOLD_SECONDS:
                sent.more = parts
                break
        else:
            opening.end()
        sent.refused, sent.error = opening.verdict == "refused", opening.error
        return sent


async def _after(first: bytes, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """``first`` if it is not empty, then the parts."""
    if first:
        yield first
    async for part in parts:
        yield part
