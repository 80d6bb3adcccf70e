"""LiteLLM: its functions wrapped, and a callback for its Router and its proxy server.

A wrapped function retries refusals.  A callback cannot retry: it fits each request and learns
limits from failed calls.  LiteLLM is imported only for the callback's base class.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Unpack

from trimtab.clients.effects import ASYNC, SYNC, ClientKind, Effects, InThread, run, run_async
from trimtab.clients.guard import Guard, WrapKeywords, guard_of
from trimtab.clients.request_target import RequestTarget
from trimtab.clients.retry_loop import Reply, attempts
from trimtab.clients.wrapped_clients import register
from trimtab.errors import MissingExtra
from trimtab.retry.flow import Accepted, Flow, Refused
from trimtab.retry.learned_limits import key_for
from trimtab.retry.refusals import exceptions
from trimtab.retry.refusals.response_errors import event_verdict, prompt_tokens

_BODY = ("messages", "model", "tools", "functions", "max_tokens", "max_completion_tokens")
"""The arguments that make up the request."""


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
        self._flow: Flow = guard.flow(self._body, _request_target(self._keywords))

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
                return Accepted(prompt_tokens(_dict(answer)), final=False), (answer, None)
            return Accepted(), ((yield from self._opened(answer)), None)
        except Exception as error:
            return Refused(*exceptions.error_parts(error)), (None, error)

    def _with_body(self, body: Any) -> dict[str, Any]:
        """The arguments with ``body``; the caller's own if ``body`` is unchanged."""
        if body is self._body:
            return self._keywords
        return {**self._keywords, **{key: body[key] for key in _BODY if key in body}}

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


def body_of(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The request in LiteLLM's arguments, with messages that are objects turned into dicts."""
    body = {key: keywords[key] for key in _BODY if keywords.get(key) is not None}
    messages = body.get("messages")
    if isinstance(messages, (list, tuple)):
        plain = [_dict(message) for message in messages]
        same = all(old is new for old, new in zip(messages, plain, strict=True))
        body["messages"] = messages if same and isinstance(messages, list) else plain
    return body


def _dict(value: Any) -> Any:
    if isinstance(value, Mapping) or not hasattr(value, "model_dump"):
        return value
    return value.model_dump(exclude_none=True)


def _has_content(piece: Any) -> bool:
    return bool(event_verdict(_dict(piece)))


def _request_target(keywords: Mapping[str, Any]) -> RequestTarget:
    model = str(keywords.get("model") or "")
    host = str(keywords.get("api_base") or keywords.get("base_url") or "litellm")
    key = key_for(host, model, str(keywords.get("api_key") or ""))
    return RequestTarget("openai-chat", key, None, bool(keywords.get("stream")))


def callback(**keywords: Unpack[WrapKeywords]) -> Any:
    """A ``CustomLogger`` for ``litellm.callbacks``: Router, proxy server and ``acompletion``.

    Keywords are those of ``wrap``.  Raises MissingExtra.
    """
    shared = guard_of("litellm_callback", keywords, answers=False)
    try:
        from litellm.integrations.custom_logger import CustomLogger
    except ImportError:
        raise MissingExtra("LiteLLM is not installed: pip install litellm") from None

    def fitted_in_thread(arguments: Any) -> Effects[Any]:
        return (yield InThread(partial(fitted_arguments, shared, arguments)))

    class TrimtabCallback(CustomLogger):  # type: ignore[misc]
        """Fits what LiteLLM is about to send; learns limits from failed calls."""

        async def async_pre_call_deployment_hook(self, kwargs: Any, call_type: Any) -> Any:
            return await run_async(fitted_in_thread(kwargs))

        async def async_pre_call_hook(
            self, user_api_key_dict: Any, cache: Any, data: Any, call_type: Any
        ) -> Any:
            return await run_async(fitted_in_thread(data))

        async def async_log_failure_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            learn_from(shared, kwargs)

    return register(TrimtabCallback(), shared.fits)


def fitted_arguments(guard: Guard, keywords: Any) -> Any:
    """``keywords`` with fitted messages; the very same object if nothing changed."""
    body = body_of(keywords)
    if not isinstance(body.get("messages"), list):
        return keywords
    flow = guard.flow(body, _request_target(keywords))
    step = next(flow)
    flow.close()
    guard.stats.count(step.fitted, answered=True)
    sent = step.request
    if sent is body:
        return keywords
    return {**keywords, **{key: sent[key] for key in _BODY if key in sent}}


def learn_from(guard: Guard, keywords: Any) -> None:
    """Learn the limits that the refusal of a failed call names, for later calls."""
    error = keywords.get("exception") if isinstance(keywords, Mapping) else None
    if error is None:
        return
    flow = guard.flow(body_of(keywords), _request_target(keywords))
    next(flow)
    try:
        flow.send(Refused(*exceptions.error_parts(error)))
    except StopIteration:
        return
    flow.close()
