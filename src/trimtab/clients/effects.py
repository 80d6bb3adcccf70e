"""One generator for sync and async callers: it yields what takes time, and a driver does that.

    def sent(client, request):
        response = yield partial(client.send, request)      # waits for the network
        return (yield InThread(partial(parsed, response)))  # takes long: async callers use a thread

    run(sent(client, request))                              # a sync client's method gives a value,
    await run_async(sent(client, request))                  # an async client's an awaitable of it

What a call raises is raised at its ``yield``, so that ``except`` and ``finally`` work as ever.
A generator that also yields ``Chunk`` is a stream: ``chunks`` and ``chunks_async`` iterate over it,
and a call that raises ends it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass
from functools import cache, partial
from operator import methodcaller
from typing import Any, TypeVar

THREAD_BYTES = 65_536
"""Work on at least so many bytes is done in a thread, so that the event loop is not blocked."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class InThread:
    """Work on ``size`` bytes.  Its value is that of ``call``, or of a StopIteration it raises."""

    call: Callable[[], Any]
    size: int = THREAD_BYTES


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes, or an event, for the caller of a stream; never None."""

    data: Any


Effect = Callable[[], Any] | InThread
Effects = Generator[Effect, Any, T]
Stream = Generator[Effect | Chunk, Any, None]


def run(effects: Effects[T]) -> T:
    """What the generator returns, for a sync caller."""
    try:
        effect = next(effects)
        while True:
            try:
                value = _returned(effect.call) if isinstance(effect, InThread) else effect()
            except BaseException as error:
                effect = effects.throw(error)
            else:
                effect = effects.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def run_async(effects: Effects[T]) -> T:
    """What the generator returns, for an async caller."""
    try:
        effect = next(effects)
        while True:
            try:
                value = await (_in_thread(effect) if isinstance(effect, InThread) else effect())
            except BaseException as error:  # a cancellation too: else nobody frees the connection
                effect = effects.throw(error)
            else:
                effect = effects.send(value)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def _in_thread(work: InThread) -> Any:
    if work.size < THREAD_BYTES:
        return _returned(work.call)
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:  # another kind of event loop
        return _returned(work.call)
    return await asyncio.to_thread(_returned, work.call)


def _returned(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StopIteration as stop:
        return stop.value


def next_chunk(stream: Stream) -> Effects[Any]:
    """The next chunk of a stream; None at its end."""
    value: Any = None
    while True:
        try:
            effect = stream.send(value)
        except StopIteration:
            return None
        if isinstance(effect, Chunk):
            return effect.data
        value = yield effect


def chunks(stream: Stream) -> Iterator[Any]:
    """The chunks of a stream, for a sync caller."""
    while (chunk := run(next_chunk(stream))) is not None:
        yield chunk


async def chunks_async(stream: Stream) -> AsyncIterator[Any]:
    """The chunks of a stream, for an async caller."""
    while (chunk := await run_async(next_chunk(stream))) is not None:
        yield chunk


# --- the two kinds of HTTP client ----------------------------------------------------------------


@dataclass(frozen=True)
class ClientKind:
    """What a sync client's responses, streams and transports call what async ones call otherwise;
    each gives an effect's value."""

    read: Callable[[Any], Any]
    close: Callable[[Any], Any]
    iterator: Callable[[Any], Any]
    next: Callable[[Any, None], Any]

    def reader(self, stream: Any) -> Callable[[], Any]:
        """An effect: the next piece of another client's stream, None at its end."""
        return partial(self.next, self.iterator(stream), None)


SYNC = ClientKind(methodcaller("read"), methodcaller("close"), iter, next)
ASYNC = ClientKind(methodcaller("aread"), methodcaller("aclose"), aiter, anext)


@cache
def stream_classes(module: Any) -> tuple[Any, Any]:
    """(class, async class) of streams of ``module``, httpx or httpx2.  They take a ``Stream`` and
    what closes it."""

    class EffectStream(module.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Stream, close: Callable[[], Any]) -> None:
            self._stream, self._close = stream, close

        def __iter__(self) -> Iterator[bytes]:
            return chunks(self._stream)

        def close(self) -> None:
            self._close()

    class AsyncEffectStream(module.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Stream, close: Callable[[], Any]) -> None:
            self._stream, self._close = stream, close

        def __aiter__(self) -> AsyncIterator[bytes]:
            return chunks_async(self._stream)

        async def aclose(self) -> None:
            await self._close()

    return EffectStream, AsyncEffectStream
