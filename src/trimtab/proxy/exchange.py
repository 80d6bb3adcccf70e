"""One request for an answer: sent, sent again where that helps, answered.

Knows the order of things and when a byte has left for the client: nothing is sent again after.
Does not know what is sent (``plan``), nor what a refusal means.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from trimtab.proxy import aws, logs
from trimtab.proxy.asgi import Header, Reply
from trimtab.proxy.attempt import Attempt, Sent
from trimtab.proxy.frames import Event
from trimtab.proxy.headers import Raw, downwards, upwards
from trimtab.proxy.plan import aside
from trimtab.proxy.reading import Usage, Watch, frames_for, parsed
from trimtab.proxy.recall import Recaller
from trimtab.proxy.recall.voice import Voice, dumped
from trimtab.proxy.routes import Route
from trimtab.proxy.upstreams import Upstream
from trimtab.proxy.wire import Client, UpstreamFailed

T = TypeVar("T")
_EDGE = 4_000


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

    async def finished(self, usage: Usage) -> None:
        """What the answer cost is known; told once."""
        ...

    def told(self) -> list[Header]:
        """Headers of ours for the answer."""
        ...


class Exchange:
    """Answers one call.

    ``plan`` makes what says what to send, and what after a refusal: one for each round.  With a
    ``recaller`` an answer may take several rounds.
    """

    def __init__(
        self, call: Call, client: Client, plan: Callable[[], Plan], reply: Reply,
        recaller: Recaller | None = None, *, far: bool = False,
    ) -> None:  # fmt: skip
        self._call, self._client, self._reply, self._far = call, client, reply, far
        self._plan, self._recaller = plan, recaller
        self._planned: Plan | None = None
        self._learned: Plan | None = None
        self._last: Attempt | None = None
        self.usage = Usage()
        """What it cost, as far as the answer was read."""

    async def run(self, original: bytes, text: bytes | None) -> None:
        """Send and answer.

        ``original``: the body as it came; ``text``: unpacked, None where nobody can.  Raises
        UpstreamFailed where nothing came, or the answer broke off: then either no byte has been
        passed on, or the connection to the client has to break, too.
        """
        ready = None
        if self._recaller is not None and text is not None:
            recaller = self._recaller
            ready = await self._safely(text, lambda: recaller.prepared(text))
        self._planned = self._plan()
        try:
            if ready is None:
                self._recaller = None
                sent = await self._obtained(original, text)
                self.usage = sent.usage
                await self._deliver(sent)
            else:
                sent = await self._obtained(ready, ready)
                self.usage = sent.usage
                await (self._deliver(sent) if _unread(sent) else self._rounds(sent))
        finally:
            if self._last is not None:
                await self._last.close()

    async def _learn(self) -> None:
        """Learn what a round cost as soon as that is known: before the client can send its next
        request, perhaps through another replica, and hang up on this one."""
        if self.usage.prompt and self._planned is not None and self._learned is not self._planned:
            self._learned = self._planned
            await self._planned.finished(self.usage)

    async def _obtained(self, original: bytes, text: bytes | None) -> Sent:
        """An answer, or the refusal that stands."""
        stream = self._call.route.streams
        stream = wants_stream(text or b"") if stream is None else stream
        assert self._planned is not None
        body = None if text is None else await self._planned.first(text, stream=stream)
        while True:
            repacked = body is not None or self._recaller is not None
            sent = await self._send(original if body is None else body, repacked, stream)
            again = await self._planned.answered(sent)
            if again is None:
                return sent
            body = again

    async def _send(self, body: bytes, repacked: bool, stream: bool) -> Sent:
        if self._last is not None:
            await self._last.close()
        call = self._call
        self._last = Attempt(self._client, call.route.format, stream=stream)
        headers = call.headers(body, repacked=repacked)
        return await self._last.send(call.method, call.address, headers, body)

    async def _begin(self, sent: Sent) -> None:
        if not self._reply.begun:
            length = self._recaller is None
            told = self._planned.told() if self._planned else []
            await self._reply.begin(sent.status, [*downwards(sent.headers, length=length), *told])

    async def _deliver(self, sent: Sent) -> None:
        """Pass the answer on as it comes."""
        self._recaller = None
        await self._learn()
        await self._begin(sent)
        watch = Watch(self._call.route.format, sent.usage) if sent.streamed else None
        async for part in sent.parts():
            if watch is not None:
                watch.feed(part)
                await self._learn()
            await self._reply.part(part)
        await self._reply.end()

    # --- with the recall tool ------------------------------------------------------------------

    async def _rounds(self, sent: Sent) -> None:
        """Pass the answer on without calls of the tool; answer these, and go on."""
        recaller = self._recaller
        assert recaller is not None
        voice = recaller.voice
        while True:
            voice.begin()
            if sent.streamed:
                await self._spoken(sent, voice)
            elif not await self._said(sent, voice) and recaller.rounds == 1:
                await self._deliver(sent)
                return
            text = await self._safely(b"", recaller.follow)
            following = None if text is None else await self._followed(text)
            if following is None:
                break
            voice.follow()
            sent = following
        await self._safely(b"", recaller.remember)
        if sent.streamed:
            await self._reply.part(await self._safely(b"", voice.end) or b"")
            await self._reply.end()
            return
        changed = voice.recalls or recaller.rounds > 1
        said = await self._safely(b"", lambda: dumped(voice.answer())) if changed else None
        if said is None:  # nothing was left out, or nobody knows how
            await self._deliver(sent)
            return
        told = self._planned.told() if self._planned else []
        headers = [*downwards(sent.headers, length=False), *told]
        await self._reply.whole(sent.status, headers, said)

    async def _spoken(self, sent: Sent, voice: Voice) -> None:
        await self._begin(sent)
        frames = frames_for(self._call.route.format)
        async for part in sent.parts():
            for event in frames.feed(part):
                if b"sage" in event.data:
                    sent.usage.take(parsed(event))
                    await self._learn()
                await self._reply.part(_told(voice, event))
        await self._reply.part(frames.rest())

    async def _said(self, sent: Sent, voice: Voice) -> bool:
        """Take a whole answer in; False where it is none that can be read."""
        await self._learn()
        try:
            voice.whole(json.loads(b"".join(sent.held)))
        except Exception as error:
            logs.fault("recall", error)
            return False
        return True

    async def _followed(self, text: bytes) -> Sent | None:
        """The answer to the next round; None where it is refused: then what was said is all."""
        self._planned = self._plan()
        try:
            sent = await self._obtained(text, text)
        except UpstreamFailed:
            return None
        if sent.refused:
            return None
        before, self.usage = self.usage, sent.usage
        self.usage.output += before.output
        return sent

    async def _safely(self, body: bytes, work: Callable[[], T]) -> T | None:
        """Do it aside; a fault of ours is told, and nothing comes of it."""
        try:
            return await aside(body, work, far=self._far)
        except Exception as error:
            logs.fault("recall", error)
            return None


def _told(voice: Voice, event: Event) -> bytes:
    """What a voice makes of an event; the event itself where that is a fault of ours."""
    try:
        return voice.event(event)
    except Exception as error:
        logs.fault("recall", error)
        return event.raw


def _unread(sent: Sent) -> bool:
    """Whether an answer is nothing that a voice can speak: a refusal, or packed."""
    return sent.refused or (not sent.streamed and sent.more is not None)


def wants_stream(body: bytes) -> bool:
    """Whether a body asks for a stream, by its edges.  A guess that costs nothing: it decides only
    whether an answer is held like a stream although its type says nothing."""
    edges = body[:_EDGE] + body[-_EDGE:]
    return b'"stream":true' in edges or b'"stream": true' in edges
