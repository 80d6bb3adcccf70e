"""Sends the rounds of a request with our recall tool, and makes one response of them.

``rounds.answer_steps`` says what to do next; here it is done through a transport, sync and async.
The module, httpx or httpx2, is an argument.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from trimtab.clients.decoding import decoded, decoder
from trimtab.clients.http_copies import rewritten
from trimtab.clients.retry_loop import in_thread
from trimtab.formats.engine.stream_events import AwsEventReader, ServerSentEventReader
from trimtab.retry.flow import Done
from trimtab.retry.own_header import ROUNDS
from trimtab.retry.refusals.stream_start import StreamStart
from trimtab.rounds.answer_steps import Broken, NextRound, Read, Show, Step, Work, steps
from trimtab.rounds.recall_rounds import RecallRounds
from trimtab.rounds.stream_rewriter import SaidError

Sent = tuple[Any, Any, Done]
"""(the reader of a response, the response, what its retry flow came to)."""


class _RefusedLater(Exception):
    """A later round was refused, and the caller has nothing of the answer yet."""


class _RoundsResponse:
    """The response of one round after the other, and what is shown of all."""

    def __init__(self, rounds: RecallRounds, sent: Sent, *, frames: bool) -> None:
        self._rounds = rounds
        self._reader, self._response, _ = sent
        self._streamed, self._frames = self._reader.streamed, frames
        reader = AwsEventReader if frames else ServerSentEventReader
        self._steps = steps(rounds, reader if self._streamed else None)
        self._begun = False
        """Whether the caller has its response."""
        self.final: Any = None

    def _made(self, module: Any, stream: Any) -> Any:
        """The caller's response: head of the newest round, body of all."""
        self.final = rewritten(module, self._response, stream)
        self._count_rounds()
        return self.final

    def _count_rounds(self) -> None:
        if self.final is not None:
            self.final.headers[ROUNDS] = str(self._rounds.rounds)

    def _unchanged(self) -> bool:
        """Whether the caller can have the whole answer that the provider gave."""
        return self._rounds.rounds == 1 and not self._rounds.rewriter.recalls

    def _take(self, sent: Sent) -> SaidError | None:
        """Go on with the next round, or return its refusal."""
        self._reader, self._response, done = sent
        if done.accepted:
            self._count_rounds()
            return None
        error = self._reader.opening.error if self._reader.streamed else self._whole_body()
        return SaidError.of(self._reader.status, error)

    def _whole_body(self) -> bytes:
        return decoded(b"".join(self._reader.chunks), self._reader.encoding)

    def _broken(self, step: Broken) -> bytes:
        if not self._begun:
            raise _RefusedLater
        return step.event


class SyncRounds(_RoundsResponse):
    """For sync clients.  ``send`` sends a body through a new retry flow."""

    def __init__(
        self, rounds: RecallRounds, sent: Sent, send: Callable[[bytes], Sent], *, frames: bool
    ) -> None:
        super().__init__(rounds, sent, frames=frames)
        self._send = send
        self._pieces = self._plain()

    def response(self, module: Any, stream_class: Any) -> Any:
        """The one response; that of a refused later round if nothing was shown before.

        ``stream_class(pieces, close)`` makes a stream.
        """
        start, held, shown = StreamStart(self._frames), list[bytes](), self._shown()
        try:
            for piece in shown:
                held.append(piece)
                if self._streamed and start.feed(piece):
                    break
        except _RefusedLater:
            return self._response
        if not self._streamed and self._unchanged():
            self.final = self._response
            self._count_rounds()
            return self.final
        self._begun = True
        return self._made(module, stream_class(_chained(held, shown), self.close))

    def _shown(self) -> Iterator[bytes]:
        """What the caller gets."""
        step: Step = next(self._steps)
        while True:
            reply: Any = None
            if isinstance(step, Show):
                yield step.data
            elif isinstance(step, Read):
                reply = next(self._pieces, None)
            elif isinstance(step, Work):
                reply = step.call()
            elif isinstance(step, NextRound):
                self._response.close()
                reply = self._take(self._send(step.body))
                self._pieces = self._plain()
            else:
                yield self._broken(step)
            try:
                step = self._steps.send(reply)
            except StopIteration:
                return

    def _plain(self) -> Iterator[bytes]:
        """The decoded bytes of this round's answer."""
        if not self._streamed:
            yield self._whole_body()
            return
        undo = decoder(self._reader.encoding) or bytes
        for piece in self._response.stream:
            yield undo(piece)

    def close(self) -> None:
        """Release the connection of the newest round."""
        self._response.close()


class AsyncRounds(_RoundsResponse):
    """The same for async clients."""

    def __init__(
        self, rounds: RecallRounds, sent: Sent, send: Callable[[bytes], Awaitable[Sent]], *,
        frames: bool,
    ) -> None:  # fmt: skip
        super().__init__(rounds, sent, frames=frames)
        self._send = send
        self._pieces = self._plain()

    async def response(self, module: Any, stream_class: Any) -> Any:
        """The one response; that of a refused later round if nothing was shown before."""
        start, held, shown = StreamStart(self._frames), list[bytes](), self._shown()
        try:
            async for piece in shown:
                held.append(piece)
                if self._streamed and start.feed(piece):
                    break
        except _RefusedLater:
            return self._response
        if not self._streamed and self._unchanged():
            self.final = self._response
            self._count_rounds()
            return self.final
        self._begun = True
        return self._made(module, stream_class(_chained_async(held, shown), self.close))

    async def _shown(self) -> AsyncIterator[bytes]:
        """What the caller gets."""
        step: Step = next(self._steps)
        while True:
            reply: Any = None
            if isinstance(step, Show):
                yield step.data
            elif isinstance(step, Read):
                reply = await anext(self._pieces, None)
            elif isinstance(step, Work):
                reply = await in_thread(step.call)
            elif isinstance(step, NextRound):
                await self._response.aclose()
                reply = self._take(await self._send(step.body))
                self._pieces = self._plain()
            else:
                yield self._broken(step)
            try:
                step = self._steps.send(reply)
            except StopIteration:
                return

    async def _plain(self) -> AsyncIterator[bytes]:
        """The decoded bytes of this round's answer."""
        if not self._streamed:
            yield self._whole_body()
            return
        undo = decoder(self._reader.encoding) or bytes
        async for piece in self._response.stream:
            yield undo(piece)

    async def close(self) -> None:
        """Release the connection of the newest round."""
        await self._response.aclose()


def _chained(held: list[bytes], more: Iterator[bytes]) -> Iterator[bytes]:
    yield from held
    yield from more


async def _chained_async(held: list[bytes], more: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    for piece in held:
        yield piece
    async for piece in more:
        yield piece
