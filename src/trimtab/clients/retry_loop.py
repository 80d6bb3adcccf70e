"""Drives a retry flow to its end: send, read the reply, send again or return the answer.

One loop is for sync callers and one for async ones.  ``attempt`` sends a request and returns (reply
for the flow, the answer itself); ``close`` frees the connection of an answer that is not returned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from trimtab.retry.flow import Accepted, Done, Flow, Refused
from trimtab.retry.refusals.response_errors import error_in_body, prompt_tokens

THREAD_BYTES = 65_536
"""A body of at least this size is fitted in a thread, so that the event loop is not blocked."""

Reply = Refused | Accepted


def run_flow(
    flow: Flow,
    attempt: Callable[[Any], tuple[Reply, Any]],
    close: Callable[[Any], object] = lambda answer: None,
) -> tuple[Any, Done]:
    """(last answer, result of the flow).  Raises what ``attempt`` or the flow raises."""
    request = next(flow).request
    while True:
        reply, answer = attempt(request)
        try:
            request = flow.send(reply).request
        except StopIteration as stop:
            return answer, stop.value
        except BaseException:
            close(answer)
            raise
        close(answer)


async def _close_nothing(answer: Any) -> None:
    return


async def run_flow_async(
    flow: Flow,
    attempt: Callable[[Any], Awaitable[tuple[Reply, Any]]],
    close: Callable[[Any], Awaitable[object]] = _close_nothing,
    *,
    size: int = THREAD_BYTES,
) -> tuple[Any, Done]:
    """``run_flow`` for async callers; ``size``: the work of reading the body, see ``in_thread``."""
    effect = await in_thread(flow.__next__, size=size)
    while True:
        reply, answer = await attempt(effect.request)
        try:
            effect = await in_thread(flow.send, reply, size=size)
        except BaseException:  # cancelled: nobody else would free the connection
            await close(answer)
            raise
        if isinstance(effect, Done):
            return answer, effect
        await close(answer)


async def in_thread(call: Callable[..., Any], *args: Any, size: int = THREAD_BYTES) -> Any:
    """Call ``call``, in a thread if ``size`` is at least THREAD_BYTES.

    Returns the value of a StopIteration that it raises."""

    def called() -> Any:
        try:
            return call(*args)
        except StopIteration as stop:
            return stop.value

    if size < THREAD_BYTES:
        return called()
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:  # another kind of event loop
        return called()
    return await asyncio.to_thread(called)


def reply_of(status: int, body: Any, headers: Any = None) -> Reply:
    """The reply for a response that was read to its end; an error may have status 200."""
    if status >= 400:
        return Refused(status, body, headers)
    error = error_in_body(body)
    if error is not None:
        return Refused(status, error, headers)
    return Accepted(prompt_tokens(body), final=False)
