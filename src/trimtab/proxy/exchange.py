"""One request for an answer: sent, sent again where that helps, answered.

Knows the order of things and when a byte has left for the client: nothing is sent again after.
Does not know what is sent (``plan``), nor what a refusal means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from trimtab.proxy import aws
from trimtab.proxy.asgi import Header, Reply
from trimtab.proxy.attempt import Attempt, Sent
from trimtab.proxy.headers import Raw, downwards, upwards
from trimtab.proxy.reading import Usage, Watch
from trimtab.proxy.routes import Route
from trimtab.proxy.upstreams import Upstream
from trimtab.proxy.wire import Client


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

    async def first(self, body: bytes, *, stream: bool) -> bytes | None:
        """The body to send; None for what came, as it came."""
        ...

    async def answered(self, sent: Sent) -> bytes | None:
        """The body to send instead; None: pass this answer on."""
        ...

    def finished(self, usage: Usage) -> None:
        """The answer was passed on, or as much of it as the client wanted."""
        ...

    def told(self) -> list[Header]:
        """Headers of ours for the answer."""
        ...


class Exchange:
    """Answers one call.  ``planned`` says what to send, and what after a refusal."""

    def __init__(self, call: Call, client: Client, planned: Plan, reply: Reply) -> None:
        self._call, self._client, self._planned, self._reply = call, client, planned, reply
        self._last: Attempt | None = None
        self.usage = Usage()
        """What it cost, as far as the answer was read."""

    async def run(self, original: bytes, text: bytes | None) -> None:
        """Send and answer.

        ``original``: the body as it came; ``text``: unpacked, None where nobody can.  Raises
        UpstreamFailed where nothing came, or the answer broke off: then either no byte has been
        passed on, or the connection to the client has to break, too.
        """
        stream = self._call.route.streams
        stream = wants_stream(text or b"") if stream is None else stream
        try:
            body = None if text is None else await self._planned.first(text, stream=stream)
            while True:
                changed = body is not None
                sent = await self._send(original if body is None else body, changed, stream)
                again = await self._planned.answered(sent)
                if again is None:
                    break
                body = again
            self.usage = sent.usage
            await self._deliver(sent)
        finally:
            # Clients hang up as soon as they have read what they wait for: that counts, too.
            if self.usage.prompt:
                self._planned.finished(self.usage)
            if self._last is not None:
                await self._last.close()

    async def _send(self, body: bytes, repacked: bool, stream: bool) -> Sent:
        if self._last is not None:
            await self._last.close()
        call = self._call
        self._last = Attempt(self._client, call.route.format, stream=stream)
        headers = call.headers(body, repacked=repacked)
        return await self._last.send(call.method, call.address, headers, body)

    async def _deliver(self, sent: Sent) -> None:
        """Pass the answer on as it comes."""
        reply = self._reply
        await reply.begin(sent.status, [*downwards(sent.headers), *self._planned.told()])
        watch = Watch(self._call.route.format, sent.usage) if sent.streamed else None
        async for part in sent.parts():
            if watch is not None:
                watch.feed(part)
            await reply.part(part)
        await reply.end()


def wants_stream(body: bytes) -> bool:
    """Whether a body asks for a stream.  A guess that costs nothing: it decides only whether an
    answer is held like a stream although its type says nothing."""
    return b'"stream":true' in body or b'"stream": true' in body
