"""One request for an answer: made to fit, sent, sent again where that helps, answered.

Knows the order of things and when a byte has left for the client: nothing is sent again after.
Does not know how a request is made to fit, nor what a refusal means: ``flow`` does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from trimtab.proxy import aws, reading
from trimtab.proxy.asgi import Header, Reply
from trimtab.proxy.attempt import Attempt, Sent
from trimtab.proxy.headers import Raw, downwards, upwards
from trimtab.proxy.routes import Route
from trimtab.proxy.upstreams import Upstream
from trimtab.proxy.wire import Client

INLINE_BYTES = 20_000
"""Smaller bodies are made to fit on the spot; a thread would cost more than it frees."""
_THREADS = ThreadPoolExecutor(4, thread_name_prefix="trimtab-fit")


@dataclass(frozen=True)
class Call:
    """One request of a client, as far as sending needs it."""

    method: str
    path: str
    query: str
    raw_headers: Raw
    upstream: Upstream
    route: Route

    @property
    def address(self) -> str:
        """Where it goes."""
        return self.upstream.address(self.path, self.query)

    def headers(self, body: bytes, *, repacked: bool) -> Raw:
        """Its headers upwards, signed where the proxy signs."""
        signing = self.upstream.sign == "aws"
        readable = self.route.operation == "generate"
        fields = upwards(self.raw_headers, readable=readable, signed=signing)
        if repacked:
            fields = [pair for pair in fields if pair[0].lower() != b"content-encoding"]
        if signing:
            region = self.upstream.region
            fields = aws.signed(self.method, self.address, fields, body, region)
        return fields


class Plan(Protocol):
    """What to send, and what to send after a refusal."""

    async def first(self, original: bytes) -> bytes | None:
        """The body to send; None for what came, as it came."""
        ...

    async def refused(self, sent: Sent) -> bytes | None:
        """The body to send instead; None: pass the refusal on."""
        ...

    def told(self) -> list[Header]:
        """Headers of ours for the answer."""
        ...


async def aside(body: bytes, work: Callable[[], Any]) -> Any:
    """Run what takes a processor for a while, so that other answers keep flowing."""
    if len(body) <= INLINE_BYTES:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)


class Exchange:
    """Answers one call.  ``planned`` says what to send, and what after a refusal."""

    def __init__(self, call: Call, client: Client, planned: Plan, reply: Reply) -> None:
        self._call, self._client, self._planned, self._reply = call, client, planned, reply
        self._last: Attempt | None = None

    async def run(self, original: bytes, text: bytes | None) -> Sent:
        """Send and answer; what was answered last.

        ``original``: the body as it came; ``text``: unpacked, None where nobody can.

        Raises UpstreamFailed where nothing came, or the answer broke off: then either no byte has
        been passed on, or the connection to the client has to break, too.
        """
        try:
            body = None if text is None else await self._planned.first(text)
            while True:
                sent = await self._send(original if body is None else body, body is not None)
                if sent.error is None:
                    break
                again = await self._planned.refused(sent)
                if again is None:
                    break
                body = again
            await self._deliver(sent)
            return sent
        finally:
            if self._last is not None:
                await self._last.close()

    async def _send(self, body: bytes, repacked: bool) -> Sent:
        if self._last is not None:
            await self._last.close()
        call = self._call
        stream = call.route.streams
        if stream is None:
            stream = wants_stream(body)
        self._last = Attempt(self._client, call.route.format, stream=stream)
        headers = call.headers(body, repacked=repacked)
        return await self._last.send(call.method, call.address, headers, body)

    async def _deliver(self, sent: Sent) -> None:
        """Pass the answer on: what was held, then the rest as it comes."""
        reply = self._reply
        headers = [*downwards(sent.headers), *self._planned.told()]
        await reply.begin(sent.status, headers)
        watch = reading.frames_for(self._call.route.format) if sent.streamed else None
        for part in sent.held:
            await reply.part(part)
            if watch:
                sent.usage.watch(watch, part)
        if sent.more is not None:
            async for part in sent.more:
                await reply.part(part)
                if watch:
                    sent.usage.watch(watch, part)
        await reply.end()


def wants_stream(body: bytes) -> bool:
    """Whether a body asks for a stream; a guess that costs nothing: the answer's type decides."""
    return b'"stream":true' in body or b'"stream": true' in body
