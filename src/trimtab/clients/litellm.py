"""LiteLLM: its functions wrapped, and a callback for its Router and its proxy server.

A wrapped function retries refusals.  A callback cannot retry: it fits each request and learns
limits from failed calls.  LiteLLM is imported only for the callback's base class.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Unpack

from trimtab.clients.guard import Guard, GuardKeywords, guard_of
from trimtab.clients.request_target import RequestTarget
from trimtab.clients.retry_loop import Reply, in_thread, run_flow, run_flow_async
from trimtab.errors import MissingExtra
from trimtab.retry.flow import Accepted, Done, Flow, Refused
from trimtab.retry.learned_limits import key_for
from trimtab.retry.refusals import exceptions
from trimtab.retry.refusals.response_errors import event_verdict, prompt_tokens

_BODY = ("messages", "model", "tools", "functions", "max_tokens", "max_completion_tokens")
"""The arguments that make up the request."""


def guarded_call(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    """``litellm.completion``, ``acompletion``, or a Router's method, with guarded requests."""
    if inspect.iscoroutinefunction(inspect.unwrap(function)):
        return _async_call(function, guard)

    @functools.wraps(function)
    def completion(*args: Any, **keywords: Any) -> Any:
        call = _LiteLLMCall(function, guard, args, keywords)

        def attempt(body: Any) -> tuple[Reply, Any]:
            try:
                answer = call.opened(function(**call.with_body(body)))
                return call.accepted(answer), (answer, None)
            except Exception as error:
                return Refused(*exceptions.error_parts(error)), (None, error)

        (answer, error), done = run_flow(call.flow, attempt)
        return call.returned(answer, error, done)

    return completion


def _async_call(function: Callable[..., Any], guard: Guard) -> Callable[..., Any]:
    @functools.wraps(function)
    async def acompletion(*args: Any, **keywords: Any) -> Any:
        call = _LiteLLMCall(function, guard, args, keywords)

        async def attempt(body: Any) -> tuple[Reply, Any]:
            try:
                answer = await call.aopened(await function(**call.with_body(body)))
                return call.accepted(answer), (answer, None)
            except Exception as error:
                return Refused(*exceptions.error_parts(error)), (None, error)

        (answer, error), done = await run_flow_async(call.flow, attempt)
        return call.returned(answer, error, done)

    return acompletion


class _LiteLLMCall:
    """One call of a wrapped function."""

    def __init__(
        self, function: Any, guard: Guard, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> None:
        self.keywords = dict(inspect.signature(function).bind_partial(*args, **keywords).arguments)
        for name, kind in inspect.signature(function).parameters.items():
            if kind.kind is inspect.Parameter.VAR_KEYWORD:
                self.keywords |= self.keywords.pop(name, {})
        self.body = body_of(self.keywords)
        self.flow: Flow = guard.flow(self.body, _request_target(self.keywords))

    def with_body(self, body: Any) -> dict[str, Any]:
        """The arguments with ``body``; the caller's own if ``body`` is unchanged."""
        if body is self.body:
            return self.keywords
        return {**self.keywords, **{key: body[key] for key in _BODY if key in body}}

    def opened(self, answer: Any) -> Any:
        """A stream read until its first content; any other answer unchanged."""
        if not self.keywords.get("stream"):
            return answer
        pieces, held = iter(answer), list[Any]()
        for piece in pieces:
            held.append(piece)
            if _has_content(piece):
                break
        return _Stream(answer, held, pieces)

    async def aopened(self, answer: Any) -> Any:
        """The same for an async stream."""
        if not self.keywords.get("stream"):
            return answer
        pieces, held = answer.__aiter__(), list[Any]()
        async for piece in pieces:
            held.append(piece)
            if _has_content(piece):
                break
        return _AsyncStream(answer, held, pieces)

    def accepted(self, answer: Any) -> Reply:
        """The reply for an answer, or for a stream that was opened."""
        if self.keywords.get("stream"):
            return Accepted()
        return Accepted(prompt_tokens(_dict(answer)), final=False)

    def returned(self, answer: Any, error: Exception | None, done: Done) -> Any:
        """Return the last answer, or raise the last error, with our summary as ``_trimtab``."""
        target: Any = answer if error is None else error
        with contextlib.suppress(AttributeError, ValueError):
            target._trimtab = done.summary
        if error is not None:
            raise error
        return answer


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


def callback(*, guard: Guard | None = None, **keywords: Unpack[GuardKeywords]) -> Any:
    """A ``CustomLogger`` for ``litellm.callbacks``: Router, proxy server and ``acompletion``.

    ``keywords`` are those of ``Guard``.  Raises MissingExtra.
    """
    shared = guard_of(guard, keywords)
    try:
        from litellm.integrations.custom_logger import CustomLogger
    except ImportError:
        raise MissingExtra("LiteLLM is not installed: pip install litellm") from None

    class TrimtabCallback(CustomLogger):  # type: ignore[misc]
        """Fits what LiteLLM is about to send; learns limits from failed calls."""

        guard = shared

        async def async_pre_call_deployment_hook(self, kwargs: Any, call_type: Any) -> Any:
            return await in_thread(fitted_arguments, shared, kwargs)

        async def async_pre_call_hook(
            self, user_api_key_dict: Any, cache: Any, data: Any, call_type: Any
        ) -> Any:
            return await in_thread(fitted_arguments, shared, data)

        async def async_log_failure_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            learn_from(shared, kwargs)

    return TrimtabCallback()


def fitted_arguments(guard: Guard, keywords: Any) -> Any:
    """``keywords`` with fitted messages; the very same object if nothing changed."""
    body = body_of(keywords)
    if not isinstance(body.get("messages"), list):
        return keywords
    flow = guard.flow(body, _request_target(keywords))
    sent = next(flow).request
    flow.close()
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
