"""The proxy as an ASGI app: which requests are made to fit, which pass untouched, which are ours.

Knows what the parts are for and in which order they are asked.  Does not know what a request
holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any

from trimtab.errors import MissingExtra
from trimtab.proxy import logs
from trimtab.proxy.access import HEADER, Access
from trimtab.proxy.account import HUNG_UP, Account, Books
from trimtab.proxy.asgi import (
    Body,
    ClientGone,
    Declined,
    Receive,
    Reply,
    Scope,
    Send,
    while_there,
)
from trimtab.proxy.aws import NoCredentials
from trimtab.proxy.bill import Bill
from trimtab.proxy.bodies import unpacked
from trimtab.proxy.exchange import Call, Exchange
from trimtab.proxy.headers import Raw, downwards, fingerprint, plain, session_hint, upwards
from trimtab.proxy.plan import Fitting, aside
from trimtab.proxy.recall import Memory, Recaller
from trimtab.proxy.routes import route
from trimtab.proxy.settings import ProxySettings
from trimtab.proxy.tenants import Tenants, conversation
from trimtab.proxy.upstreams import choose
from trimtab.proxy.wire import Client, Timeouts, UpstreamFailed, length_of

OURS = "/_trimtab"
HELD_BYTES = 1_000_000
"""A body up to this is read before it is passed on, so that it can be sent once more where a kept
connection turns out to be closed."""
_CLOSING = (b"connection", b"close")
Pages = Callable[["Proxy", Scope, Receive, Reply], Awaitable[None]]


class Proxy:
    """Serves one configuration; ``settings`` can be exchanged while it runs."""

    def __init__(self, settings: ProxySettings, *, books: Books | None = None) -> None:
        self.settings = settings.checked()
        self.books = books or Books()
        self.books.ledger.bill = Bill.of(self.settings.fit.get("prices"))
        self.access = Access(self.settings)
        self.tenants = Tenants(self.settings)
        self.hidden = Memory()
        self.draining = False
        self._client: Client | None = None

    def reload(self, settings: ProxySettings) -> None:
        """Take other settings from the next request on; address and port stay.

        Raises InvalidSetting and keeps what it has.
        """
        # Who may see what hangs on where we do listen, whatever the settings now say.
        fresh = replace(settings, host=self.settings.host, port=self.settings.port).checked()
        if (fresh.fit, fresh.store) != (self.settings.fit, self.settings.store):
            self.tenants = Tenants(fresh)
        self.books.ledger.bill = Bill.of(fresh.fit.get("prices"))
        self.tenants.settings = fresh
        self.access.settings = fresh
        self.settings = fresh

    # --- ASGI --------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection's request, or the beginning and end of the server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            await self._http(scope, receive, Reply(send))

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
        """Open the pool of connections."""
        given = self.settings
        times = Timeouts(given.connect_seconds, given.read_seconds)
        self._client = Client(times, system_proxy=given.system_proxy)
        await self._client.open()

    async def stop(self) -> None:
        """Close it, and keep what the stores have not got yet."""
        if self._client is not None:
            await self._client.close()
        await asyncio.to_thread(self.tenants.close)

    # --- one request ---------------------------------------------------------------------------

    async def _http(self, scope: Scope, receive: Receive, reply: Reply) -> None:
        headers = plain(scope["headers"])
        path = scope["path"]
        if not self.access.host_allowed(headers):
            await reply.json(403, _error("this host name is not one of the proxy's: add it to "
                                         "hosts in its settings"))  # fmt: skip
        elif path == "/metrics" or path == OURS or path.startswith(f"{OURS}/"):
            from trimtab.proxy.dashboard import serve

            try:
                await serve(self, scope, receive, reply)
            except ClientGone:
                return
            except Declined as declined:
                await _failed(reply, declined.status, str(declined), declined.kind)
        elif headers.get("upgrade", "").lower() == "websocket":
            # 426 at once: clients that prefer WebSocket fall back to HTTP.
            # Closed, since httptools reads nothing more on a connection that was to change.
            await reply.json(426, _error("no WebSocket here: send it as HTTP"), [_CLOSING])
        else:
            await self._forward(scope, receive, reply, headers)

    async def _forward(
        self, scope: Scope, receive: Receive, reply: Reply, headers: dict[str, str]
    ) -> None:
        raw_path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        found = choose(self.settings.upstreams, raw_path, headers)
        if found is None or not raw_path.startswith("/"):
            pages = f"; the dashboard is at {OURS}/" if raw_path == "/" else ""
            await reply.json(404, _error(f"no upstream is configured for this path{pages}"))
            return
        upstream, path = found
        if upstream.sign and not self._may_sign(headers):
            await reply.json(403, _error(f"requests to {upstream.name} are signed by the proxy: "
                                         f"send its token as {HEADER}"))  # fmt: skip
            return
        query = scope.get("query_string", b"").decode("latin-1")
        call = Call(
            scope["method"], path, query, list(scope["headers"]), upstream,
            route(scope["method"], path, query),
        )  # fmt: skip
        body = Body(receive, self.settings.most_bytes, self.settings.read_seconds)
        account = Account(self.books, upstream.name, call.route.operation)
        error = ""
        try:
            work = self._passed if call.route.operation == "other" else self._fitted
            await work(call, body, headers, reply, account)
        except ClientGone:
            error = "" if account.usage.output else HUNG_UP
        except asyncio.CancelledError:
            error = "cut: the proxy was stopped"
            raise
        except Declined as declined:
            error = str(declined)
            await _failed(reply, declined.status, error, declined.kind)
        except UpstreamFailed as failed:
            # Sending up what comes, the HTTP client says only that it broke off.
            stalled = body.stalled
            error = HUNG_UP if body.gone else str(stalled or failed)
            await _failed(reply, (stalled or failed).status, error, stalled.kind if stalled else "")
        except (NoCredentials, MissingExtra) as failed:
            error = str(failed)
            await _failed(reply, 502, str(failed))
        except Exception as fault:
            logs.fault("proxy", fault)
            error = "fault"
            await _failed(reply, 502, "a fault of trimtab's proxy; its log says where")
        finally:
            account.closed(reply.status, error=error, first_byte=reply.begun_at)

    def _may_sign(self, headers: dict[str, str]) -> bool:
        return not self.access.from_elsewhere(headers) and self.access.known(headers)

    async def _passed(
        self, call: Call, body: Body, headers: dict[str, str], reply: Reply, account: Account
    ) -> None:
        """Untouched, in both directions, as it comes."""
        content: Any = None
        length = length_of(headers)
        fields = upwards(call.raw_headers)
        if call.upstream.sign or self._short(length, headers):
            content = await body.whole()
            if content is None:
                raise await self._too_long(body, call)
            if call.upstream.sign:
                fields = call.headers(content, repacked=False)
        else:
            content = body.rest()
            if length is not None:
                fields.append((b"content-length", str(length).encode()))
        await while_there(body, self._relayed(call, fields, content or None, reply))

    def _short(self, length: int | None, headers: dict[str, str]) -> bool:
        if length is None:
            return "transfer-encoding" not in headers
        return length <= min(HELD_BYTES, self.settings.most_bytes)

    async def _relayed(self, call: Call, fields: Raw, content: Any, reply: Reply) -> None:
        assert self._client is not None
        async with self._client.send(call.method, call.address, fields, content) as answer:
            await reply.begin(answer.status, downwards(answer.headers))
            async for part in answer.parts():
                await reply.part(part)
            await reply.end()

    async def _too_long(self, body: Body, call: Call) -> Declined:
        """Why a body is not signed: that takes all of it.  It is read to its end, since many
        clients read no answer before they have sent everything."""
        async for _ in body.rest():
            pass
        most = self.settings.most_bytes
        return Declined(
            413, "request_too_large",
            f"the body is longer than {most:,} bytes, the most that is held to be signed for "
            f"{call.upstream.name}: send less, or set most_bytes in the proxy's settings",
        )  # fmt: skip

    async def _fitted(
        self, call: Call, body: Body, headers: dict[str, str], reply: Reply, account: Account
    ) -> None:
        """Read, made to fit, and sent."""
        assert self._client is not None
        given = await body.whole()
        if given is None:
            account.note = "too long to be read"
            await self._passed(call, body, headers, reply, account)
            return
        encoding = headers.get("content-encoding", "").lower()
        text = unpacked(given, encoding, self.settings.most_bytes)
        tenant = self.tenants.tenant(headers, call.query)
        hint = session_hint(headers)
        parse = partial(self.tenants.source, tenant)

        def name() -> str:
            return conversation(tenant, call.route.format, hint, account.tree)

        account.of = lambda: self.books.ledger.session(
            name(), tenant=tenant, upstream=call.upstream.name, format=call.route.format,
            client=headers.get("user-agent", "")[:60], hint=hint, now=self.books.clock(),
        )  # fmt: skip
        session, learned = self.tenants.served(call.upstream, tenant)
        quick = partial(self.tenants.quick, session, tenant, format=call.route.format)
        recaller = None
        if (
            (self.settings.recall or self.settings.prune)
            and text is not None
            and not call.route.listed
        ):
            source = await aside(text, partial(parse, text))
            account.tree = source.tree if source else None
            facts = self.tenants.exchanges(call.upstream, tenant)
            recaller = Recaller(
                call.route.format, name(), session, self.hidden, facts,
                prune=self.settings.prune, model=call.route.model,
            )  # fmt: skip

        def plan() -> Fitting:
            account.usage = exchange.usage
            return Fitting(
                session, account, learned, host=call.upstream.host,
                credential=fingerprint(headers, call.query), format=call.route.format,
                model=call.route.model, recall=recaller is not None and recaller.ready,
                parse=parse if recaller is None else None,
                quick=quick if recaller is None else None, far=self.tenants.far,
            )  # fmt: skip

        exchange = Exchange(
            call, self._client, plan, reply, recaller, far=self.tenants.far
        )  # fmt: skip
        try:
            await while_there(body, exchange.run(given, text))
        finally:
            account.usage = exchange.usage


def _error(message: str, kind: str = "") -> dict[str, Any]:
    """An error of ours: in a shape that all SDKs show; boto3 reads what stands at the top."""
    kind, message = kind or "trimtab_proxy", f"trimtab: {message}"
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error, "code": kind, "message": message}


async def _failed(reply: Reply, status: int, message: str, kind: str = "") -> None:
    """Say so where nothing was said yet; else leave the answer without its end."""
    if not reply.begun:
        closing = [_CLOSING] if status == 408 else []  # its rest may still come
        await reply.json(status, _error(message, kind), closing)
