"""Sends the rounds of a request with our recall tool, and makes one response of them.

``rounds.answer_steps`` says what to do next; here it is done through a transport.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from trimtab.clients.decoding import decoded, decoder
from trimtab.clients.effects import Chunk, ClientKind, Effects, InThread, Stream, next_chunk
from trimtab.clients.http_copies import rewritten
from trimtab.formats.engine.stream_events import AwsEventReader, ServerSentEventReader
from trimtab.retry.flow import Done
from trimtab.retry.own_header import ROUNDS
from trimtab.retry.refusals.stream_start import StreamStart
from trimtab.rounds.answer_steps import NextRound, Read, Show, Step, Work, steps
from trimtab.rounds.recall_rounds import RecallRounds
from trimtab.rounds.stream_rewriter import SaidError

Sent = tuple[Any, Any, Done]
"""(the reader of a response, the response, what its retry flow came to)."""


class _RefusedLater(Exception):
    """A later round was refused, and the caller has nothing of the answer yet."""


class RoundsResponse:
    """The response of one round after the other, and what is shown of all.

    ``send`` sends a body through a new retry flow.
    """

    def __init__(
        self, rounds: RecallRounds, sent: Sent, send: Callable[[bytes], Effects[Sent]],
        kind: ClientKind, *, frames: bool,
    ) -> None:  # fmt: skip
        self._rounds, self._send, self._kind = rounds, send, kind
        self._reader, self._response, _ = sent
        self._streamed, self._frames = self._reader.streamed, frames
        self._begun = False
        """Whether the caller has its response."""
        self._final: Any = None

    def response(self, module: Any, stream_class: Any) -> Effects[Any]:
        """The one response; that of a refused later round if nothing was shown before."""
        start, held, shown = StreamStart(self._frames), list[bytes](), self._shown()
        try:
            while (piece := (yield from next_chunk(shown))) is not None:
                held.append(piece)
                if self._streamed and start.feed(piece):
                    break
        except _RefusedLater:
            return self._response
        if not self._streamed and self._rounds.rounds == 1 and not self._rounds.rewriter.recalls:
            self._final = self._response  # the caller can have what the provider gave
        else:
            self._begun = True
            stream = stream_class(_chained(held, shown), self._close)
            self._final = rewritten(module, self._response, stream)  # head of the newest round
        self._count_rounds()
        return self._final

    def _shown(self) -> Stream:
        """What the caller gets."""
        reader = AwsEventReader if self._frames else ServerSentEventReader
        run = steps(self._rounds, reader if self._streamed else None)
        step: Step = next(run)
        more = self._read()
        while True:
            reply: Any = None
            if isinstance(step, Show):
                yield Chunk(step.data)
            elif isinstance(step, Read):
                reply = yield from next_chunk(more)
            elif isinstance(step, Work):
                reply = yield InThread(step.call)
            elif isinstance(step, NextRound):
                yield partial(self._kind.close, self._response)
                reply = self._take((yield from self._send(step.body)))
                more = self._read()
            elif self._begun:
                yield Chunk(step.event)
            else:
                raise _RefusedLater
            try:
                step = run.send(reply)
            except StopIteration:
                return

    def _read(self) -> Stream:
        """The decoded bytes of this round's answer."""
        if not self._streamed:
            yield Chunk(self._whole_body())
            return
        undo, more = (
            decoder(self._reader.encoding) or bytes,
            self._kind.reader(self._response.stream),
        )
        while (piece := (yield more)) is not None:
            yield Chunk(undo(piece))

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

    def _count_rounds(self) -> None:
        if self._final is not None:
            self._final.headers[ROUNDS] = str(self._rounds.rounds)

    def _close(self) -> Any:
        """Release the connection of the newest round."""
        return self._kind.close(self._response)


def _chained(held: Sequence[bytes], more: Stream) -> Stream:
    yield from map(Chunk, held)
    yield from more
