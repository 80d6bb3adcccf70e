"""The HTTP client for providers (aiohttp), opened and closed with the server."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cache
from itertools import chain, repeat
from typing import Any
from urllib.request import getproxies, proxy_bypass

from trimtab.errors import MissingExtra
from trimtab.proxy.http.headers import Raw

CONNECT_SECONDS = 20.0
"""The longest wait for a connection."""
STALE_SECONDS = 5.0
"""A kept-alive connection that breaks this soon, before any byte arrived, was closed while idle."""
LOOK_SECONDS = 2.0
"""Seconds between two looks whether a silent answer's connection is still open."""
_STATUSES = range(200, 600)
"""What a server can pass on.  100 to 199 are no answers, and what is above is nobody's."""
_PAUSES = (0.25, 0.5, 1.0, 2.0, 5.0)
"""Seconds between attempts to connect; the last one is repeated."""


class UpstreamFailed(Exception):
    """There was no answer, or it broke off.  ``status`` is what the client gets."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class HttpAnswer:
    """An answer whose body has not been read yet."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self.status: int = response.status
        self.headers: Raw = list(response.raw_headers)
        self.encoding: str = response.headers.get("content-encoding", "").lower()
        self.type: str = response.headers.get("content-type", "").lower()

    async def parts(self) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives.  Raises UpstreamFailed if it breaks off."""
        while True:
            try:
                async with asyncio.timeout(LOOK_SECONDS) as look:
                    data = await self._response.content.readany()
            except TimeoutError:
                if not look.expired():
                    raise UpstreamFailed(504, "the provider stopped sending") from None
                if self._is_lost():
                    raise UpstreamFailed(502, "the provider broke off") from None
                continue
            except _errors() as error:
                raise UpstreamFailed(502, f"the provider broke off ({_said(error)})") from None
            if not data:
                return
            yield data

    def _is_lost(self) -> bool:
        """Whether the connection is closed before the answer's end.

        aiohttp says nothing to who reads when it closes one for a chunk that is none.
        """
        connection = self._response.connection
        return connection is not None and connection.transport is None

    async def whole(self, max_bytes: int) -> bytes:
        """The whole body, or its first ``max_bytes``.  Raises UpstreamFailed."""
        data = bytearray()
        async for part in self.parts():
            data += part
            if len(data) > max_bytes:
                break
        return bytes(data)


def _errors() -> tuple[type[BaseException], ...]:
    import aiohttp

    return (aiohttp.ClientError, ConnectionError, OSError)


def _said(error: BaseException) -> str:
    """The error's type, never its text, which may contain an address with a key."""
    return type(error).__name__


def _cause(error: OSError) -> str:
    """The system's reason, such as "Connection refused"; for an unknown host, its message.

    A rejected certificate has no reason but its type.
    """
    if (error.errno or 0) > 0:
        return os.strerror(error.errno or 0)
    return error.strerror or _said(error)


class HttpClient:
    """Sends requests to providers over kept connections.

    ``read_seconds``: between two pieces of an answer (models think for minutes);
    ``reconnect_seconds``: for how long a provider that cannot be reached is tried again.
    """

    def __init__(
        self, read_seconds: float, reconnect_seconds: float = 0.0, *, system_proxy: bool = False
    ) -> None:
        self._read_seconds, self._reconnect_seconds = read_seconds, reconnect_seconds
        self._system_proxy = system_proxy
        self._kept: Any = None
        self._new: Any = None
        """The pool for bodies that cannot be sent again, and for second tries: each gets a new
        connection."""

    async def open(self) -> None:
        """Open the pools.  Raises MissingExtra without aiohttp."""
        try:
            import aiohttp
        except ImportError:
            raise MissingExtra(
                "the proxy needs an HTTP client: pip install 'trimtab[proxy]'"
            ) from None
        kept = aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=60)
        self._kept = self._session(kept)
        self._new = self._session(aiohttp.TCPConnector(limit=0, force_close=True, ttl_dns_cache=60))

    def _session(self, connector: Any) -> Any:
        import aiohttp

        return aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=CONNECT_SECONDS, sock_read=self._read_seconds
            ),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            trace_configs=[_tracing()],
            request_class=_checked_request(),
            max_line_size=65_536,
            max_field_size=65_536,
        )

    async def close(self) -> None:
        """Close all connections."""
        for session in (self._kept, self._new):
            if session is not None:
                await session.close()

    @asynccontextmanager
    async def send(
        self, method: str, address: str, headers: Raw, body: Any = None, *, waits: bool = False
    ) -> AsyncIterator[HttpAnswer]:
        """Send one request.  ``body``: bytes, an async iterator, or None; ``waits``: whether the
        client waits for a provider that cannot be reached.  Raises UpstreamFailed.

        A request that met a kept-alive connection just as the provider closed it is sent again, on
        a new connection: without us it would have worked, and the provider may have closed all
        that were kept.  On a new connection it is sent once.
        """
        until = time.monotonic() + (self._reconnect_seconds if waits else 0.0)
        response = await self._sent(method, address, headers, body, until)
        try:
            if response.status not in _STATUSES:
                raise UpstreamFailed(502, f"the provider's status {response.status} is no answer")
            yield HttpAnswer(response)
        finally:
            response.close()  # gives it back to the pool if it was read to its end

    async def _sent(self, method: str, address: str, headers: Raw, body: Any, until: float) -> Any:
        """The response; while there is no connection, tried again ``until`` then (monotonic)."""
        from aiohttp import ClientConnectorError, ClientSSLError, ConnectionTimeoutError
        from multidict import CIMultiDict
        from yarl import URL

        fields: CIMultiDict[str] = CIMultiDict(
            (name.decode("latin-1"), _text(value)) for name, value in headers
        )
        url = URL(address, encoded=True)
        again = isinstance(body, bytes) or body is None
        session = self._kept if again else self._new
        pauses = chain(_PAUSES, repeat(_PAUSES[-1]))
        while True:
            began, kept = time.monotonic(), list[bool]()
            try:
                return await session.request(
                    method, url, headers=fields, data=body, allow_redirects=False,
                    trace_request_ctx=kept, proxy=_proxy(url) if self._system_proxy else None,
                )  # fmt: skip
            except TimeoutError as error:
                if isinstance(error, ConnectionTimeoutError) and time.monotonic() < until:
                    continue
                raise UpstreamFailed(504, "the provider did not answer in time") from None
            except ClientConnectorError as error:
                left_seconds = until - time.monotonic()
                if left_seconds > 0 and not isinstance(error, ClientSSLError):
                    await asyncio.sleep(min(next(pauses), left_seconds))
                    continue
                there = f"{url.scheme}://{url.host}:{url.port}"
                cause = _cause(error.os_error)
                raise UpstreamFailed(502, f"cannot reach {there} ({cause})") from None
            except _errors() as error:
                stale = any(kept) and time.monotonic() - began < STALE_SECONDS
                if not (stale and _broke(error)):
                    what = "hung up" if _broke(error) else "failed"
                    raise UpstreamFailed(502, f"the provider {what} ({_said(error)})") from None
                session = self._new


@cache
def _checked_request() -> Any:
    """aiohttp's request, which closes a kept connection on which something came that nobody asked
    for.  aiohttp would take it for the answer to the next request, whoever sends that."""
    import aiohttp

    class CheckedRequest(aiohttp.ClientRequest):
        """Looks at its connection before it is written to it."""

        async def send(self, conn: Any) -> Any:
            """Send it."""
            if conn.protocol.should_close:
                raise aiohttp.ServerDisconnectedError("an answer that nobody asked for")
            return await super().send(conn)

    return CheckedRequest


def _text(value: bytes) -> str:
    """A header's value for aiohttp, which sends UTF-8 and drops what it cannot encode."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _proxy(url: Any) -> str | None:
    """The proxy that the environment sets for an address, or None.

    aiohttp's own ``trust_env`` would also send credentials of ``~/.netrc``, or fail on them if the
    client has a key.
    """
    if not url.host or proxy_bypass(url.host):
        return None
    address = getproxies().get(url.scheme, "")
    return address if address.startswith("http://") else None


def _tracing() -> Any:
    """A trace that notes, in a list passed with the request, that a kept-alive connection is
    used."""
    import aiohttp

    async def kept(session: Any, context: Any, _: Any) -> None:
        context.trace_request_ctx.append(True)

    tracing = aiohttp.TraceConfig()
    tracing.on_connection_reuseconn.append(kept)
    return tracing


def _broke(error: BaseException) -> bool:
    """Whether the connection broke, rather than the protocol on it."""
    import aiohttp

    return isinstance(error, (aiohttp.ServerDisconnectedError, OSError))


def length_of(headers: Mapping[str, str]) -> int | None:
    """The content length that a request declares, or None."""
    text = headers.get("content-length", "")
    return int(text) if text.isdigit() else None
