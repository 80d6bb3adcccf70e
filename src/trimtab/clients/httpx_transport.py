"""Transports for httpx and httpx2, sync and async, that fit requests and retry refusals.

Imports neither library: the module is an argument.  ``retry.flow`` decides what is sent.

A refused response is read and closed before the next attempt.  An accepted stream is held back
until its first content event; after that nothing is sent again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache, partial
from typing import Any

from trimtab.clients.decoding import Undecodable, decoded, decoder
from trimtab.clients.guard import HEADER, Guard
from trimtab.clients.request_target import RequestTarget
from trimtab.clients.retry_loop import reply_of, run_flow, run_flow_async
from trimtab.retry.flow import Accepted, Done, Refused
from trimtab.retry.refusals.response_errors import prompt_tokens
from trimtab.retry.refusals.stream_start import StreamStart

_STREAMS = ("text/event-stream", "application/vnd.amazon.eventstream", "application/x-ndjson")
_DROPPED = ("content-length", "transfer-encoding")
_TAIL_BYTES = 262_144
"""How much of a stream's end is kept at least: the usage is there, and the whole answer again where
a later request may name it."""


class ResponseReader:
    """Reads a response as far as needed and makes the reply for the flow."""

    def __init__(self, response: Any, target: RequestTarget) -> None:
        kind = response.headers.get("content-type", "").lower()
        self.encoding = response.headers.get("content-encoding", "")
        self.status = int(response.status_code)
        self.streamed = self.status < 400 and (kind.startswith(_STREAMS) or target.streams)
        self.opening = StreamStart(frames="amazon.eventstream" in kind)
        self.undo = decoder(self.encoding)
        self.chunks: list[bytes] = []
        self.headers = response.headers
        self.tail = bytearray()
        self.watcher: Callable[[bytes], object] | None = None

    def full_reply(self) -> Refused | Accepted:
        """Of a response that was read to its end."""
        body = decoded(b"".join(self.chunks), self.encoding)
        return reply_of(self.status, body, self.headers)

    def feed(self, chunk: bytes) -> bool:
        """The next bytes of a stream; whether enough was seen."""
        self.chunks.append(chunk)
        return bool(self.opening.feed(plain)) if (plain := self._undone(chunk)) else not self.undo

    def _undone(self, chunk: bytes) -> bytes:
        """What it means; what cannot be decoded is passed on without being looked into."""
        if self.undo is None:
            return b""
        try:
            return self.undo(chunk)
        except Undecodable:
            self.undo = None
            return b""

    def pass_on(self, chunk: bytes) -> None:
        """Bytes of a stream that are being passed on: the last of them hold its usage."""
        self.tail += self._undone(chunk)
        if len(self.tail) > 2 * _TAIL_BYTES:
            del self.tail[:-_TAIL_BYTES]

    def read_usage(self) -> None:
        """A stream was passed on whole: its last event with a usage is looked at."""
        if self.watcher is None:
            return
        for line in reversed((self.opening.held + b"\n" + self.tail).split(b"\n")):
            if line.startswith(b"data:") and prompt_tokens(line[5:]) is not None:
                self.watcher(line[5:].strip())
                return

    def stream_reply(self) -> Refused | Accepted:
        """Of a stream that was read so far."""
        if self.opening.verdict == "refused":
            return Refused(self.status, self.opening.error, self.headers)
        return Accepted()


@cache
def classes(module: Any) -> tuple[Any, Any]:
    """(transport, async transport) for this library."""
    return _sync(module), _async(module)


def _sync(module: Any) -> Any:
    class Rest(module.SyncByteStream):  # type: ignore[misc]
        """What was read of a stream, then what is still to come."""

        def __init__(self, reader: ResponseReader, rest: Iterator[bytes], stream: Any) -> None:
            self._reader, self._rest, self._stream = reader, rest, stream

        def __iter__(self) -> Iterator[bytes]:
            yield from self._reader.chunks
            for chunk in self._rest:
                self._reader.pass_on(chunk)
                yield chunk
            self._reader.read_usage()

        def close(self) -> None:
            self._stream.close()

    class TrimtabTransport(module.BaseTransport):  # type: ignore[misc]
        """Fits requests to language models on their way; anything else passes through."""

        def __init__(self, guard: Guard, inner: Any) -> None:
            self.guard, self.inner = guard, inner

        def handle_request(self, request: Any) -> Any:
            started = self.guard.start(
                request.method, str(request.url), request.headers, request.read
            )
            if started is None:
                return self.inner.handle_request(request)
            flow, target = started

            def attempt(body: bytes) -> Any:
                return self._read(
                    self.inner.handle_request(with_body(module, request, body)), target
                )

            (reader, response), done = run_flow(flow, attempt, lambda answer: answer[1].close())
            return finish(self.guard, reader, response, done)

        def _read(self, response: Any, target: RequestTarget) -> Any:
            reader, stream = ResponseReader(response, target), response.stream
            pieces = iter(stream)
            if reader.streamed and reader.undo is not None:
                for piece in pieces:
                    if reader.feed(piece):
                        break
                else:
                    reader.opening.end()
                rest = Rest(reader, pieces, stream)
                return reader.stream_reply(), (reader, with_stream(module, response, rest))
            if reader.streamed:
                return Accepted(), (reader, response)
            reader.chunks.extend(pieces)
            stream.close()
            rest = Rest(reader, iter(()), stream)
            return reader.full_reply(), (reader, with_stream(module, response, rest))

        def close(self) -> None:
            self.inner.close()

    return TrimtabTransport


def _async(module: Any) -> Any:
    class AsyncRest(module.AsyncByteStream):  # type: ignore[misc]
        """What was read of a stream, then what is still to come."""

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
            await self._stream.aclose()

    class AsyncTrimtabTransport(module.AsyncBaseTransport):  # type: ignore[misc]
        """The same for async clients; a large body is fitted in a thread."""

        def __init__(self, guard: Guard, inner: Any) -> None:
            self.guard, self.inner = guard, inner

        async def handle_async_request(self, request: Any) -> Any:
            if not self.guard.wants(request.method, str(request.url)):
                return await self.inner.handle_async_request(request)
            data = await request.aread()
            started = self.guard.start(
                request.method, str(request.url), request.headers, lambda: data
            )
            if started is None:
                return await self.inner.handle_async_request(request)
            flow, target = started

            async def attempt(body: bytes) -> Any:
                sent = with_body(module, request, body)
                return await self._read(await self.inner.handle_async_request(sent), target)

            (reader, response), done = await run_flow_async(
                flow, attempt, lambda answer: answer[1].aclose(), size=work_in(data)
            )
            return finish(self.guard, reader, response, done)

        async def _read(self, response: Any, target: RequestTarget) -> Any:
            reader, stream = ResponseReader(response, target), response.stream
            pieces = stream.__aiter__()
            if reader.streamed and reader.undo is not None:
                async for piece in pieces:
                    if reader.feed(piece):
                        break
                else:
                    reader.opening.end()
                rest = AsyncRest(reader, pieces, stream)
                return reader.stream_reply(), (reader, with_stream(module, response, rest))
            if reader.streamed:
                return Accepted(), (reader, response)
            async for piece in pieces:
                reader.chunks.append(piece)
            await stream.aclose()
            rest = AsyncRest(reader, _nothing(), stream)
            return reader.full_reply(), (reader, with_stream(module, response, rest))

        async def aclose(self) -> None:
            await self.inner.aclose()

    return AsyncTrimtabTransport


def work_in(body: bytes) -> int:
    """How much there is to read in a body, in bytes: an object in it costs as much as 100."""
    return len(body) + 100 * body.count(b"{")


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


def with_body(module: Any, request: Any, body: bytes) -> Any:
    """The caller's request, or one like it with another body; the caller's is never changed."""
    if body is request.content:
        return request
    headers = [
        (k, v) for k, v in request.headers.raw if k.decode("latin-1").lower() not in _DROPPED
    ]
    return module.Request(
        request.method, request.url, headers=headers, content=body, extensions=request.extensions
    )


def with_stream(module: Any, response: Any, stream: Any) -> Any:
    """The same response with this stream."""
    return module.Response(
        response.status_code,
        headers=response.headers,
        stream=stream,
        extensions=response.extensions,
    )


def finish(guard: Guard, reader: ResponseReader, response: Any, done: Done) -> Any:
    """The response with our line among its headers; its usage is read, a stream's at its end."""
    response.headers[HEADER] = done.summary
    if not reader.streamed:
        guard.observe(decoded(b"".join(reader.chunks), reader.encoding), done)
    elif done.accepted:
        reader.watcher = partial(guard.observe, done=done)
    return response
