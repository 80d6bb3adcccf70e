"""The proxy as an ASGI app: it carries requests to providers, and its addons do all the rest.

Requests to a model are fitted (``answering``), all others pass untouched (``untouched``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count

from trimtab.errors import MissingExtra
from trimtab.proxy.addons import Addons
from trimtab.proxy.callers.access import Access
from trimtab.proxy.callers.admission import admitted
from trimtab.proxy.callers.tenants import HOLDER, NOBODY, Tenants
from trimtab.proxy.config.settings import ProxySettings
from trimtab.proxy.exchange.answering import Answering
from trimtab.proxy.exchange.exchange import HUNG_UP, Exchange
from trimtab.proxy.exchange.provider_call import FAULT
from trimtab.proxy.exchange.untouched import passed_on
from trimtab.proxy.http.asgi import (
    ClientGone,
    Declined,
    HttpResponse,
    Receive,
    Scope,
    Send,
    while_there,
)
from trimtab.proxy.http.aws_signing import NoCredentials
from trimtab.proxy.http.budgets import HeldBytes
from trimtab.proxy.http.headers import plain
from trimtab.proxy.http.http_client import HttpClient, UpstreamFailed
from trimtab.proxy.http.worker import in_worker
from trimtab.telemetry import fault


class Proxy:
    """Serves one configuration; ``settings`` can be exchanged while it runs."""

    def __init__(self, settings: ProxySettings, *, access: Access | None = None) -> None:
        """``access`` is shared by workers, so that all accept the same token; None makes a new
        one."""
        self.settings = settings.checked()
        self.access = access or Access(self.settings)
        self.tenants = Tenants(self.settings)
        self.client = HttpClient(
            settings.read_seconds, settings.reconnect_seconds or 0.0,
            system_proxy=settings.system_proxy,
        )  # fmt: skip
        self.draining = False
        """Whether the server is stopping, while answers still run."""
        self.addons = Addons(self)
        self.held = HeldBytes(self.settings.max_held_bytes)
        self._numbers = count(1)
        self._running = AsyncExitStack()

    def reload(self, settings: ProxySettings) -> None:
        """Use other settings from the next request on; address and port stay.

        Raises InvalidSetting and keeps the current settings.
        """
        # Access rules depend on the address we really listen on, whatever the new settings say.
        fresh = replace(settings, listen=self.settings.listen).checked()
        if (fresh.fit, fresh.store) != (self.settings.fit, self.settings.store):
            self.tenants = Tenants(fresh)
        self.settings = self.tenants.settings = self.access.settings = fresh
        self.held.most = fresh.max_held_bytes

    # --- ASGI --------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope: an HTTP request, a WebSocket, or the server's start and stop."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            reply = HttpResponse(send)
            try:
                await self._http(scope, receive, reply)
            except Declined as declined:
                await reply.declined(declined)
            except ClientGone:
                return

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await self.start()
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def start(self) -> None:
        """Open the pool of connections, and start the addons."""
        self._running.push_async_callback(lambda: asyncio.to_thread(self.tenants.close))
        await self.client.open()
        self._running.push_async_callback(self.client.close)
        for addon in self.addons:
            await self._running.enter_async_context(addon.running())

    async def stop(self) -> None:
        """Stop the addons, which write what is not stored yet, and close everything."""
        await self._running.aclose()

    # --- one request ---------------------------------------------------------------------------

    async def _http(self, scope: Scope, receive: Receive, reply: HttpResponse) -> None:
        headers = plain(scope["headers"])
        if not self.access.host_allowed(headers):
            raise Declined(
                403, "this host name is not one of the proxy's: add it to hosts in its settings"
            )
        for addon in self.addons:
            if addon.serves(scope, headers):
                await addon.serve(scope, receive, reply)
                return
        if headers.get("upgrade", "").lower() == "websocket":
            # 426 at once: clients that prefer WebSocket fall back to HTTP.
            # Closed, since httptools reads nothing more on a connection that was to change.
            raise Declined(426, "no WebSocket here: send it as HTTP", closes=True)
        request = await admitted(scope, headers, self.access, self.settings)
        await self._carry(Exchange(
            next(self._numbers), request, receive, reply, self.settings, self.tenants, self.client,
            self.held,
        ))  # fmt: skip

    async def _carry(self, exchange: Exchange) -> None:
        """Serve one request, whatever goes wrong, and show it to the addons."""
        reply, body = exchange.reply, exchange.body
        try:
            if exchange.is_fitted:
                exchange.tenant = await _tenant_of(exchange)
            for addon in self.addons:
                _show(addon.request, exchange)
            await while_there(body, _answer(exchange))
        except ClientGone:
            has_answer = bool(exchange.calls) and exchange.calls[-1].usage.output > 0
            exchange.error = "" if has_answer else HUNG_UP
        except asyncio.CancelledError:
            exchange.error = "cut: the proxy was stopped"
            raise
        except Declined as declined:
            exchange.error = str(declined)
            await reply.declined(declined)
        except UpstreamFailed as failed:
            # While a body is streamed upwards, the HTTP client reports only that it broke off.
            cause = body.stalled or Declined(failed.status, str(failed))
            exchange.error = HUNG_UP if body.gone else str(cause)
            await reply.declined(cause)
        except (NoCredentials, MissingExtra) as failed:
            exchange.error = str(failed)
            await reply.declined(Declined(502, str(failed)))
        except Exception as raised:
            fault("proxy", raised)
            exchange.error = FAULT
            await reply.declined(Declined(502, "a fault of trimtab's proxy; its log says where"))
        finally:
            exchange.budget.close()
            for addon in self.addons:
                _show(addon.response, exchange)


async def _answer(exchange: Exchange) -> None:
    if exchange.is_fitted:
        exchange.received = await exchange.body.whole()
        if exchange.received is not None:
            await Answering(exchange).run(exchange.received)
            return
        exchange.unread = "too long to be read"
    await passed_on(exchange)


async def _tenant_of(exchange: Exchange) -> str:
    request, tenants = exchange.request, exchange.tenants

    def find() -> str:
        return tenants.tenant(request.headers, request.query, request.upstream)

    tenant = find() if exchange.settings.one_tenant else await in_worker(find)
    return HOLDER if tenant == NOBODY and exchange.request.has_token else tenant


def _show(hook: Callable[[Exchange], None], exchange: Exchange) -> None:
    try:
        hook(exchange)
    except Exception as error:  # a fault of ours: the request goes on
        fault("addon", error)
