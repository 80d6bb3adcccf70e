"""LiteLLM's functions, wrapped; and the name under which its proxy server loads our hook.

LiteLLM is imported only for the hook's base class (``litellm_hooks``).
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

from trimtab.clients.effects import ASYNC, SYNC, ClientKind, Effects, run, run_async
from trimtab.clients.guard import Guard
from trimtab.clients.litellm_bodies import CHAT, as_dict, body_of, request_target, with_body
from trimtab.clients.retry_loop import Reply, attempts
from trimtab.retry.flow import Accepted, Flow, Refused
from trimtab.retry.refusals import exceptions
from trimtab.retry.refusals.response_errors import event_verdict, prompt_tokens


def guarded_call(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """``litellm.completion``, ``acompletion``, or a Router's method, with guarded requests."""
    if inspect.iscoroutinefunction(inspect.unwrap(function)):

        @functools.wraps(function)
        async def acompletion(*args: Any, **keywords: Any) -> Any:
            call = _LiteLLMCall(function, guard, args, keywords, ASYNC)
            return await run_async(call.answered())

        return acompletion

    @functools.wraps(function)
    def completion(*args: Any, **keywords: Any) -> Any:
        return run(_LiteLLMCall(function, guard, args, keywords, SYNC).answered())

    return completion


class _LiteLLMCall:
    """One call of a wrapped function."""

    def __init__(
        self, function: Any, guard: Guard, args: tuple[Any, ...], keywords: dict[str, Any],
        kind: ClientKind,
    ) -> None:  # fmt: skip
        self._function, self._kind = function, kind
        self._keywords = dict(inspect.signature(function).bind_partial(*args, **keywords).arguments)
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.kind is inspect.Parameter.VAR_KEYWORD:
                self._keywords |= self._keywords.pop(name, {})
        self._body = body_of(self._keywords)
        self._flow: Flow = guard.flow(self._body, request_target(self._keywords))

    def answered(self) -> Effects[Any]:
        """Return the last answer, or raise the last error, with our summary as ``_trimtab``."""
        (answer, error), done = yield from attempts(self._flow, self._attempt)
        target: Any = answer if error is None else error
        with contextlib.suppress(AttributeError, ValueError):
            target._trimtab = done.summary
        if error is not None:
            raise error
        return answer

    def _attempt(self, body: Any) -> Effects[tuple[Reply, Any]]:
        try:
            answer = yield partial(self._function, **self._with_body(body))
            if not self._keywords.get("stream"):
                return Accepted(prompt_tokens(as_dict(answer)), final=False), (answer, None)
            return Accepted(), ((yield from self._opened(answer)), None)
        except Exception as error:
            return Refused(*exceptions.error_parts(error)), (None, error)

    def _with_body(self, body: Any) -> dict[str, Any]:
        """The arguments with ``body``; the caller's own if ``body`` is unchanged."""
        if body is self._body:
            return self._keywords
        return with_body(self._keywords, body, CHAT)

    def _opened(self, stream: Any) -> Effects[Any]:
        """A stream read until its first content."""
        rest, held = self._kind.iterator(stream), list[Any]()
        while (piece := (yield partial(self._kind.next, rest, None))) is not None:
            held.append(piece)
            if _has_content(piece):
                break
        return (_Stream if self._kind is SYNC else _AsyncStream)(stream, held, rest)


class _Stream:
    """A LiteLLM stream: the pieces already read, then the rest."""

    def __init__(self, stream: Any, held: list[Any], rest: Iterator[Any]) -> None:
        self._stream, self._held, self._rest = stream, held, rest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._held.pop(0) if self._held else next(self._rest)


class _AsyncStream(_Stream):
    """The same, async."""

    _rest: Any

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        return self._held.pop(0) if self._held else await self._rest.__anext__()


def _has_content(piece: Any) -> bool:
    return bool(event_verdict(as_dict(piece)))


def __getattr__(name: str) -> Any:
    """``proxy_hook``, made when LiteLLM's server loads it by its name."""
    if name != "proxy_hook":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trimtab.clients import litellm_hooks

    hook = globals()[name] = litellm_hooks.proxy_hook()
    return hook
