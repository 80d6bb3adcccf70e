"""One request for an answer: sent, sent again where that helps, answered.

Nothing is sent again once a byte has left for the client.  What is sent, and what a refusal means,
is for ``FlowDriver`` to say.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from trimtab.proxy import aws_signing, logs
from trimtab.proxy.answer_usage import TokenUsage, UsageReader, frames_for
from trimtab.proxy.asgi import HttpResponse
from trimtab.proxy.flow_driver import FlowDriver
from trimtab.proxy.headers import DIGESTS, Raw, downwards, upwards
from trimtab.proxy.held_answer import Attempt, HeldAnswer
from trimtab.proxy.http_client import HttpClient, UpstreamFailed
from trimtab.proxy.recall import RecallRounds
from trimtab.proxy.recall.stream_rewriter import StreamRewriter, dumped
from trimtab.proxy.routes import Route
from trimtab.proxy.stream_events import StreamEvent, parsed
from trimtab.proxy.upstreams import Upstream
from trimtab.proxy.worker import in_worker
from trimtab.wire.body import RequestBody

T = TypeVar("T")


@dataclass(frozen=True)
class ClientRequest:
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
            changed = {"content-encoding", *DIGESTS}
            fields = [pair for pair in fields if pair[0].decode("latin-1").lower() not in changed]
        if signing:
            region = self.upstream.region
            fields = aws_signing.signed(self.method, self.address, fields, body, region)
        return fields


class ProxiedRequest:
    """Answers one call.

    ``driver`` makes what says what to send, and what after a refusal: one for each round.  With a
    ``recall`` an answer may take several rounds; ``on_usage`` gets what the last one cost.
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
        """What went to the provider last."""
        self.usage = TokenUsage()
        """What it cost, as far as the answer was read."""
        self.on_accepted: Callable[[], None] | None = None
        """Called in a worker thread once the provider has accepted it."""

    async def run(self, original: bytes, parse: Callable[[], RequestBody | bytes | None]) -> None:
        """Send and answer.

        ``original``: the body as it came; ``parse``: makes the body that is fitted, in a worker
        thread.  Raises UpstreamFailed where nothing came, or the answer broke off: then either no
        byte has been passed on, or the connection to the client has to break, too.
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
        """Learn what a round cost as soon as that is known: before the client can send its next
        request, perhaps through another replica, and hang up on this one."""
        if self.usage.prompt:
            await self._driver.finished(self.usage)

    async def _obtained(self, original: bytes, body: bytes | None) -> HeldAnswer:
        """An answer, or the refusal that stands.  ``body``: None to send the original."""
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
        """Pass the answer on as it comes."""
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
        """Pass the answer on without calls of the tool; answer these, and go on."""
        recall = self._recall
        assert recall is not None
        rewriter = recall.rewriter
        while True:
            rewriter.begin()
            if sent.streamed:
                await self._stream(sent, rewriter)
            elif not isinstance(sent.answer, dict) and recall.rounds == 1:
                await self._deliver(sent)  # none that can be read
                return
            following = await self._next_round(recall, sent)
            if following is None:
                break
            rewriter.follow()
            sent = following
        rest = await in_worker(lambda: _ended(recall, sent))
        if sent.streamed:
            await self._reply.part(rest or b"")
            await self._reply.end()
        elif rest is None:  # nothing was left out, or nobody knows how
            await self._deliver(sent)
        else:
            headers = [*downwards(sent.headers, length=False), *self._driver.headers()]
            await self._reply.whole(sent.status, headers, rest)

    async def _stream(self, sent: HeldAnswer, rewriter: StreamRewriter) -> None:
        await self._begin(sent)
        frames = frames_for(self._call.route)
        async for part in sent.parts():
            for event in frames.feed(part):
                if b"sage" in event.data:
                    sent.usage.take(parsed(event))
                    await self._learn()
                await self._reply.part(_rewritten(rewriter, event))
        await self._reply.part(frames.rest())

    async def _next_round(self, recall: RecallRounds, sent: HeldAnswer) -> HeldAnswer | None:
        """The answer to the next round; None where there is none, or it is refused: then what was
        said is all."""

        def follow() -> bytes | None:
            if not sent.streamed and sent.answer is not None:
                recall.rewriter.whole(sent.answer)
            return recall.follow()

        self._on_usage(self.usage)
        driver = self._new_driver()
        body = await driver.first(lambda: _guarded(follow), lambda: True)
        if body is None:
            return None
        self._driver = driver
        try:
            answer = await self._obtained(body, body)
        except UpstreamFailed:
            return None
        if answer.refused:
            return None
        before, self.usage = self.usage, answer.usage
        self.usage.output += before.output
        return answer


def _ended(recall: RecallRounds, sent: HeldAnswer) -> bytes | None:
    """Keeps what the client did not see; then the end of a stream, or the whole answer of all
    rounds, None where that is the last one as it came."""
    _guarded(recall.remember)
    rewriter = recall.rewriter
    if sent.streamed:
        return _guarded(rewriter.end)
    changed = rewriter.recalls or recall.rounds > 1
    return _guarded(lambda: dumped(rewriter.answer())) if changed else None


def _guarded(work: Callable[[], T]) -> T | None:
    """The result; None where it fails by a fault of ours, which is logged."""
    try:
        return work()
    except Exception as error:
        logs.fault("recall", error)
        return None


def _rewritten(rewriter: StreamRewriter, event: StreamEvent) -> bytes:
    """What the client gets of an event; the event itself where that is a fault of ours."""
    try:
        return rewriter.event(event)
    except Exception as error:
        logs.fault("recall", error)
        return event.raw


def _unread(sent: HeldAnswer) -> bool:
    """Whether an answer is none that can be rewritten: a refusal, or packed."""
    return sent.refused or (not sent.streamed and sent.more is not None)
