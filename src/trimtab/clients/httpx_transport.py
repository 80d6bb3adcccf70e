"""Transports for httpx and httpx2, sync and async, that fit requests and retry refusals.

Imports neither library: the module is an argument.  ``retry.flow`` decides what is sent.

A refused response is read and closed before the next attempt.  An accepted stream is held back
until its first content event; after that there are no retries.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import cache, partial
from typing import Any

from trimtab.clients.decoding import Undecodable, decoded, decoder
from trimtab.clients.guard import Guard
from trimtab.clients.http_copies import with_body, with_stream
from trimtab.clients.request_target import RequestTarget
from trimtab.clients.retry_loop import in_thread, reply_of, run_flow, run_flow_async
from trimtab.retry.flow import Accepted, Done, Flow, Refused
from trimtab.retry.own_header import HEADER, is_off
from trimtab.retry.refusals.response_errors import prompt_tokens
from trimtab.retry.refusals.stream_start import StreamStart

_STREAMS = ("text/event-stream", "application/vnd.amazon.eventstream", "application/x-ndjson")
_MOST_LINE_BYTES = 32_000_000
"""A longer line of a stream is not read as an event."""


class ResponseReader:
    """Reads a response as far as needed and makes the reply for the flow."""

    def __init__(self, response: Any, target: RequestTarget) -> None:
        kind = response.headers.get("content-type", "").lower()
        self.encoding = response.headers.get("content-encoding", "")
        self.status = int(response.status_code)
        # ``streams`` may be a guess from words in the body; only Gemini streams plain JSON.
        whole = kind.startswith("application/json") and target.format != "gemini"
        asked = target.streams and not whole
        self.streamed = self.status < 400 and (kind.startswith(_STREAMS) or asked)
        self.opening = StreamStart(frames="amazon.eventstream" in kind)
        self.undo = decoder(self.encoding)
        self.chunks: list[bytes] = []
        self.headers = response.headers
        self.watcher: Callable[[bytes], object] | None = None
        self._format = target.format
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
        elif len(self._line) > _MOST_LINE_BYTES:
            self._line.clear()

    def _read_line(self, line: bytes) -> None:
        """Report events of formats whose later requests build on them at once, because clients
        may stop reading at the last one.  In other formats the last event with a usage is
        reported at the end."""
        assert self.watcher is not None
        data = line[5:].strip() if line.startswith(b"data:") else b""
        if self._format == "gemini-interactions" and data:
            self.watcher(data)
        elif b"sage" in data and prompt_tokens(data) is not None:
            if self._format == "openai-responses":
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


@cache
def classes(module: Any) -> tuple[Any, Any]:
    """(transport class, async transport class) for ``module``, httpx or httpx2."""
    return _sync(module), _async(module)


def _rest_class(module: Any) -> Any:
    class Rest(module.SyncByteStream):  # type: ignore[misc]
        """The chunks of a stream already read, then the rest."""

        def __init__(self, reader: ResponseReader, rest: Iterator[bytes], stream: Any) -> None:
            self._reader, self._rest, self._stream = reader, rest, stream

        def __iter__(self) -> Iterator[bytes]:
            yield from self._reader.chunks
            for chunk in self._rest:
                self._reader.pass_on(chunk)
                yield chunk
            self._reader.read_usage()

        def close(self) -> None:
            self._reader.read_usage()
            self._stream.close()

    return Rest


def _pieces_class(module: Any) -> Any:
    class Pieces(module.SyncByteStream):  # type: ignore[misc]
        """Bytes that are made while they are read."""

        def __init__(self, pieces: Iterator[bytes], close: Callable[[], None]) -> None:
            self._pieces, self._close = pieces, close

        def __iter__(self) -> Iterator[bytes]:
            return self._pieces

        def close(self) -> None:
            self._close()

    return Pieces


def _async_pieces_class(module: Any) -> Any:
    class AsyncPieces(module.AsyncByteStream):  # type: ignore[misc]
        """The same for async clients."""

        def __init__(
            self, pieces: AsyncIterator[bytes], close: Callable[[], Awaitable[None]]
        ) -> None:
            self._pieces, self._close = pieces, close

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self._pieces

        async def aclose(self) -> None:
            await self._close()

    return AsyncPieces


def _sync(module: Any) -> Any:
    rest_class, pieces_class = _rest_class(module), _pieces_class(module)

    class TrimtabTransport(module.BaseTransport):  # type: ignore[misc]
        """Fits requests to language models; any other request passes through."""

        def __init__(self, guard: Guard, inner: Any) -> None:
            self.guard, self.inner = guard, inner

        def handle_request(self, request: Any) -> Any:
            if _turned_off(request):
                return self.inner.handle_request(request)
            started = self.guard.start(
                request.method, str(request.url), request.headers, request.read
            )
            if started is None:
                return self.inner.handle_request(request)
            flow, target, rounds, _ = started
            if self.guard.session.settings.compaction == "provider":
                from trimtab.clients.asked_compaction import ask

                send = self.inner.handle_request
                request = ask(module, self.guard, target, request, send)
            sent = self._sent(flow, target, request)
            if (plain := self.guard.without_recall(started, sent[2], error_in(sent))) is not None:
                sent[1].close()
                return self._sent(plain, target, request)[1]
            if rounds is None or not can_be_rewritten(sent):
                return sent[1]

            from trimtab.clients.answer_rounds import SyncRounds

            def again(body: bytes) -> Any:
                return self._sent(self.guard.round_flow(body, target), target, request)

            answer = SyncRounds(rounds, sent, again, frames=target.frames)
            return answer.response(module, pieces_class)

        def _sent(self, flow: Flow, target: RequestTarget, request: Any) -> Any:
            def attempt(body: bytes) -> Any:
                return self._read(
                    self.inner.handle_request(with_body(module, request, body)), target
                )

            (reader, response), done = run_flow(flow, attempt, lambda answer: answer[1].close())
            return reader, finish(self.guard, reader, response, done), done

        def _read(self, response: Any, target: RequestTarget) -> Any:
            reader, stream = ResponseReader(response, target), response.stream
            pieces = iter(stream)
            if reader.streamed and reader.undo is not None:
                for piece in pieces:
                    if reader.feed(piece):
                        break
                else:
                    reader.opening.end()
                rest = rest_class(reader, pieces, stream)
                return reader.stream_reply(), (reader, with_stream(module, response, rest))
            if reader.streamed:
                return Accepted(), (reader, response)
            reader.chunks.extend(pieces)
            stream.close()
            rest = rest_class(reader, iter(()), stream)
            return reader.full_reply(), (reader, with_stream(module, response, rest))

        def close(self) -> None:
            self.inner.close()

    return TrimtabTransport


def _async_rest_class(module: Any) -> Any:
    class AsyncRest(module.AsyncByteStream):  # type: ignore[misc]
        """The chunks of a stream already read, then the rest."""

        def __init__(self, reader: ResponseReader, rest: AsyncIterator[bytes], stream: Any) -> None:
            self._reader, self._rest, self._stream = reader, rest, stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in self._reader.chunks:
                yield chunk
            async for chunk in self._rest:
                self._reader.pass_on(chunk)
                yield chunk
            self._reader.read_usage()

        async def aclose(self) -> None:
            self._reader.read_usage()
            await self._stream.aclose()

    return AsyncRest


def _async(module: Any) -> Any:
    rest_class, pieces_class = _async_rest_class(module), _async_pieces_class(module)

    class AsyncTrimtabTransport(module.AsyncBaseTransport):  # type: ignore[misc]
        """The same for async clients; a large body is fitted in a thread."""

        def __init__(self, guard: Guard, inner: Any) -> None:
            self.guard, self.inner = guard, inner

        async def handle_async_request(self, request: Any) -> Any:
            if _turned_off(request) or not self.guard.wants(request.method, str(request.url)):
                return await self.inner.handle_async_request(request)
            data = await request.aread()
            start = partial(self.guard.start, request.method, str(request.url), request.headers)
            started = await in_thread(start, lambda: data, size=work_in(data))
            if started is None:
                return await self.inner.handle_async_request(request)
            flow, target, rounds, _ = started
            if self.guard.session.settings.compaction == "provider":
                from trimtab.clients.asked_compaction import ask_async

                send = self.inner.handle_async_request
                request = await ask_async(module, self.guard, target, request, send)
            size = work_in(data)
            sent = await self._sent(flow, target, request, size)
            if (plain := self.guard.without_recall(started, sent[2], error_in(sent))) is not None:
                await sent[1].aclose()
                return (await self._sent(plain, target, request, size))[1]
            if rounds is None or not can_be_rewritten(sent):
                return sent[1]

            from trimtab.clients.answer_rounds import AsyncRounds

            async def again(body: bytes) -> Any:
                return await self._sent(self.guard.round_flow(body, target), target, request, size)

            answer = AsyncRounds(rounds, sent, again, frames=target.frames)
            return await answer.response(module, pieces_class)

        async def _sent(self, flow: Flow, target: RequestTarget, request: Any, size: int) -> Any:
            async def attempt(body: bytes) -> Any:
                sent = with_body(module, request, body)
                return await self._read(await self.inner.handle_async_request(sent), target)

            (reader, response), done = await run_flow_async(
                flow, attempt, lambda answer: answer[1].aclose(), size=size
            )
            return reader, finish(self.guard, reader, response, done), done

        async def _read(self, response: Any, target: RequestTarget) -> Any:
            reader, stream = ResponseReader(response, target), response.stream
            pieces = stream.__aiter__()
            if reader.streamed and reader.undo is not None:
                async for piece in pieces:
                    if reader.feed(piece):
                        break
                else:
                    reader.opening.end()
                rest = rest_class(reader, pieces, stream)
                return reader.stream_reply(), (reader, with_stream(module, response, rest))
            if reader.streamed:
                return Accepted(), (reader, response)
            async for piece in pieces:
                reader.chunks.append(piece)
            await stream.aclose()
            rest = rest_class(reader, _nothing(), stream)
            return reader.full_reply(), (reader, with_stream(module, response, rest))

        async def aclose(self) -> None:
            await self.inner.aclose()

    return AsyncTrimtabTransport


def work_in(body: bytes) -> int:
    """The work of reading ``body``, in bytes; each JSON object in it counts as 100 more."""
    return len(body) + 100 * body.count(b"{")


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


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
