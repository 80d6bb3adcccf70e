"""One request to a model: sends it, sends it again after a refusal that can be met, answers.

Nothing is sent again once a byte has gone to the client.  ``FlowDriver`` decides what is sent, and
what a refusal means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from trimtab.formats.body import RequestBody
from trimtab.formats.engine.stream_events import parsed
from trimtab.proxy.config.upstreams import Upstream
from trimtab.proxy.flow_driver import FlowDriver
from trimtab.proxy.held_answer import HOLD_SECONDS, Attempt, HeldAnswer
from trimtab.proxy.http import aws_signing
from trimtab.proxy.http.answer_usage import TokenUsage, UsageReader, frames_for
from trimtab.proxy.http.asgi import HttpResponse
from trimtab.proxy.http.headers import DIGESTS, Raw, downwards, upwards
from trimtab.proxy.http.http_client import HttpClient, UpstreamFailed
from trimtab.proxy.http.routes import Route
from trimtab.proxy.http.worker import in_worker
from trimtab.retry.own_header import ROUNDS
from trimtab.retry.refusals.stream_start import StreamStart
from trimtab.rounds import RecallRounds
from trimtab.rounds.answer_steps import guarded, rewritten
from trimtab.rounds.stream_rewriter import SaidError, StreamRewriter, dumped

T = TypeVar("T")


@dataclass(frozen=True)
class ClientRequest:
    """What sending a client's request needs."""

    method: str
    path: str
    query: str
    raw_headers: Raw
    upstream: Upstream
    route: Route

    @property
    def address(self) -> str:
        """The URL it is sent to."""
        return self.upstream.address(self.path, self.query)

    def headers(self, body: bytes, *, repacked: bool) -> Raw:
        """The headers sent to the provider, signed if the proxy signs for this upstream."""
        signing = self.upstream.sign == "aws"
        readable = self.route.operation == "generate"
        fields = upwards(self.raw_headers, readable=readable, signed=signing)
        if repacked:
            changed = {"content-encoding", *DIGESTS}
            fields = [pair for pair in fields if pair[0].decode("latin-1").lower() not in changed]
        if signing:
            region = self.upstream.region
            fields = aws_signing.signed(self.method, self.address, fields, body, region)
        return fields


class ProxiedRequest:
    """Answers one call.

    ``driver`` makes a ``FlowDriver`` for each round.  With ``recall`` an answer may take several
    rounds; ``on_usage`` receives the usage of the last one.
    """

    def __init__(
        self,
        call: ClientRequest,
        client: HttpClient,
        driver: Callable[[], FlowDriver],
        reply: HttpResponse,
        recall: RecallRounds | None = None,
        on_usage: Callable[[TokenUsage], None] = lambda usage: None,
    ) -> None:
        self._call, self._client, self._reply = call, client, reply
        self._new_driver, self._recall = driver, recall
        self._driver: FlowDriver
        self._last: Attempt | None = None
        self._on_usage = on_usage
        self.sent_body = b""
        """The body sent to the provider last."""
        self.usage = TokenUsage()
        """The usage, as far as the answer was read."""
        self.on_accepted: Callable[[], None] | None = None
        """Called in a worker thread once the provider has accepted the request."""

    async def run(self, original: bytes, parse: Callable[[], RequestBody | bytes | None]) -> None:
        """Send and answer.

        ``original``: the client's body; ``parse`` makes the body to fit, in a worker thread.
        Raises UpstreamFailed if there was no answer or it broke off: then either nothing has been
        passed on, or the connection to the client has to be broken too.
        """
        self._driver = self._new_driver()
        try:
            self._on_usage(self.usage)
            body = await self._driver.first(parse, self._offers_recall)
            recalls = self._offers_recall()
            if not recalls:
                self._recall = None
            sent = await self._obtained(original, body)
            self.usage = sent.usage
            if self.on_accepted is not None and not sent.refused:
                await in_worker(self.on_accepted)
            await (self._deliver(sent) if not recalls or _unread(sent) else self._rounds(sent))
        finally:
            self._on_usage(self.usage)
            if self._last is not None:
                await self._last.close()

    def _offers_recall(self) -> bool:
        return self._recall is not None and self._recall.ready

    async def _learn(self) -> None:
        """Learn a round's usage as soon as it is known: the client may then hang up and send its
        next request through another replica."""
        if self.usage.prompt:
            await self._driver.finished(self.usage)

    async def _obtained(self, original: bytes, body: bytes | None) -> HeldAnswer:
        """An answer, or the refusal that nothing could be done about.  ``body`` None sends the
        original."""
        while True:
            sent = await self._send(original if body is None else body, body is not None)
            again = await self._driver.answered(sent)
            if again is None:
                return sent
            body = again

    async def _send(self, body: bytes, repacked: bool) -> HeldAnswer:
        if self._last is not None:
            await self._last.close()
        call, self.sent_body = self._call, body
        self._last = Attempt(self._client, framed=call.route.framed, stream=self._driver.streams)
        headers = call.headers(body, repacked=repacked)
        return await self._last.send(call.method, call.address, headers, body)

    async def _begin(self, sent: HeldAnswer) -> None:
        if not self._reply.begun:
            length = self._recall is None
            headers = downwards(sent.headers, length=length)
            await self._reply.begin(sent.status, [*headers, *self._driver.headers()])

    async def _deliver(self, sent: HeldAnswer) -> None:
        """Pass the answer on as it arrives."""
        self._recall = None
        await self._begin(sent)
        watch = UsageReader(self._call.route, sent.usage) if sent.streamed else None
        async for part in sent.parts():
            if watch is not None:
                watch.feed(part)
                await self._learn()
            await self._reply.part(part)
        await self._reply.end()

    # --- with the recall tool ------------------------------------------------------------------

    async def _rounds(self, sent: HeldAnswer) -> None:
        """Pass the answer on without the recall tool's calls, answer those, and send the next
        round.

        A refusal of a later round reaches the client unchanged if nothing of the answer has been
        passed on yet; else it is sent as an error of the format, and the connection is broken.
        """
        recall = self._recall
        assert recall is not None
        rewriter = recall.rewriter
        opening = _Opening(self._reply, self._begin, framed=self._call.route.framed)
        try:
            while True:
                rewriter.begin()
                if sent.streamed:
                    await self._stream(sent, rewriter, opening)
                elif not isinstance(sent.answer, dict) and recall.rounds == 1:
                    await self._deliver(sent)  # none that can be read
                    return
                following = await self._next_round(recall, sent)
                if following is None:
                    break
                if following.refused:
                    await self._refused_later(following, rewriter, opening)
                    return
                rewriter.discard_round_end()
                sent = following
            rest = await in_worker(lambda: _ended(recall, sent))
            if sent.streamed:
                await opening.finish(sent)
                await self._reply.part(rest or b"")
                await self._reply.end()
            elif rest is None:  # nothing was left out, or nobody knows how
                await self._deliver(sent)
            else:
                headers = [*downwards(sent.headers, length=False), *self._driver.headers()]
                headers.append((ROUNDS.encode(), str(recall.rounds).encode()))
                await self._reply.whole(sent.status, headers, rest)
        finally:
            opening.forget()

    async def _stream(self, sent: HeldAnswer, rewriter: StreamRewriter, opening: _Opening) -> None:
        frames = frames_for(self._call.route)
        async for part in sent.parts():
            for event in frames.feed(part):
                if b"sage" in event.data:
                    sent.usage.take(parsed(event))
                    await self._learn()
                await opening.part(rewritten(rewriter, event), sent)
        await opening.part(frames.rest(), sent)

    async def _refused_later(
        self, refused: HeldAnswer, rewriter: StreamRewriter, opening: _Opening
    ) -> None:
        """Pass a later round's refusal on.  Raises UpstreamFailed if the answer has already
        begun."""
        opening.forget()
        if not self._reply.begun:
            await self._deliver(refused)
            return
        failure = SaidError.of(refused.status, refused.error)
        await self._reply.part(rewriter.failed(failure))
        raise UpstreamFailed(502, f"refused in a later round: {refused.status} {failure.kind}")

    async def _next_round(self, recall: RecallRounds, sent: HeldAnswer) -> HeldAnswer | None:
        """The answer to the next round, which may be a refusal; None if no further round is needed.
        Raises UpstreamFailed."""

        def follow() -> bytes | None:
            if not sent.streamed and sent.answer is not None:
                recall.rewriter.take_full_response(sent.answer)
            return recall.follow()

        self._on_usage(self.usage)
        driver = self._new_driver()
        body = await driver.first(lambda: guarded(follow), lambda: True)
        if body is None:
            return None
        self._driver = driver
        answer = await self._obtained(body, body)
        if not answer.refused:
            before, self.usage = self.usage, answer.usage
            self.usage.output += before.output
        return answer


class _Opening:
    """Holds the beginning of a streamed answer until its first content, at most HOLD_SECONDS, so
    that a refusal of the next round can still be the whole answer."""

    def __init__(
        self, reply: HttpResponse, begin: Callable[[HeldAnswer], Awaitable[None]], *, framed: bool
    ) -> None:
        self._reply, self._begin = reply, begin
        self._start = StreamStart(frames=framed)
        self._held: list[bytes] = []
        self._lock = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    async def part(self, data: bytes, sent: HeldAnswer) -> None:
        """Pass a part on, or hold it."""
        if self._reply.begun and not self._held:
            await self._reply.part(data)
            return
        self._held.append(data)
        if self._timer is None:
            self._timer = asyncio.create_task(self._after(HOLD_SECONDS, sent))
        if self._reply.begun or self._start.feed(data):
            await self.finish(sent)

    async def finish(self, sent: HeldAnswer) -> None:
        """Pass on the held parts."""
        async with self._lock:
            await self._begin(sent)
            held, self._held = self._held, []
            await self._reply.part(b"".join(held))

    async def _after(self, seconds: float, sent: HeldAnswer) -> None:
        await asyncio.sleep(seconds)
        await self.finish(sent)

    def forget(self) -> None:
        """Drop the held parts and hold nothing more."""
        if self._timer is not None:
            self._timer.cancel()


def _ended(recall: RecallRounds, sent: HeldAnswer) -> bytes | None:
    """Store the exchanges hidden from the client.  Returns the end of the stream, or one answer
    made of all rounds; None if the last round's answer can be passed on unchanged."""
    guarded(recall.remember)
    rewriter = recall.rewriter
    if sent.streamed:
        return guarded(rewriter.end)
    changed = rewriter.recalls or recall.rounds > 1
    return guarded(lambda: dumped(rewriter.answer())) if changed else None


def _unread(sent: HeldAnswer) -> bool:
    """Whether an answer cannot be rewritten: it is a refusal, or compressed."""
    return sent.refused or (not sent.streamed and sent.more is not None)
