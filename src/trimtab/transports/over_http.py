"""A transport for httpx and httpx2, sync and async, made once for either library.

Knows requests, responses and streams of both libraries, which look alike.  Imports neither: the
module is handed in.  What happens to a request is decided in ``flow``.

A response that refuses is read and closed before the next attempt; one that answers is passed on
as its stream, held back until the first content event, never sent again after that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache, partial
from typing import Any

from trimtab.flow import Accepted, Done, Refused
from trimtab.refusals.answers import of_body, prompt_tokens
from trimtab.refusals.openings import Opening
from trimtab.transports.decoding import Undecodable, decoded, decoder
from trimtab.transports.guard import HEADER, Guard
from trimtab.transports.spots import Spot

_STREAMS = ("text/event-stream", "application/vnd.amazon.eventstream", "application/x-ndjson")
_DROPPED = ("content-length", "transfer-encoding")
_TAIL_BYTES = 8_192
"""Of the end of a stream, where the usage stands."""
_THREAD_BYTES = 65_536
"""Above this a body is fitted in a thread, so that an event loop goes on."""


class Look:
    """What a response turned out to be: the reply for the flow, and what was read of it."""

    def __init__(self, response: Any, where: Spot) -> None:
        kind = response.headers.get("content-type", "").lower()
        self.encoding = response.headers.get("content-encoding", "")
        self.status = int(response.status_code)
        self.streamed = self.status < 400 and (kind.startswith(_STREAMS) or where.streams)
        self.opening = Opening(frames="amazon.eventstream" in kind)
        self.undo = decoder(self.encoding)
        self.chunks: list[bytes] = []
        self.headers = response.headers
        self.tail = b""
        self.watcher: Callable[[bytes], object] | None = None

    def whole(self) -> Refused | Accepted:
        """Of a response that was read to its end."""
        body = decoded(b"".join(self.chunks), self.encoding)
        if self.status >= 400:
            return Refused(self.status, body, self.headers)
        error = of_body(body)
        if error is not None:
            return Refused(self.status, error, self.headers)
        return Accepted(prompt_tokens(body), final=False)

    def take(self, chunk: bytes) -> bool:
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

    def passing(self, chunk: bytes) -> None:
        """Bytes of a stream that are being passed on: the last of them hold its usage."""
        self.tail = (self.tail + self._undone(chunk))[-_TAIL_BYTES:]

    def ended(self) -> None:
        """A stream was passed on whole: its last event with a usage is looked at."""
        if self.watcher is None:
            return
        for line in reversed((self.opening.held + b"\n" + self.tail).split(b"\n")):
            if line.startswith(b"data:") and prompt_tokens(line[5:]) is not None:
                self.watcher(line[5:].strip())
                return

    def begun(self) -> Refused | Accepted:
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

        def __init__(self, look: Look, more: Iterator[bytes], stream: Any) -> None:
            self._look, self._more, self._stream = look, more, stream

        def __iter__(self) -> Iterator[bytes]:
            yield from self._look.chunks
            for chunk in self._more:
                self._look.passing(chunk)
                yield chunk
            self._look.ended()

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
            run, where = started
            effect = next(run)
            while True:
                response = self.inner.handle_request(carrying(module, request, effect.request))
                look, reply, response = self._look(response, where)
                try:
                    effect = run.send(reply)
                except StopIteration as stop:
                    return finished(self.guard, look, response, stop.value)
                except BaseException:
                    response.close()
                    raise
                response.close()

        def _look(self, response: Any, where: Spot) -> Any:
            look, stream = Look(response, where), response.stream
            pieces = iter(stream)
            if look.streamed and look.undo is not None:
                for piece in pieces:
                    if look.take(piece):
                        break
                else:
                    look.opening.end()
                rest = Rest(look, pieces, stream)
                return look, look.begun(), again(module, response, rest)
            if look.streamed:
                return look, Accepted(), response
            look.chunks.extend(pieces)
            stream.close()
            rest = Rest(look, iter(()), stream)
            return look, look.whole(), again(module, response, rest)

        def close(self) -> None:
            self.inner.close()

    return TrimtabTransport


def _async(module: Any) -> Any:
    class AsyncRest(module.AsyncByteStream):  # type: ignore[misc]
        """What was read of a stream, then what is still to come."""

        def __init__(self, look: Look, more: AsyncIterator[bytes], stream: Any) -> None:
            self._look, self._more, self._stream = look, more, stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in self._look.chunks:
                yield chunk
            async for chunk in self._more:
                self._look.passing(chunk)
                yield chunk
            self._look.ended()

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
            run, where = started
            effect = await step(run.__next__, size=len(data))
            while True:
                sent = carrying(module, request, effect.request)
                response = await self.inner.handle_async_request(sent)
                look, reply, response = await self._look(response, where)
                try:
                    effect = await step(run.send, reply, size=len(data))
                except BaseException:  # cancelled: nobody else would give the connection back
                    await response.aclose()
                    raise
                if isinstance(effect, Done):
                    return finished(self.guard, look, response, effect)
                await response.aclose()

        async def _look(self, response: Any, where: Spot) -> Any:
            look, stream = Look(response, where), response.stream
            pieces = stream.__aiter__()
            if look.streamed and look.undo is not None:
                async for piece in pieces:
                    if look.take(piece):
                        break
                else:
                    look.opening.end()
                rest = AsyncRest(look, pieces, stream)
                return look, look.begun(), again(module, response, rest)
            if look.streamed:
                return look, Accepted(), response
            async for piece in pieces:
                look.chunks.append(piece)
            await stream.aclose()
            rest = AsyncRest(look, _nothing(), stream)
            return look, look.whole(), again(module, response, rest)

        async def aclose(self) -> None:
            await self.inner.aclose()

    return AsyncTrimtabTransport


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


async def step(move: Any, *given: Any, size: int = _THREAD_BYTES) -> Any:
    """One step of a flow, in a thread where the body is large; its end comes back as a value."""

    def moved() -> Any:
        try:
            return move(*given)
        except StopIteration as stop:
            return stop.value

    if size < _THREAD_BYTES:
        return moved()
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:  # another kind of event loop
        return moved()
    return await asyncio.to_thread(moved)


def carrying(module: Any, request: Any, body: bytes) -> Any:
    """The caller's request, or one like it with another body; the caller's is never changed."""
    if body is request.content:
        return request
    headers = [
        (k, v) for k, v in request.headers.raw if k.decode("latin-1").lower() not in _DROPPED
    ]
    return module.Request(
        request.method, request.url, headers=headers, content=body, extensions=request.extensions
    )


def again(module: Any, response: Any, stream: Any) -> Any:
    """The same response with this stream."""
    return module.Response(
        response.status_code,
        headers=response.headers,
        stream=stream,
        extensions=response.extensions,
    )


def finished(guard: Guard, look: Look, response: Any, done: Done) -> Any:
    """The response with our line among its headers; its usage is read, a stream's at its end."""
    response.headers[HEADER] = done.summary
    if not look.streamed:
        guard.observe(decoded(b"".join(look.chunks), look.encoding), done)
    elif done.accepted:
        look.watcher = partial(guard.observe, done=done)
    return response
