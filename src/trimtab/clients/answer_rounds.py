"""Sends the rounds of a request with our recall tool, and makes one response of them.

``rounds.answer_steps`` says what to do next; here it is done through a transport.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from trimtab.clients.effects import Chunk, ClientKind, Effects, InThread, Stream, next_chunk
from trimtab.clients.http_copies import rewritten
from trimtab.formats.engine.answers import AnswerError
from trimtab.formats.engine.stream_events import AwsEventReader, ServerSentEventReader
from trimtab.retry.content_encoding import decoded, decoder
from trimtab.retry.flow import Done
from trimtab.retry.own_header import ROUNDS
from trimtab.retry.refusals.stream_start import StreamStart
from trimtab.rounds.answer_steps import Compute, NextRound, Read, Show, Steps, steps
from trimtab.rounds.recall_rounds import RecallRounds

Sent = tuple[Any, Any, Done]
"""(the reader of a response, the response, what its retry flow came to)."""


class RefusedLater(Exception):
    """A later round was refused, and the caller has nothing of the answer yet."""


def shown(
    run: Steps,
    read: Callable[[], Effects[bytes | None]],
    send: Callable[[bytes], Effects[AnswerError | None]],
    has_begun: Callable[[], bool] = bool,
) -> Stream:
    """What the caller gets of the steps of an answer.

    ``read``: the next bytes of this round's answer, None at its end; ``send`` sends the next round
    and returns its refusal; ``has_begun``: whether the caller has something of the answer, else
    RefusedLater is raised.
    """
    step = next(run)
    while True:
        reply: Any = None
        if isinstance(step, Show):
            yield Chunk(step.data)
        elif isinstance(step, Read):
            reply = yield from read()
        elif isinstance(step, Compute):
            reply = yield InThread(step.call)
        elif isinstance(step, NextRound):
            reply = yield from send(step.body)
        elif has_begun():
            yield Chunk(step.event)
        else:
            raise RefusedLater
        try:
            step = run.send(reply)
        except StopIteration:
            return


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
        self._more = self._read()
        self._begun = False
        """Whether the caller has its response."""
        self._final: Any = None

    def response(self, module: Any, stream_class: Any) -> Effects[Any]:
        """The one response; that of a refused later round if nothing was shown before."""
        start, held = StreamStart(self._frames), list[bytes]()
        reader = AwsEventReader if self._frames else ServerSentEventReader
        run = steps(self._rounds, reader if self._streamed else None)
        stream = shown(run, lambda: next_chunk(self._more), self._next_round, lambda: self._begun)
        try:
            while (piece := (yield from next_chunk(stream))) is not None:
                held.append(piece)
                if self._streamed and start.feed(piece):
                    break
        except RefusedLater:
            return self._response
        if not self._streamed and self._rounds.rounds == 1 and not self._rounds.rewriter.recalls:
            self._final = self._response  # the caller can have what the provider gave
        else:
            self._begun = True
            whole = stream_class(_chained(held, stream), self._close)
            self._final = rewritten(module, self._response, whole)  # head of the newest round
        self._count_rounds()
        return self._final

    def _read(self) -> Stream:
        """The decoded bytes of this round's answer."""
        if not self._streamed:
            yield Chunk(self._whole_body())
            return
        undo = decoder(self._reader.encoding) or bytes
        more = self._kind.reader(self._response.stream)
        while (piece := (yield more)) is not None:
            yield Chunk(undo(piece))

    def _next_round(self, body: bytes) -> Effects[AnswerError | None]:
        """Go on with the next round, or return its refusal."""
        yield partial(self._kind.close, self._response)
        self._reader, self._response, done = yield from self._send(body)
        self._more = self._read()
        if done.accepted:
            self._count_rounds()
            return None
        error = self._reader.opening.error if self._reader.streamed else self._whole_body()
        return AnswerError.of(self._reader.status, error)

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
