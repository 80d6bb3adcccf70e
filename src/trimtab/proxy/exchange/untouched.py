"""Passes a request on untouched, and its answer, as they arrive."""

from __future__ import annotations

from typing import Any

from trimtab.proxy.exchange.exchange import Exchange
from trimtab.proxy.http.asgi import Body, Declined
from trimtab.proxy.http.client_request import ClientRequest
from trimtab.proxy.http.headers import downwards, upwards
from trimtab.proxy.http.http_client import length_of

HELD_BYTES = 1_000_000
"""Bytes.  A body up to this size is read whole before it is forwarded, so that it can be sent again
if a kept-alive connection turns out to be closed."""


async def passed_on(exchange: Exchange) -> None:
    """Send the request and answer it.  Raises UpstreamFailed, ClientGone or Declined."""
    request, body, reply = exchange.request, exchange.body, exchange.reply
    max_bytes = exchange.settings.max_bytes
    content: Any = None
    length = length_of(request.headers)
    fields = upwards(request.raw_headers)
    if request.upstream.sign or _short(request, min(HELD_BYTES, max_bytes)):
        content = await body.whole()
        if content is None and request.upstream.sign:
            raise await _too_long(body, request, max_bytes)
        if request.upstream.sign:
            fields = request.headers_upwards(content, repacked=False)
    if content is None:
        content = body.rest()
        if length is not None:
            fields.append((b"content-length", str(length).encode()))
    sending = exchange.client.send(request.method, request.address, fields, content or None)
    async with sending as answer:
        await reply.begin(answer.status, downwards(answer.headers))
        async for part in answer.parts():
            await reply.part(part)
        await reply.end()


def _short(request: ClientRequest, max_bytes: int) -> bool:
    length = length_of(request.headers)
    if length is None:
        return "transfer-encoding" not in request.headers
    return length <= max_bytes


async def _too_long(body: Body, request: ClientRequest, max_bytes: int) -> Declined:
    """The error for a body too long to be signed (signing needs all of it).  The body is read to
    its end first: many clients read no answer before they have sent everything."""
    async for _ in body.rest():
        pass
    return Declined(
        413,
        f"the body is longer than {max_bytes:,} bytes, the most that is held to be signed for "
        f"{request.upstream.name}: send less, or set max_bytes in the proxy's settings",
        "request_too_large",
    )  # fmt: skip
