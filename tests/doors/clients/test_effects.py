"""The drivers of generators that serve sync and async callers alike."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from trimtab.clients.effects import (
    THREAD_BYTES,
    Chunk,
    Effects,
    InThread,
    Stream,
    chunks,
    chunks_async,
    run,
    run_async,
)


def later(call: Callable[..., Any]) -> Callable[..., Any]:
    """The same as a method of an async client."""

    async def called(*given: Any) -> Any:
        await asyncio.sleep(0)
        return call(*given)

    return called


def sent(send: Callable[[str], str], close: Callable[[], object]) -> Effects[str]:
    try:
        answer = yield partial(send, "question")
    except OSError as error:
        return f"no answer: {error}"
    except BaseException:
        yield close
        raise
    return (yield InThread(lambda: answer.upper(), 1))


def refuse(question: str) -> str:
    raise OSError(question)


@pytest.mark.parametrize(("send", "expected"), [(str, "QUESTION"), (refuse, "no answer: question")])
def test_a_sync_and_an_async_caller_get_the_same(send: Any, expected: str) -> None:
    assert run(sent(send, list)) == expected
    assert asyncio.run(run_async(sent(later(send), later(list)))) == expected


def test_a_cancelled_call_is_raised_where_it_was_made_and_what_it_holds_is_closed() -> None:
    closed = list[str]()

    async def cancelled() -> None:
        task = asyncio.ensure_future(
            run_async(sent(lambda question: asyncio.sleep(60), later(partial(closed.append, "it"))))
        )
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert closed == ["it"]


@pytest.mark.parametrize(("size", "same"), [(THREAD_BYTES - 1, True), (THREAD_BYTES, False)])
def test_long_work_of_an_async_caller_is_done_in_a_thread(size: int, same: bool) -> None:
    def work() -> Effects[Any]:
        return (yield InThread(threading.get_ident, size))

    assert (asyncio.run(run_async(work())) == threading.get_ident()) is same
    assert run(work()) == threading.get_ident()


def test_a_stream_shows_its_chunks_and_ends_with_the_error_of_a_call() -> None:
    def stream(more: Callable[[], bytes]) -> Stream:
        yield Chunk(b"first")
        yield Chunk((yield more))
        yield from map(Chunk, (b"third", b""))

    async def all_of(stream: Stream) -> list[bytes]:
        return [chunk async for chunk in chunks_async(stream)]

    expected = [b"first", b"second", b"third", b""]
    assert list(chunks(stream(lambda: b"second"))) == expected
    assert asyncio.run(all_of(stream(later(lambda: b"second")))) == expected
    with pytest.raises(OSError, match="gone"):
        list(chunks(stream(partial(refuse, "gone"))))  # type: ignore[arg-type]
