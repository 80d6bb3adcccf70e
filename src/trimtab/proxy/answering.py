"""Answers one request to a model: fits it, sends it, and sends it again after a refusal that can be
met.

Nothing is sent again once a byte has gone to the client.  ``ProviderCall`` decides what is sent,
and what a refusal means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from trimtab.formats.body import RequestBody
from trimtab.formats.engine.stream_events import parsed
from trimtab.proxy.exchange import Exchange
from trimtab.proxy.held_answer import HOLD_SECONDS, Attempt, HeldAnswer
from trimtab.proxy.http.answer_usage import UsageReader, frames_for
from trimtab.proxy.http.asgi import HttpResponse
from trimtab.proxy.http.budgets import TooMuch
from trimtab.proxy.http.content_encoding import unpacked
from trimtab.proxy.http.headers import downwards
from trimtab.proxy.http.http_client import UpstreamFailed
from trimtab.proxy.http.worker import in_worker
from trimtab.proxy.provider_call import ProviderCall
from trimtab.retry.own_header import ROUNDS
from trimtab.retry.refusals.stream_start import StreamStart
from trimtab.rounds import RecallRounds
from trimtab.rounds.answer_steps import guarded, rewritten
from trimtab.rounds.stream_rewriter import SaidError, StreamRewriter, dumped
from trimtab.sessions.control import is_control
from trimtab.sessions.conversation import conversation_id


class Answering:
    """Answers one exchange whose body has been read; with ``own_rounds`` an answer may take several
    calls of the model."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange, self._reply = exchange, exchange.reply
        self._call: ProviderCall
        self._last: Attempt | None = None
        self._rounds: RecallRounds | None = exchange.own_rounds
        """None where the answer is not rewritten."""

    async def run(self, original: bytes) -> None:
        """Send and answer; ``original``: the client's body.

        Raises UpstreamFailed if there was no answer or it broke off: then either nothing has been
        passed on, or the connection to the client has to be broken too.
        """
        call = self._call = self._new_call()
        self._exchange.calls.append(call)
        try:
            body = await call.first(lambda: self._parsed(original), self._has_own_tools)
            if not self._has_own_tools():
                self._rounds = None
            sent = await self._obtained(original, body)
            if not sent.refused:
                await self._accepted()
            if self._rounds is None or _unread(sent):
                await self._deliver(sent)
            else:
                await self._in_rounds(self._rounds, sent)
        finally:
            if self._last is not None:
                await self._last.close()

    def _new_call(self) -> ProviderCall:
        exchange = self._exchange
        return ProviderCall(
            exchange.request, exchange.session, exchange.budget,
            result_chars=exchange.settings.retry_result_chars,
        )  # fmt: skip

    def _has_own_tools(self) -> bool:
        return self._rounds is not None and self._rounds.ready

    async def _accepted(self) -> None:
        session = self._exchange.session
        if session.deferred is not None and session.deferred.waits:
            await in_worker(session.accept)

    # --- reading: in a worker thread -----------------------------------------------------------

    def _parsed(self, received: bytes) -> RequestBody | bytes | None:
        """The body to fit; None if it cannot be read."""
        exchange = self._exchange
        text = unpacked(received, exchange.request.encoding, exchange.settings.most_bytes)
        try:
            source = None if text is None else exchange.tenants.source(
                exchange.tenant, text, exchange.budget
            )  # fmt: skip
        except TooMuch:
            text = None
        if text is None:
            exchange.unread = "too much to be read"
            return None
        if source is None:
            return text
        if not isinstance(source.tree, dict):
            exchange.unread = "no object"
            return None
        if not exchange.budget.allows(source.tree):
            exchange.unread = "too many messages"
            return None
        exchange.tree = source.tree
        if self._rounds is None or self._left_alone(source):
            return source
        return self._rounds.prepared(source, exchange.conversation) or source

    def _left_alone(self, source: RequestBody) -> bool:
        """Whether its conversation is in the control arm, which gets none of our tools either."""
        share, format = self._exchange.settings.fit.control, self._exchange.request.route.format
        return bool(share) and is_control(conversation_id(source, format), share)

    # --- sending ---------------------------------------------------------------------------------

    async def _obtained(self, original: bytes, body: bytes | None) -> HeldAnswer:
        """An answer, or the refusal that nothing could be done about.  ``body`` None sends the
        original."""
        while True:
            sent = await self._send(original if body is None else body, body is not None)
            again = await self._call.answered(sent)
            if again is None:
                return sent
            body = again

    async def _send(self, body: bytes, repacked: bool) -> HeldAnswer:
        if self._last is not None:
            await self._last.close()
        request, call = self._exchange.request, self._call
        call.body, call.sends = body, call.sends + 1
        self._last = Attempt(
            self._exchange.client, framed=request.route.framed, stream=call.streams
        )
        headers = request.headers_upwards(body, repacked=repacked)
        return await self._last.send(request.method, request.address, headers, body)

    async def _begin(self, sent: HeldAnswer) -> None:
        if not self._reply.begun:
            headers = downwards(sent.headers, length=self._rounds is None)
            await self._reply.begin(sent.status, [*headers, *self._call.headers()])

    async def _deliver(self, sent: HeldAnswer) -> None:
        """Pass the answer on as it arrives."""
        self._rounds = None
        await self._begin(sent)
        watch = UsageReader(self._exchange.request.route, sent.usage) if sent.streamed else None
        async for part in sent.parts():
            if watch is not None:
                watch.feed(part)
                await self._call.learn()
            await self._reply.part(part)
        await self._reply.end()

    # --- with tools of ours ----------------------------------------------------------------------

    async def _in_rounds(self, rounds: RecallRounds, sent: HeldAnswer) -> None:
        """Pass the answer on without the calls of our tools, answer those, and send the next round.

        A refusal of a later round reaches the client unchanged if nothing of the answer has been
        passed on yet; else it is sent as an error of the format, and the connection is broken.
        """
        rewriter, route = rounds.rewriter, self._exchange.request.route
        opening = _Opening(self._reply, self._begin, framed=route.framed)
        try:
            while True:
                rewriter.begin()
                if sent.streamed:
                    await self._stream(sent, rewriter, opening)
                elif not isinstance(sent.answer, dict) and rounds.rounds == 1:
                    await self._deliver(sent)  # none that can be read
                    return
                following = await self._next_round(rounds, sent)
                if following is None:
                    break
                if following.refused:
                    await self._refused_later(following, rewriter, opening)
                    return
                rewriter.discard_round_end()
                sent = following
            rest = await in_worker(lambda: _ended(rounds, sent))
            if sent.streamed:
                await opening.finish(sent)
                await self._reply.part(rest or b"")
                await self._reply.end()
            elif rest is None:  # nothing was left out, or nobody knows how
                await self._deliver(sent)
            else:
                headers = [*downwards(sent.headers, length=False), *self._call.headers()]
                headers.append((ROUNDS.encode(), str(rounds.rounds).encode()))
                await self._reply.whole(sent.status, headers, rest)
        finally:
            opening.forget()

    async def _stream(self, sent: HeldAnswer, rewriter: StreamRewriter, opening: _Opening) -> None:
        frames = frames_for(self._exchange.request.route)
        async for part in sent.parts():
            for event in frames.feed(part):
                if b"sage" in event.data:
                    sent.usage.take(parsed(event))
                    await self._call.learn()
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

    async def _next_round(self, rounds: RecallRounds, sent: HeldAnswer) -> HeldAnswer | None:
        """The answer to the next round, which may be a refusal; None if no further round is needed.
        Raises UpstreamFailed."""

        def follow() -> bytes | None:
            if not sent.streamed and sent.answer is not None:
                rounds.rewriter.take_full_response(sent.answer)
            return rounds.follow()

        call = self._new_call()
        body = await call.first(lambda: guarded(follow), lambda: True)
        if body is None:
            return None
        self._call = call
        self._exchange.calls.append(call)
        return await self._obtained(body, body)


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


def _ended(rounds: RecallRounds, sent: HeldAnswer) -> bytes | None:
    """Store the exchanges hidden from the client.  Returns the end of the stream, or one answer
    made of all rounds; None if the last round's answer can be passed on unchanged."""
    guarded(rounds.remember)
    rewriter = rounds.rewriter
    if sent.streamed:
        return guarded(rewriter.end)
    changed = rewriter.recalls or rounds.rounds > 1
    return guarded(lambda: dumped(rewriter.answer())) if changed else None


def _unread(sent: HeldAnswer) -> bool:
    """Whether an answer cannot be rewritten: it is a refusal, or compressed."""
    return sent.refused or (not sent.streamed and sent.more is not None)
