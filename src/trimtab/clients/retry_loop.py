"""Drives a retry flow to its end: send, read the reply, send again or return the answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from trimtab.clients.effects import THREAD_BYTES, Effect, Effects, InThread
from trimtab.retry.flow import Accepted, Done, Flow, Refused
from trimtab.retry.refusals.response_errors import error_in_body, prompt_tokens

Reply = Refused | Accepted


def attempts(
    flow: Flow,
    attempt: Callable[[Any], Effects[tuple[Reply, Any]]],
    close: Callable[[Any], Effect] | None = None,
    *,
    size: int = THREAD_BYTES,
) -> Effects[tuple[Any, Done]]:
    """(last answer, result of the flow).  Raises what ``attempt`` or the flow raises.

    ``attempt`` sends a request: (reply for the flow, the answer itself); ``close`` frees the
    connection of an answer that is not returned; ``size``: bytes of work in a step of the flow.
    """
    step = yield InThread(partial(next, flow), size)
    while True:
        reply, answer = yield from attempt(step.request)
        try:
            step = yield InThread(partial(flow.send, reply), size)
        except BaseException:
            if close is not None:
                yield close(answer)
            raise
        if isinstance(step, Done):
            return answer, step
        if close is not None:
            yield close(answer)


def reply_of(status: int, body: Any, headers: Any = None) -> Reply:
    """The reply for a response that was read to its end; an error may have status 200."""
    if status >= 400:
        return Refused(status, body, headers)
    error = error_in_body(body)
    if error is not None:
        return Refused(status, error, headers)
    return Accepted(prompt_tokens(body), final=False)
