"""What an addon of the proxy is: two hooks see each request, and a few serve those who need more.

To add one: a file here with a subclass, and a line in ``addons/__init__.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from trimtab.proxy.callers.access import Access
from trimtab.proxy.callers.tenants import Tenants
from trimtab.proxy.config.settings import ProxySettings
from trimtab.proxy.exchange.exchange import Exchange
from trimtab.proxy.http.asgi import HttpResponse, Receive, Scope
from trimtab.proxy.http.budgets import HeldBytes
from trimtab.proxy.http.http_client import HttpClient
from trimtab.telemetry import fault


class Core(Protocol):
    """What an addon may use of the proxy.  Settings and tenants are other objects after a reload:
    read them when they are needed."""

    settings: ProxySettings
    access: Access
    tenants: Tenants
    client: HttpClient
    held: HeldBytes
    draining: bool


class Addon:
    """Overrides what it needs.  All hooks run on the event loop: what takes long, or reads a store,
    belongs into ``http.worker.in_worker``.  An error in ``request`` or ``response`` is logged and
    never reaches the client."""

    def request(self, exchange: Exchange) -> None:
        """A request has come; its body has not been read, and nothing of it was sent."""

    def response(self, exchange: Exchange) -> None:
        """It has ended: answered, refused, or broken off (``exchange.error``)."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Entered when the proxy starts, left when it stops: for background work."""
        yield

    def serves(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        """Whether this request is for a page of the addon's own, and for no provider."""
        return False

    async def serve(self, scope: Scope, receive: Receive, reply: HttpResponse) -> None:
        """Answer a request for such a page.  Raises ClientGone or Declined."""


@asynccontextmanager
async def repeated(seconds: float, work: Callable[[], Awaitable[object]]) -> AsyncIterator[None]:
    """Do the work every so many seconds, as long as the context lasts."""

    async def run() -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except Exception as error:  # a fault of ours: the next time may go well
                fault("addon", error)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
