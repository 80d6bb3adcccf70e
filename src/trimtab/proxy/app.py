"""The proxy as an ASGI app.

Requests to a model are fitted, all others pass untouched; ``/metrics`` and ``/_trimtab/`` are
answered here.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any, cast

from trimtab.errors import MissingExtra
from trimtab.formats.body import RequestBody
from trimtab.formats.detect import FormatName
from trimtab.formats.openai_chat.dialects import with_version
from trimtab.proxy import dashboard
from trimtab.proxy.cache_warmer import CacheWarmer
from trimtab.proxy.callers.access import HEADER, Access
from trimtab.proxy.callers.tenants import HOLDER, NOBODY, Tenants, conversation
from trimtab.proxy.config.settings import ProxySettings
from trimtab.proxy.config.upstreams import choose
from trimtab.proxy.dashboard import DashboardData
from trimtab.proxy.flow_driver import FlowDriver
from trimtab.proxy.http.answer_usage import TokenUsage
from trimtab.proxy.http.asgi import (
    Body,
    ClientGone,
    Declined,
    HttpResponse,
    Receive,
    Scope,
    Send,
    while_there,
)
from trimtab.proxy.http.aws_signing import NoCredentials
from trimtab.proxy.http.budgets import HeldBytes, RequestBudget, TooMuch
from trimtab.proxy.http.content_encoding import unpacked
from trimtab.proxy.http.headers import (
    Raw,
    downwards,
    fingerprint,
    plain,
    session_hint,
    upwards,
    what_is_wrong,
)
from trimtab.proxy.http.http_client import HttpClient, Timeouts, UpstreamFailed, length_of
from trimtab.proxy.http.routes import climbs, route
from trimtab.proxy.http.worker import in_worker
from trimtab.proxy.proxied_request import ClientRequest, ProxiedRequest
from trimtab.proxy.records.recent_requests import RequestTexts
from trimtab.proxy.records.request_recorder import HUNG_UP, ProxyRecords, RequestRecorder
from trimtab.proxy.records.savings import SavingsEstimator
from trimtab.proxy.records.usage_ledger import SECONDS
from trimtab.retry.own_header import is_off
from trimtab.rounds import ExchangeMemory, RecallRounds, rewritable
from trimtab.sessions.control import is_control
from trimtab.sessions.conversation import conversation_id
from trimtab.telemetry import fault

OURS = "/_trimtab"
HELD_BYTES = 1_000_000
"""Bytes.  A body up to this size is read whole before it is forwarded, so that it can be sent again
if a kept-alive connection turns out to be closed."""
_CLOSING = (b"connection", b"close")


class Proxy:
    """Serves one configuration; ``settings`` can be exchanged while it runs."""

    def __init__(
        self, settings: ProxySettings, *, records: ProxyRecords | None = None,
        access: Access | None = None,
    ) -> None:  # fmt: skip
        """``access`` is shared by workers, so that all accept the same token; None makes a new
        one."""
        self.settings = settings.checked()
        dashboard.check()
        self.records = records or ProxyRecords()
        self.records.activity.savings = SavingsEstimator.of(self.settings.fit.prices)
        self.access = access or Access(self.settings)
        self.tenants = Tenants(self.settings)
        self._connect_records()
        self._background: list[asyncio.Task[None]] = []
        self.warmer = CacheWarmer(self.records, self.settings)
        self.hidden = ExchangeMemory()
        self.held = HeldBytes(self.settings.most_held_bytes)
        self.draining = False
        self._client: HttpClient | None = None

    def reload(self, settings: ProxySettings) -> None:
        """Use other settings from the next request on; address and port stay.

        Raises InvalidSetting and keeps the current settings.
        """
        # Access rules depend on the address we really listen on, whatever the new settings say.
        fresh = replace(settings, listen=self.settings.listen).checked()
        if (fresh.fit, fresh.store) != (self.settings.fit, self.settings.store):
            self.tenants = Tenants(fresh)
        self.records.activity.savings = SavingsEstimator.of(fresh.fit.prices)
        self.tenants.settings = fresh
        self.access.settings = fresh
        self.warmer.settings = fresh
        self.held.most = fresh.most_held_bytes
        self.settings = fresh
        self._connect_records()

    def _connect_records(self) -> None:
        tenants, keeps_texts = self.tenants, self.settings.keeps_texts
        self.records.connect(
            tenants.usage_store(), tenants.history_store(), keeps_texts=keeps_texts
        )

    # --- ASGI --------------------------------------------------------------------------------

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI scope: an HTTP request, a WebSocket, or the server's start and stop."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            await self._http(scope, receive, HttpResponse(send))

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
        times = Timeouts(given.connect_seconds, given.read_seconds, given.reconnect_seconds or 0.0)
        self._client = HttpClient(times, system_proxy=given.system_proxy)
        await self._client.open()
        self.warmer.client = self._client
        if given.keep_warm != "off":
            await in_worker(partial(self.warmer.load, self.tenants.usage_store()))
        await in_worker(self.records.read_history)
        self._background = [
            asyncio.create_task(self._write_records()),
            asyncio.create_task(self.warmer.run()),
        ]

    async def _write_records(self) -> None:
        """Every few seconds, store what conversations were billed and what the dashboard shows."""
        while True:
            await asyncio.sleep(SECONDS)
            sessions = len(self.records.activity.sessions)
            self.records.metrics.holds(sessions, store_up=not self.tenants.store_problem)
            await in_worker(self.records.writing(self.warmer.unkept()))

    async def stop(self) -> None:
        """Close the pool of connections, and write what is not stored yet."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
        await asyncio.to_thread(self.records.writing(self.warmer.unkept()))
        await asyncio.to_thread(self.tenants.close)

    # --- one request ---------------------------------------------------------------------------

    async def _http(self, scope: Scope, receive: Receive, reply: HttpResponse) -> None:
        headers = plain(scope["headers"])
        path = scope["path"]
        if not self.access.host_allowed(headers):
            await reply.json(403, _error("this host name is not one of the proxy's: add it to "
                                         "hosts in its settings"))  # fmt: skip
        elif path == "/metrics" or path == OURS or path.startswith(f"{OURS}/"):
            pages = DashboardData(
                self.records, self.access, self.tenants, self.draining,
                recall=self.settings.offers_recall,
            )  # fmt: skip
            try:
                await dashboard.serve(pages, scope, receive, reply)
            except ClientGone:
                return
            except Declined as declined:
                await _failed(reply, declined.status, str(declined), declined.kind)
        elif path == "/" and scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            await reply.whole(303, [(b"location", f"{OURS}/".encode())])  # a browser
        elif headers.get("upgrade", "").lower() == "websocket":
            # 426 at once: clients that prefer WebSocket fall back to HTTP.
            # Closed, since httptools reads nothing more on a connection that was to change.
            await reply.json(426, _error("no WebSocket here: send it as HTTP"), [_CLOSING])
        else:
            await self._forward(scope, receive, reply, headers)

    async def _forward(
        self, scope: Scope, receive: Receive, reply: HttpResponse, headers: dict[str, str]
    ) -> None:
        raw_path = scope.get("raw_path", b"").decode("latin-1") or scope["path"]
        named, raw_path = self.access.in_path(raw_path)
        holder = self.access.may_send(headers)
        if named is not None:
            holder = self.access.lets_send(named)
        if not holder and (named is not None or self.settings.asks_for_token):
            if named is not None or self.access.gives_wrong_token(headers):
                await self.access.slow_down()
            await reply.json(401, _error(f"send the proxy's token as {HEADER}, or in the path, "
                                         "/token/TOKEN/…"))  # fmt: skip
            return
        if climbs(raw_path):
            await reply.json(400, _error("dot segments in the path: send the path itself"))
            return
        if self.access.has_token_within(raw_path):
            await reply.json(400, _error("the proxy's token stands within the path: begin the path "
                                         "with /token/TOKEN/"))  # fmt: skip
            return
        if problem := what_is_wrong(scope["headers"], headers):
            await reply.json(400, _error(problem), [_CLOSING])
            return
        chosen = choose(self.settings.upstreams, raw_path, headers)
        if chosen is None or not raw_path.startswith("/"):
            pages = f"; the dashboard is at {OURS}/" if raw_path == "/" else ""
            await reply.json(404, _error(f"no upstream is configured for this path{pages}"))
            return
        upstream, path = chosen
        if upstream.sign and not (holder and self.access.same_origin(headers)):
            if self.access.gives_wrong_token(headers):
                await self.access.slow_down()
            await reply.json(403, _error(f"requests to {upstream.name} are signed by the proxy: "
                                         f"send its token as {HEADER}, or in the path, "
                                         "/token/TOKEN/…"))  # fmt: skip
            return
        query = self.access.query_without_token(scope.get("query_string", b"").decode("latin-1"))
        raw = self.access.without_token(scope["headers"])
        headers = plain(raw)
        call = ClientRequest(
            scope["method"], path, query, raw, upstream,
            route(scope["method"], path, query),
        )  # fmt: skip
        given = self.settings
        budget = RequestBudget(self.held, given.plan_seconds, given.most_parts)
        body = Body(receive, given.most_bytes, given.read_seconds, given.body_seconds, budget)
        client = headers.get("user-agent", "")[:60]
        recorder = RequestRecorder(
            self.records, upstream.name, call.route.operation, path[:200], client
        )
        error = ""
        try:
            if given.pass_through or call.route.operation == "other" or is_off(headers):
                await self._passed(call, body, headers, reply)
            else:
                find = partial(self.tenants.tenant, headers, call.query, upstream)
                tenant = find() if given.one_tenant else await in_worker(find)
                if tenant == NOBODY and holder:
                    tenant = HOLDER
                await self._fitted(call, body, budget, headers, tenant, reply, recorder)
        except ClientGone:
            error = "" if recorder.usage.output else HUNG_UP
        except asyncio.CancelledError:
            error = "cut: the proxy was stopped"
            raise
        except Declined as declined:
            error = str(declined)
            await _failed(reply, declined.status, error, declined.kind)
        except UpstreamFailed as failed:
            # While a body is streamed upwards, the HTTP client reports only that it broke off.
            stalled = body.stalled
            error = HUNG_UP if body.gone else str(stalled or failed)
            await _failed(reply, (stalled or failed).status, error, stalled.kind if stalled else "")
        except (NoCredentials, MissingExtra) as failed:
            error = str(failed)
            await _failed(reply, 502, str(failed))
        except Exception as raised:
            fault("proxy", raised)
            error = "fault"
            await _failed(reply, 502, "a fault of trimtab's proxy; its log says where")
        finally:
            budget.close()
            recorder.closed(reply.status, error=error, first_byte=reply.begun_at)

    async def _passed(
        self,
        call: ClientRequest,
        body: Body,
        headers: dict[str, str],
        reply: HttpResponse,
    ) -> None:
        """Forward a request and its answer untouched, as they arrive."""
        content: Any = None
        length = length_of(headers)
        fields = upwards(call.raw_headers)
        if call.upstream.sign or self._short(length, headers):
            content = await body.whole()
            if content is None and call.upstream.sign:
                raise await self._too_long(body, call)
            if call.upstream.sign:
                fields = call.headers(content, repacked=False)
        if content is None:
            content = body.rest()
            if length is not None:
                fields.append((b"content-length", str(length).encode()))
        await while_there(body, self._relayed(call, fields, content or None, reply))

    def _short(self, length: int | None, headers: dict[str, str]) -> bool:
        if length is None:
            return "transfer-encoding" not in headers
        return length <= min(HELD_BYTES, self.settings.most_bytes)

    async def _relayed(
        self, call: ClientRequest, fields: Raw, content: Any, reply: HttpResponse
    ) -> None:
        assert self._client is not None
        async with self._client.send(call.method, call.address, fields, content) as answer:
            await reply.begin(answer.status, downwards(answer.headers))
            async for part in answer.parts():
                await reply.part(part)
            await reply.end()

    async def _too_long(self, body: Body, call: ClientRequest) -> Declined:
        """The error for a body too long to be signed (signing needs all of it).  The body is read
        to its end first: many clients read no answer before they have sent everything."""
        async for _ in body.rest():
            pass
        most = self.settings.most_bytes
        return Declined(
            413, "request_too_large",
            f"the body is longer than {most:,} bytes, the most that is held to be signed for "
            f"{call.upstream.name}: send less, or set most_bytes in the proxy's settings",
        )  # fmt: skip

    def _left_alone(self, source: RequestBody, format: str) -> bool:
        """Whether a conversation is in the control arm, which gets none of our tools either."""
        share = self.settings.fit.control
        return bool(share) and is_control(conversation_id(source, format), share)

    async def _fitted(
        self,
        call: ClientRequest,
        body: Body,
        budget: RequestBudget,
        headers: dict[str, str],
        tenant: str,
        reply: HttpResponse,
        recorder: RequestRecorder,
    ) -> None:
        """Read a request, fit it, send it and answer it."""
        assert self._client is not None
        given = await body.whole()
        if given is None:
            recorder.note = "too long to be read"
            await self._passed(call, body, headers, reply)
            return
        hint = session_hint(headers)
        served = self.tenants.served(call.upstream, tenant)
        session, learned, deferred = served

        def name() -> str:
            return conversation(tenant, call.route.format, hint, recorder.tree)

        recorder.open_session = lambda: self.records.activity.session(
            name(), tenant=tenant, upstream=call.upstream.name, format=call.route.format,
            client=headers.get("user-agent", "")[:60], hint=hint, now=self.records.clock(),
        )  # fmt: skip
        recall = None
        wanted = self.settings.offers_recall
        format, listed, framed = call.route.format, call.route.listed, call.route.framed
        if wanted and tenant != NOBODY and rewritable(format, listed=listed, framed=framed):
            facts = self.tenants.exchanges(call.upstream, tenant)
            recall = RecallRounds(
                format, session, self.hidden.of(call.upstream.name, tenant), facts,
                prune=self.settings.prune, notes=self.settings.notes, model=call.route.model,
            )  # fmt: skip

        def parse() -> RequestBody | bytes | None:
            """The body to fit; runs in a worker thread."""
            encoding = headers.get("content-encoding", "").lower()
            text = unpacked(given, encoding, self.settings.most_bytes)
            try:
                source = None if text is None else self.tenants.source(tenant, text, budget)
            except TooMuch:
                text = None
            if text is None:
                recorder.note = "too much to be read"
                return None
            if source is None:
                return text
            if not isinstance(source.tree, dict):
                recorder.note = "no object"
                return None
            if not budget.allows(source.tree):
                recorder.note = "too many messages"
                return None
            recorder.tree = source.tree
            if recall is not None and self._left_alone(source, call.route.format):
                return source
            return source if recall is None else recall.prepared(source, name()) or source

        def spent(usage: TokenUsage) -> None:
            recorder.usage = usage

        def driver() -> FlowDriver:
            return FlowDriver(
                session, recorder, learned, host=call.upstream.host,
                credential=fingerprint(headers, call.query),
                format=cast(FormatName, with_version(call.route.format, headers)),
                model=call.route.model,
                streams=call.route.streams,
                result_chars=self.settings.retry_result_chars, budget=budget,
            )  # fmt: skip

        if self.settings.keeps_texts:
            reply.kept = bytearray()
        exchange = ProxiedRequest(call, self._client, driver, reply, recall, spent)
        if deferred is not None and deferred.waits:
            exchange.on_accepted = lambda: self.tenants.accepted(served)
        try:
            await while_there(body, exchange.run(given, parse))
        finally:
            if reply.kept is not None:
                recorder.texts = RequestTexts(
                    given, exchange.sent_body or given, bytes(reply.kept),
                    headers.get("content-encoding", "").lower(),
                    cut=reply.sent_bytes > len(reply.kept),
                )  # fmt: skip
            # Many clients close the connection as soon as they have the whole answer.
            if not reply.ended:
                self.warmer.ended(recorder.session)
            elif tenant != NOBODY and reply.status < 400:
                self.warmer.answered(call, exchange.sent_body, recorder.session, exchange.usage)


def _error(message: str, kind: str = "") -> dict[str, Any]:
    """An error of ours, in a shape that all SDKs display; boto3 reads the fields at the top."""
    kind, message = kind or "trimtab_proxy", f"trimtab: {message}"
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error, "code": kind, "message": message}


async def _failed(reply: HttpResponse, status: int, message: str, kind: str = "") -> None:
    """Answer with an error if the answer has not begun; else break it off."""
    if not reply.begun:
        closing = [_CLOSING] if status == 408 else []  # its rest may still come
        await reply.json(status, _error(message, kind), closing)
