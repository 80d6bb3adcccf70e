"""Answers one request to a model: fits it, sends it, and sends it again after a refusal that can be
met.

Nothing is sent again once a byte has gone to the client.  ``ProviderCall`` decides what is sent,
and what a refusal means.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from trimtab.formats.body import RequestBody
from trimtab.formats.engine.answers import AnswerError
from trimtab.proxy.exchange.exchange import Exchange
from trimtab.proxy.exchange.held_answer import HOLD_SECONDS, Attempt, HeldAnswer
from trimtab.proxy.exchange.provider_call import ProviderCall
from trimtab.proxy.http.answer_usage import UsageReader, frames_for
from trimtab.proxy.http.asgi import HttpResponse
from trimtab.proxy.http.budgets import TooMuch
from trimtab.proxy.http.headers import downwards
from trimtab.proxy.http.http_client import UpstreamFailed
from trimtab.proxy.http.worker import in_worker
from trimtab.retry.content_encoding import unpacked
from trimtab.retry.own_header import ROUNDS
from trimtab.retry.refusals.stream_start import StreamStart
from trimtab.rounds import RecallRounds
from trimtab.rounds.answer_steps import Broken, Compute, NextRound, Read, Show, Step, Steps, steps
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
        text = unpacked(received, exchange.request.encoding, exchange.settings.max_bytes)
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
        async for part in self._parts(sent):
            await self._reply.part(part)
        await self._reply.end()

    async def _parts(self, sent: HeldAnswer) -> AsyncIterator[bytes]:
        """The bytes of an answer; learns from what a stream says of its cost."""
        watch = UsageReader(self._exchange.request.route, sent.usage) if sent.streamed else None
        async for part in sent.parts():
            if watch is not None:
                watch.feed(part)
                await self._call.learn()
            yield part

    # --- with tools of ours ----------------------------------------------------------------------

    async def _in_rounds(self, rounds: RecallRounds, sent: HeldAnswer) -> None:
        """Pass the answer on without the calls of our tools, answer those, and send the next round
        (``rounds.answer_steps``)."""
        route, streamed = self._exchange.request.route, sent.streamed
        run = steps(rounds, partial(frames_for, route) if streamed else None)
        opening = _Opening(self._reply, self._begin, framed=route.framed)
        parts, step, refused = self._parts(sent), _step(run), None
        try:
            while step is not None:
                reply: Any = None
                match step:
                    case Read() if streamed:
                        reply = await anext(parts, None)
                        opening.begin_after(HOLD_SECONDS, sent)
                    case Read():
                        reply = b"".join(sent.held)
                    case Compute():
                        reply = await in_worker(step.call)
                    case NextRound():
                        following = await self._next_round(step.body)
                        if following.refused:
                            refused = following
                            reply = AnswerError.of(refused.status, refused.error)
                        else:
                            sent, parts = following, self._parts(following)
                    case Show() if streamed:
                        await opening.part(step.data, sent)
                    case Show():
                        await self._whole(rounds, sent, step.data)
                    case Broken():
                        assert refused is not None
                        opening.forget()
                        await self._refused_later(refused, step.event)
                        return
                following_step = partial(_step, run, reply)
                step = following_step() if streamed else await in_worker(following_step)
            if streamed:
                await opening.finish(sent)
                await self._reply.end()
        finally:
            opening.forget()

    async def _next_round(self, body: bytes) -> HeldAnswer:
        """The answer to the next round, which may be a refusal.  Raises UpstreamFailed."""
        call = self._new_call()
        fitted = await call.first(lambda: body, lambda: True)
        self._call = call
        self._exchange.calls.append(call)
        return await self._obtained(body, fitted)

    async def _whole(self, rounds: RecallRounds, sent: HeldAnswer, answer: bytes) -> None:
        """Pass on one answer made of all rounds, or the provider's own."""
        if answer == b"".join(sent.held):
            await self._deliver(sent)
            return
        headers = [*downwards(sent.headers, length=False), *self._call.headers()]
        headers.append((ROUNDS.encode(), str(rounds.rounds).encode()))
        await self._reply.whole(sent.status, headers, answer)

    async def _refused_later(self, refused: HeldAnswer, event: bytes) -> None:
        """Pass a later round's refusal on: unchanged if nothing of the answer has been passed on
        yet; else ``event`` tells of it, and the connection is broken.  Raises UpstreamFailed."""
        if not self._reply.begun:
            await self._deliver(refused)
            return
        await self._reply.part(event)
        kind = AnswerError.of(refused.status, refused.error).kind
        raise UpstreamFailed(502, f"refused in a later round: {refused.status} {kind}")


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
        if self._reply.begun or self._start.feed(data):
            await self.finish(sent)

    async def finish(self, sent: HeldAnswer) -> None:
        """Pass on the held parts."""
        async with self._lock:
            await self._begin(sent)
            held, self._held = self._held, []
            await self._reply.part(b"".join(held))

    def begin_after(self, seconds: float, sent: HeldAnswer) -> None:
        """Hold nothing longer than so many seconds from the first call on."""
        if self._timer is None:
            self._timer = asyncio.create_task(self._after(seconds, sent))

    async def _after(self, seconds: float, sent: HeldAnswer) -> None:
        await asyncio.sleep(seconds)
        await self.finish(sent)

    def forget(self) -> None:
        """Drop the held parts and hold nothing more."""
        if self._timer is not None:
            self._timer.cancel()


def _step(run: Steps, reply: Any = None) -> Step | None:
    """The next step; None behind the last."""
    try:
        return run.send(reply)
    except StopIteration:
        return None


def _unread(sent: HeldAnswer) -> bool:
    """Whether an answer cannot be rewritten: it is a refusal, or compressed."""
    return sent.refused or (not sent.streamed and sent.more is not None)
