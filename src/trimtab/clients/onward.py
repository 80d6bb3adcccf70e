"""Transports that send requests through the user's own client, by its public methods.

So its connections, proxies, certificates and hooks are used, and it is not changed.
Imports neither httpx nor an SDK: modules are arguments.
"""

from __future__ import annotations

import inspect
from functools import cache, partial
from typing import Any

from trimtab.clients.effects import (
    ASYNC,
    SYNC,
    Chunk,
    ClientKind,
    Effects,
    Stream,
    run,
    run_async,
    stream_classes,
)
from trimtab.clients.logged_once import logged_once

_OF_CONNECTION = ("host", "content-length", "transfer-encoding", "connection")
_OF_ENCODING = ("content-encoding", "content-length", "transfer-encoding")
_RAW = "x-stainless-raw-response"
"""A header that makes an SDK return the raw answer to its caller; not sent on to the inner
client."""
_STREAMING = ("get", "post")
"""Methods of an SDK's client that can return an unread answer (a stream)."""


@cache
def http_classes(module: Any) -> tuple[Any, Any]:
    """(transport class, async one) that send through a client of ``module``, httpx or httpx2."""

    def sent(client: Any, request: Any, kind: ClientKind) -> Effects[Any]:
        send = partial(client.send, request, stream=True, auth=None, follow_redirects=False)
        with logged_once(module, request):
            answer = yield send
        return _passed_on(module, answer, kind)

    class ClientTransport(module.BaseTransport):  # type: ignore[misc]
        """Sends through ``client.send``."""

        def __init__(self, client: Any, owner: Any) -> None:
            self._through, self._owner = client, owner

        def handle_request(self, request: Any) -> Any:
            return run(sent(self._through, request, SYNC))

        def close(self) -> None:
            self._through.close()

    class AsyncClientTransport(module.AsyncBaseTransport):  # type: ignore[misc]
        """The same for an async client."""

        def __init__(self, client: Any, owner: Any) -> None:
            self._through, self._owner = client, owner

        async def handle_async_request(self, request: Any) -> Any:
            return await run_async(sent(self._through, request, ASYNC))

        async def aclose(self) -> None:
            await self._through.aclose()

    return ClientTransport, AsyncClientTransport


@cache
def sdk_classes(module: Any, sdk: Any) -> tuple[Any, Any]:
    """(transport class, async one) that send through a client of ``sdk``, openai or anthropic.

    The client's methods ``post``, ``get`` … send the request once, with the client's settings.
    """

    def sent(client: Any, request: Any, kind: ClientKind) -> Effects[Any]:
        yield partial(kind.read, request)
        verb = getattr(client, request.method.lower())
        stream = sdk.Stream[object] if kind is SYNC else sdk.AsyncStream[object]
        keywords = _send_keywords(module, verb, request, stream)
        try:
            with logged_once(module, request):
                answer = yield partial(verb, str(request.url), **keywords)
        except sdk.APIStatusError as error:
            return _whole(module, error.response)
        except sdk.APIConnectionError as error:
            raise error.__cause__ or error from None
        if "stream" not in keywords:
            return _whole(module, answer)
        return _passed_on(module, answer.response, kind)

    class SdkTransport(module.BaseTransport):  # type: ignore[misc]
        """Sends through ``client.post``, ``client.get`` …"""

        def __init__(self, client: Any) -> None:
            self._through = client

        def handle_request(self, request: Any) -> Any:
            return run(sent(self._through, request, SYNC))

        def close(self) -> None:
            self._through.close()

    class AsyncSdkTransport(module.AsyncBaseTransport):  # type: ignore[misc]
        """The same for an async client."""

        def __init__(self, client: Any) -> None:
            self._through = client

        async def handle_async_request(self, request: Any) -> Any:
            return await run_async(sent(self._through, request, ASYNC))

        async def aclose(self) -> None:
            await self._through.close()

    return SdkTransport, AsyncSdkTransport


def _raw(answer: Any, kind: ClientKind) -> Stream:
    """The bytes of another client's answer as they come."""
    more = kind.reader(answer.iter_raw() if kind is SYNC else answer.aiter_raw())
    while (piece := (yield more)) is not None:
        yield Chunk(piece)


def _passed_on(module: Any, answer: Any, kind: ClientKind) -> Any:
    """An answer of another client as a response of ``module``; whole if a hook of that client has
    read it."""
    if answer.is_stream_consumed:
        return _whole(module, answer)
    stream_class = stream_classes(module)[0 if kind is SYNC else 1]
    stream = stream_class(_raw(answer, kind), partial(kind.close, answer))
    return module.Response(
        answer.status_code, headers=answer.headers.raw, stream=stream,
        extensions=_extensions(answer),
    )  # fmt: skip


def _whole(module: Any, answer: Any) -> Any:
    """An answer that the other client has read and decoded, as a response of ``module``."""
    headers = [
        (name, value) for name, value in answer.headers.raw
        if name.decode("latin-1").lower() not in _OF_ENCODING
    ]  # fmt: skip
    return module.Response(
        answer.status_code, headers=headers, content=answer.content, extensions=_extensions(answer)
    )


def _extensions(answer: Any) -> dict[str, Any]:
    """The answer's extensions about the protocol; those about the connection are left out, as it
    belongs to the other client."""
    about_protocol = ("http_version", "reason_phrase")
    return {name: value for name, value in answer.extensions.items() if name in about_protocol}


def _send_keywords(module: Any, verb: Any, request: Any, stream: Any) -> dict[str, Any]:
    """The arguments with which an SDK's method sends ``request`` unchanged, once."""
    headers = {
        name: value for name, value in request.headers.items()
        if name.lower() not in (*_OF_CONNECTION, _RAW)
    }  # fmt: skip
    options: dict[str, Any] = {"headers": headers, "max_retries": 0}
    if times := request.extensions.get("timeout"):
        options["timeout"] = module.Timeout(**times)
    keywords: dict[str, Any] = {"cast_to": object, "options": options}
    if request.content:
        key = "content" if "content" in inspect.signature(verb).parameters else "body"
        keywords[key] = request.content
    if request.method.lower() in _STREAMING:
        keywords |= {"stream": True, "stream_cls": stream}
    else:
        keywords["cast_to"] = module.Response
    return keywords
