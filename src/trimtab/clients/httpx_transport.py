"""Transports for httpx and httpx2, sync and async, that fit requests and retry refusals.

Imports neither library: the module is an argument.  ``retry.flow`` decides what is sent.

A refused response is read and closed before the next attempt.  An accepted stream is held back
until its first content event; after that there are no retries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from trimtab.clients.effects import (
    ASYNC,
    SYNC,
    Chunk,
    ClientKind,
    Effect,
    Effects,
    InThread,
    Stream,
    run,
    run_async,
    stream_classes,
)
from trimtab.clients.guard import Guard
from trimtab.clients.http_copies import with_body, with_stream
from trimtab.clients.request_target import RequestTarget
from trimtab.clients.retry_loop import attempts, reply_of
from trimtab.formats import FORMATS
from trimtab.retry.content_encoding import Undecodable, decoded, decoder
from trimtab.retry.flow import Accepted, Done, Flow, Refused
from trimtab.retry.own_header import HEADER, is_off
from trimtab.retry.refusals.response_errors import prompt_tokens
from trimtab.retry.refusals.stream_start import StreamStart

_STREAMS = ("text/event-stream", "application/vnd.amazon.eventstream", "application/x-ndjson")
Send = Callable[[Any], Any]
_MAX_LINE_BYTES = 32_000_000
"""A longer line of a stream is not read as an event."""


class ResponseReader:
    """Reads a response as far as needed and makes the reply for the flow."""

    def __init__(self, response: Any, target: RequestTarget) -> None:
        kind = response.headers.get("content-type", "").lower()
        self.encoding = response.headers.get("content-encoding", "")
        self.status = int(response.status_code)
        format = FORMATS[target.format.partition(":")[0]]
        # ``streams`` may be a guess from words in the body; few formats stream plain JSON.
        listed = any(api_path.listed for api_path in format.api_paths)
        whole = kind.startswith("application/json") and not listed
        asked = target.streams and not whole
        self.streamed = self.status < 400 and (kind.startswith(_STREAMS) or asked)
        self.opening = StreamStart(frames="amazon.eventstream" in kind)
        self.undo = decoder(self.encoding)
        self.chunks: list[bytes] = []
        self.headers = response.headers
        self.watcher: Callable[[bytes], object] | None = None
        self._all_at_once = format.rewriter.assembler is not None
        self._usage_at_once = bool(format.state_keys)
        self._line = bytearray()
        """The beginning of a line whose end has not arrived."""
        self._usage = b""
        """The last event that has a usage."""

    def full_reply(self) -> Refused | Accepted:
        """The reply for a response that was read to its end."""
        body = decoded(b"".join(self.chunks), self.encoding)
        return reply_of(self.status, body, self.headers)

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes of a stream; return whether the reply is known."""
        self.chunks.append(chunk)
        return bool(self.opening.feed(plain)) if (plain := self._undone(chunk)) else not self.undo

    def _undone(self, chunk: bytes) -> bytes:
        """``chunk`` decoded; after an undecodable one, b"" from then on: bytes pass unread."""
        if self.undo is None:
            return b""
        try:
            return self.undo(chunk)
        except Undecodable:
            self.undo = None
            return b""

    def watch(self, watcher: Callable[[bytes], object]) -> None:
        """Report events with a usage to ``watcher`` from now on, those already read included."""
        self.watcher = watcher
        self._read_lines(self.opening.held)

    def pass_on(self, chunk: bytes) -> None:
        """Read bytes of a stream that are being passed on."""
        if self.watcher is not None and (plain := self._undone(chunk)):
            self._read_lines(plain)

    def _read_lines(self, plain: bytes) -> None:
        self._line += plain
        if b"\n" in plain:
            *lines, self._line = self._line.split(b"\n")
            for line in lines:
                self._read_line(bytes(line))
        elif len(self._line) > _MAX_LINE_BYTES:
            self._line.clear()

    def _read_line(self, line: bytes) -> None:
        """Report events of formats whose later requests build on them at once, because clients
        may stop reading at the last one.  In other formats the last event with a usage is
        reported at the end."""
        assert self.watcher is not None
        data = line[5:].strip() if line.startswith(b"data:") else b""
        if self._all_at_once and data:
            self.watcher(data)
        elif b"sage" in data and prompt_tokens(data) is not None:
            if self._usage_at_once:
                self.watcher(data)
            else:
                self._usage = data

    def read_usage(self) -> None:
        """Call at the end of the stream: report the last event with a usage."""
        if self.watcher is None:
            return
        self._read_line(bytes(self._line))
        if self._usage:
            self.watcher(self._usage)
        self.watcher = None

    def stream_reply(self) -> Refused | Accepted:
        """The reply for a stream whose beginning was read."""
        if self.opening.verdict == "refused":
            return Refused(self.status, self.opening.error, self.headers)
        return Accepted()


def _turned_off(request: Any) -> bool:
    """Whether a request asks to be sent unchanged; our header that says so is removed."""
    off = is_off(request.headers)
    if off:
        del request.headers[HEADER]
    return off


class _Guarded:
    """What both transports do, as generators of effects.  ``guard`` fits, ``inner`` sends."""

    module: Any
    kind: ClientKind
    stream: Any
    """The class of streams."""

    def __init__(self, guard: Guard, inner: Any) -> None:
        self.guard, self.inner = guard, inner

    def _handled(self, request: Any, send: Send) -> Effects[Any]:
        """The response to a request; one that is not to a language model passes through."""
        method, url = request.method, str(request.url)
        if _turned_off(request) or not self.guard.wants(method, url):
            return (yield partial(send, request))
        data = yield partial(self.kind.read, request)
        start = partial(self.guard.start, method, url, request.headers, lambda: data)
        size = work_in(data)
        started = yield InThread(start, size)
        if started is None:
            return (yield partial(send, request))
        flow, target, rounds, _ = started

        def sent_by(flow: Flow) -> Effects[Any]:
            return self._sent(flow, target, request, send, size)

        sent = yield from sent_by(flow)
        if (plain := self.guard.without_recall(started, sent[2], error_in(sent))) is not None:
            yield partial(self.kind.close, sent[1])
            return (yield from sent_by(plain))[1]
        if rounds is None or not can_be_rewritten(sent):
            return sent[1]
        from trimtab.clients.answer_rounds import RoundsResponse

        def again(body: bytes) -> Effects[Any]:
            return sent_by(self.guard.round_flow(body, target))

        answer = RoundsResponse(rounds, sent, again, self.kind, frames=target.framed)
        return (yield from answer.response(self.module, self.stream))

    def _sent(
        self, flow: Flow, target: RequestTarget, request: Any, send: Send, size: int
    ) -> Effects[Any]:
        def attempt(body: bytes) -> Effects[Any]:
            response = yield partial(send, with_body(self.module, request, body))
            return (yield from self._read(response, target))

        def close(answer: Any) -> Effect:
            return partial(self.kind.close, answer[1])

        (reader, response), done = yield from attempts(flow, attempt, close, size=size)
        return reader, finish(self.guard, reader, response, done), done

    def _read(self, response: Any, target: RequestTarget) -> Effects[Any]:
        """Read a stream until its first content, any other answer whole."""
        reader, stream = ResponseReader(response, target), response.stream
        more = self.kind.reader(stream)
        if reader.streamed and reader.undo is None:
            return Accepted(), (reader, response)
        if reader.streamed:
            while (piece := (yield more)) is not None:
                if reader.feed(piece):
                    break
            else:
                reader.opening.end()
            reply = reader.stream_reply()
        else:
            while (piece := (yield more)) is not None:
                reader.chunks.append(piece)
            yield partial(self.kind.close, stream)
            reply = reader.full_reply()

        def close() -> Any:
            reader.read_usage()
            return self.kind.close(stream)

        rest = self.stream(_rest(reader, more), close)
        return reply, (reader, with_stream(self.module, response, rest))


def _rest(reader: ResponseReader, more: Effect) -> Stream:
    """The chunks already read, then the rest of a stream."""
    yield from map(Chunk, reader.chunks)
    while (chunk := (yield more)) is not None:
        reader.pass_on(chunk)
        yield Chunk(chunk)
    reader.read_usage()


@cache
def classes(module: Any) -> tuple[Any, Any]:
    """(transport class, async transport class) for ``module``, httpx or httpx2."""
    library, streams = module, stream_classes(module)

    class TrimtabTransport(_Guarded, module.BaseTransport):  # type: ignore[misc]
        """Fits requests to language models; any other request passes through."""

        module, kind, stream = library, SYNC, streams[0]

        def handle_request(self, request: Any) -> Any:
            return run(self._handled(request, self.inner.handle_request))

        def close(self) -> None:
            self.inner.close()

    class AsyncTrimtabTransport(_Guarded, module.AsyncBaseTransport):  # type: ignore[misc]
        """The same for async clients; a large body is fitted in a thread."""

        module, kind, stream = library, ASYNC, streams[1]

        async def handle_async_request(self, request: Any) -> Any:
            return await run_async(self._handled(request, self.inner.handle_async_request))

        async def aclose(self) -> None:
            await self.inner.aclose()

    return TrimtabTransport, AsyncTrimtabTransport


def work_in(body: bytes) -> int:
    """The work of reading ``body``, in bytes; each JSON object in it counts as 100 more."""
    return len(body) + 100 * body.count(b"{")


def error_in(sent: Any) -> Any:
    """The body of a refusal; of an answer nothing that means anything."""
    reader, _, done = sent
    if done.accepted:
        return b""
    if reader.streamed:
        return reader.opening.error
    return decoded(b"".join(reader.chunks), reader.encoding)


def can_be_rewritten(sent: Any) -> bool:
    """Whether an answer can be rewritten: it is none if it was refused, or can't be decoded."""
    reader, _, done = sent
    return bool(done.accepted) and reader.undo is not None


def finish(guard: Guard, reader: ResponseReader, response: Any, done: Done) -> Any:
    """``response`` with our header; its usage is observed, that of a stream at its end."""
    response.headers[HEADER] = done.summary
    if not reader.streamed:
        guard.observe(decoded(b"".join(reader.chunks), reader.encoding), done)
    elif done.accepted:
        reader.watch(partial(guard.observe, done=done))
    return response
