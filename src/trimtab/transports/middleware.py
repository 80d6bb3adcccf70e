"""Anthropic's own middleware: the way in where a client signs what it sends (Bedrock, Vertex).

Knows the SDK's request and response objects.  It runs before the request is signed and within the
SDK's retries, once an attempt.  An error inside a stream that began with 200 is not seen here.
"""

from __future__ import annotations

from typing import Any

from trimtab.errors import MissingExtra
from trimtab.flow import Accepted, Done, Flow, Refused
from trimtab.refusals.answers import of_body, prompt_tokens
from trimtab.sending.learned import key_for
from trimtab.transports.guard import HEADER, Guard, guard_of
from trimtab.transports.over_http import step
from trimtab.transports.spots import Spot


def anthropic_middleware(*, guard: Guard | None = None, **keywords: Any) -> Any:
    """For ``Anthropic(middleware=[…])``, sync and async clients; keywords are those of ``Guard``.

    Raises MissingExtra where the SDK has no middleware.
    """
    try:
        from anthropic import Middleware
    except ImportError:
        raise MissingExtra("anthropic 2 or newer is needed: pip install 'anthropic>=2'") from None
    shared = guard_of(guard, keywords)

    class TrimtabMiddleware(Middleware):
        """Fits each request to ``/v1/messages``, and reacts to refusals."""

        guard = shared

        def handle(self, request: Any, call_next: Any) -> Any:
            run = _flow(shared, request)
            if run is None:
                return call_next(request)
            effect = next(run)
            while True:
                response = call_next(_carrying(request, effect.request))
                body = _read(response, request)
                try:
                    effect = run.send(_reply(response, body))
                except StopIteration as stop:
                    return _marked(response, stop.value)
                response.http_response.close()

        async def handle_async(self, request: Any, call_next: Any) -> Any:
            run = _flow(shared, request)
            if run is None:
                return await call_next(request)
            effect = await step(run.__next__)
            while True:
                response = await call_next(_carrying(request, effect.request))
                body = await response.http_response.aread() if _whole(response, request) else None
                try:
                    effect = await step(run.send, _reply(response, body))
                except BaseException:  # cancelled: nobody else would give the connection back
                    await response.http_response.aclose()
                    raise
                if isinstance(effect, Done):
                    return _marked(response, effect)
                await response.http_response.aclose()

    return TrimtabMiddleware()


def _flow(guard: Guard, request: Any) -> Flow | None:
    body = request.json
    path = str(request.url).partition("?")[0].rstrip("/")
    if request.method.lower() != "post" or not path.endswith("/messages"):
        return None
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        return None
    key = key_for("anthropic", str(body.get("model") or ""))
    return guard.flow(body, Spot("anthropic", key, None, bool(body.get("stream"))))


def _carrying(request: Any, body: Any) -> Any:
    return request if body is request.json else request.copy(body=body)


def _whole(response: Any, request: Any) -> bool:
    return response.status_code >= 400 or not request.stream


def _read(response: Any, request: Any) -> bytes | None:
    if not _whole(response, request):
        return None
    body: bytes = response.http_response.read()
    return body


def _reply(response: Any, body: bytes | None) -> Refused | Accepted:
    if body is None:
        return Accepted()
    if response.status_code >= 400:
        return Refused(response.status_code, body, response.http_response.headers)
    error = of_body(body)
    if error is not None:
        return Refused(response.status_code, error)
    return Accepted(prompt_tokens(body), final=False)


def _marked(response: Any, done: Done) -> Any:
    response.http_response.headers[HEADER] = done.summary
    return response
