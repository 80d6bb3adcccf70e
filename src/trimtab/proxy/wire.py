"""The connection to providers: one HTTP client, opened and closed with the server.

Knows aiohttp.  Does not know formats, retries for size, or what is in a body.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from trimtab.errors import MissingExtra
from trimtab.proxy.headers import Raw

STALE_SECONDS = 5.0
"""A kept connection that breaks within this time, before a byte came, was closed while idle."""


class UpstreamFailed(Exception):
    """No answer came, or it broke off.  ``status`` is what the client is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Timeouts:
    """Seconds: to connect, and between two pieces of an answer (models think for minutes)."""

    connect: float = 20.0
    read: float = 600.0


class Answer:
    """An answer whose body has not been read yet."""

    def __init__(self, response: Any) -> None:
        self._response = response
        self.status: int = response.status
        self.headers: Raw = list(response.raw_headers)
        self.encoding: str = response.headers.get("content-encoding", "").lower()
        self.type: str = response.headers.get("content-type", "").lower()

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes.  Raises UpstreamFailed where it breaks off."""
        try:
            async for data in self._response.content.iter_any():
                yield data
        except TimeoutError:
            raise UpstreamFailed(504, "the provider stopped sending") from None
        except _errors() as error:
            raise UpstreamFailed(502, f"the provider broke off ({_said(error)})") from None

    async def whole(self, most_bytes: int) -> bytes:
        """The whole body, or its beginning where it is longer.  Raises UpstreamFailed."""
        found = bytearray()
        async for part in self.parts():
            found += part
            if len(found) > most_bytes:
                break
        return bytes(found)


def _errors() -> tuple[type[BaseException], ...]:
    import aiohttp

    return (aiohttp.ClientError, ConnectionError, OSError)


def _said(error: BaseException) -> str:
    """The kind of error and never its text, which may hold an address with a key."""
    return type(error).__name__


class Client:
    """Sends requests to providers over kept connections."""

    def __init__(self, timeouts: Timeouts | None = None, *, system_proxy: bool = False) -> None:
        self._timeouts = timeouts or Timeouts()
        self._system_proxy = system_proxy
        self._session: Any = None

    async def open(self) -> None:
        """Make the pool.  Raises MissingExtra without aiohttp."""
        try:
            import aiohttp
        except ImportError:
            raise MissingExtra(
                "the proxy needs an HTTP client: pip install 'trimtab[proxy]'"
            ) from None
        times = self._timeouts
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, ttl_dns_cache=60),
            timeout=aiohttp.ClientTimeout(
                total=None, sock_connect=times.connect, sock_read=times.read
            ),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            trust_env=self._system_proxy,
            max_line_size=65_536,
            max_field_size=65_536,
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def send(
        self, method: str, address: str, headers: Raw, body: Any = None
    ) -> AsyncIterator[Answer]:
        """Send one request.  ``body``: bytes, an async iterator, or None.  Raises UpstreamFailed.

        A kept connection that the provider closed in the same moment is tried once more: else a
        request that would have worked without us would fail.
        """
        response = await self._sent(method, address, headers, body)
        try:
            yield Answer(response)
        finally:
            response.close()  # gives it back to the pool if it was read to its end

    async def _sent(self, method: str, address: str, headers: Raw, body: Any) -> Any:
        from aiohttp import ClientConnectorError, ServerDisconnectedError
        from multidict import CIMultiDict
        from yarl import URL

        # latin-1 is what the client sent: aiohttp encodes as UTF-8, so go through its own way back
        fields: CIMultiDict[str] = CIMultiDict(
            (name.decode("latin-1"), value.decode("utf-8", "surrogateescape"))
            for name, value in headers
        )
        url = URL(address, encoded=True)
        again = isinstance(body, bytes) or body is None
        while True:
            began = time.monotonic()
            try:
                return await self._session.request(
                    method, url, headers=fields, data=body, allow_redirects=False
                )
            except TimeoutError:
                raise UpstreamFailed(504, "the provider did not answer in time") from None
            except ClientConnectorError as error:
                raise UpstreamFailed(502, f"cannot reach {url.host} ({_said(error)})") from None
            except (ServerDisconnectedError, ConnectionResetError) as error:
                if again and time.monotonic() - began < STALE_SECONDS:
                    again = False
                    continue
                raise UpstreamFailed(502, f"the provider hung up ({_said(error)})") from None
            except _errors() as error:
                raise UpstreamFailed(502, f"the provider failed ({_said(error)})") from None


def length_of(headers: Mapping[str, str]) -> int | None:
    """What a request says about its length; None where it does not."""
    text = headers.get("content-length", "")
    return int(text) if text.isdigit() else None
