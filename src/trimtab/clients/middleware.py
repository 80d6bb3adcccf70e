"""A middleware for Anthropic's SDK, for clients that sign their requests (Bedrock, Vertex).

It runs before the request is signed, and at each attempt of the SDK's own retries.  It does not see
errors inside a stream that began with status 200, and offers no recall tool in streams.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from trimtab.clients.effects import (
    ASYNC,
    SYNC,
    ClientKind,
    Effects,
    next_chunk,
    run,
    run_async,
)
from trimtab.clients.guard import Guard, Started, WrapKeywords, guard_of
from trimtab.clients.http_copies import rewritten_whole
from trimtab.clients.httpx_clients import library_of
from trimtab.clients.request_target import RequestTarget
from trimtab.clients.retry_loop import Reply, attempts, reply_of
from trimtab.clients.wrapped_clients import register
from trimtab.errors import MissingExtra
from trimtab.retry.flow import Accepted, Done, Flow
from trimtab.retry.learned_limits import key_for
from trimtab.retry.own_header import HEADER, ROUNDS, is_off

if TYPE_CHECKING:
    from anthropic import Middleware

    from trimtab.rounds.recall_rounds import RecallRounds


def anthropic_middleware(**keywords: Unpack[WrapKeywords]) -> Middleware:
    """For ``Anthropic(middleware=[…])``, sync and async clients; keywords are those of ``wrap``.

    Raises MissingExtra if the installed SDK does not support middleware.
    """
    return middleware_of(guard_of("anthropic_middleware", keywords))


def middleware_of(shared: Guard) -> Middleware:
    """The middleware with this guard.  Raises MissingExtra."""
    try:
        from anthropic import Middleware
    except ImportError:
        raise MissingExtra("anthropic 2 or newer is needed: pip install 'anthropic>=2'") from None

    class AnthropicMiddleware(Middleware):
        """Fits each request to ``/v1/messages``, and reacts to refusals."""

        def handle(self, request: Any, call_next: Any) -> Any:
            return run(_handled(shared, request, call_next, SYNC))

        async def handle_async(self, request: Any, call_next: Any) -> Any:
            return await run_async(_handled(shared, request, call_next, ASYNC))

    return register(AnthropicMiddleware(), shared.fits)


def _handled(guard: Guard, request: Any, call_next: Any, kind: ClientKind) -> Effects[Any]:
    started = _start(guard, request)
    if started is None:
        return (yield partial(call_next, request))

    def attempt(body: Any) -> Effects[tuple[Reply, Any]]:
        response = yield partial(call_next, _with_body(request, body))
        if response.status_code < 400 and request.stream:
            return Accepted(), response
        data = yield partial(kind.read, response.http_response)
        return reply_of(response.status_code, data, response.http_response.headers), response

    def send(flow: Flow) -> Effects[Any]:
        return attempts(flow, attempt, lambda answer: partial(kind.close, answer.http_response))

    response, done = yield from send(started.flow)
    if (plain := _without_recall(guard, started, done, response)) is not None:
        return _marked(*(yield from send(plain)))
    if started.rounds is None or not done.accepted:
        return _marked(response, done)

    def later(body: bytes) -> Effects[tuple[Any, Done]]:
        return send(guard.round_flow(json.loads(body), started.target))

    return _marked((yield from _joined(started.rounds, response, later)), done)


def _joined(
    rounds: RecallRounds, response: Any, send: Callable[[bytes], Effects[tuple[Any, Done]]]
) -> Effects[Any]:
    """The one response of all rounds; that of a refused one as it is."""
    from trimtab.clients.answer_rounds import RefusedLater, shown
    from trimtab.rounds.answer_steps import AnswerError, steps

    def read() -> Effects[bytes]:
        yield from ()
        content: bytes = response.http_response.content
        return content

    def next_round(body: bytes) -> Effects[AnswerError | None]:
        nonlocal response
        response, done = yield from send(body)
        return None if done.accepted else AnswerError.of(response.status_code, b"")

    whole, stream = b"", shown(steps(rounds, None), read, next_round)
    try:
        while (data := (yield from next_chunk(stream))) is not None:
            whole = data
    except RefusedLater:
        whole = response.http_response.content
    http = response.http_response
    if whole != http.content:
        response.http_response = http = rewritten_whole(library_of(type(http)), http, whole)
    http.headers[ROUNDS] = str(rounds.rounds)
    return response


def _start(guard: Guard, request: Any) -> Started | None:
    body = request.json
    path = str(request.url).partition("?")[0].rstrip("/")
    if request.method.lower() != "post" or not path.endswith("/messages"):
        return None
    if is_off(request.headers):
        return None
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        return None
    key = key_for("anthropic", str(body.get("model") or ""))
    target = RequestTarget("anthropic", key, None, bool(body.get("stream")))
    return guard.start_parsed(body, str(request.url), request.headers, target)


def _without_recall(guard: Guard, started: Started, done: Done, response: Any) -> Flow | None:
    error = b"" if done.accepted else response.http_response.content
    return guard.without_recall(started, done, error)


def _with_body(request: Any, body: Any) -> Any:
    return request if body is request.json else request.copy(body=body)


def _marked(response: Any, done: Done) -> Any:
    response.http_response.headers[HEADER] = done.summary
    return response
