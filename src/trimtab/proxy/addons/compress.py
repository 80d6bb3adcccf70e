"""``POST /v1/compress`` and ``GET /v1/retrieve/HASH``: a gateway hands over rows of a request and
takes them back shorter.

The contract is the one of LiteLLM's ``guardrail: headroom``, of Portkey and of Kong.  As many rows
come back as came, each in its place.  What the gateway withholds is not known here, so no request
can be promised to fit; and no gateway is kept from sending by a fault of ours.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from trimtab.errors import InvalidSetting, StoreError, TrimtabError, UnknownHandle
from trimtab.interruption import Interrupted, stopped_by
from trimtab.journal.excerpts import MAX_CHARS, answer
from trimtab.journal.hashes import handle_at
from trimtab.proxy.addons.base import Addon, Core
from trimtab.proxy.addons.metrics import Metrics
from trimtab.proxy.addons.records import Records
from trimtab.proxy.callers.admission import let_in, raw_path_of
from trimtab.proxy.callers.tenants import HOLDER, NOBODY, TenantSession
from trimtab.proxy.config import log_lines
from trimtab.proxy.config.upstreams import Upstream
from trimtab.proxy.exchange.gateway_rows import GatewayRows
from trimtab.proxy.http.asgi import Body, Declined, HttpResponse, Receive, Scope
from trimtab.proxy.http.budgets import RequestBudget, TooMuch
from trimtab.proxy.http.headers import plain, session_hint
from trimtab.proxy.http.worker import in_worker
from trimtab.proxy.records.gateway_calls import RETRIEVED, SHORTENED, UNCHANGED
from trimtab.retry.content_encoding import unpacked
from trimtab.sessions.session_turns import shortened
from trimtab.settings import Settings
from trimtab.telemetry import fault

COMPRESS, RETRIEVE = "/v1/compress", "/v1/retrieve/"
AFFINITY = "x-headroom-affinity"
"""The header in which a gateway names the conversation."""
GATEWAY = Upstream("gateway", "http://gateway.invalid")
"""Whose tenants the originals belong to; nothing is ever sent there."""
ROWS = Settings(trigger=0.45, target=0.27)
"""The rows alone may take half of the window, less ten percent as everywhere; a cut goes down to
0.6 of that.  The other half is for what the gateway withholds."""


class Compress(Addon):
    """Answers gateways, in the store of all the proxy's originals."""

    def __init__(self, core: Core, records: Records, metrics: Metrics) -> None:
        self._core, self._metrics = core, metrics
        self._calls = records.activity.gateways

    def serves(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        """See ``Addon``."""
        path = self._core.access.in_path(raw_path_of(scope))[1]
        if path == COMPRESS:
            return bool(scope["method"] == "POST")
        return bool(scope["method"] == "GET" and path.startswith(RETRIEVE))

    async def serve(self, scope: Scope, receive: Receive, reply: HttpResponse) -> None:
        """See ``Addon``."""
        access, headers = self._core.access, plain(scope["headers"])
        holder, path = await let_in(scope, headers, access, self._core.settings)
        if not access.same_origin(headers):
            raise Declined(403, "a page of another site may not ask this")
        headers = plain(access.without_token(scope["headers"]))
        served, tenant = await in_worker(lambda: self._tenant(headers, holder))
        if path == COMPRESS:
            await self._compress(served, tenant, headers, receive, reply)
            return
        query = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("query", [""])[0]
        digits = path.removeprefix(RETRIEVE).lower()
        with self._counted() as outcome:
            text = await in_worker(lambda: _original(served, digits, query))
            outcome.name = RETRIEVED
        await reply.json(200, {"hash": digits, "original_content": text})

    def _tenant(self, headers: Mapping[str, str], holder: bool) -> tuple[TenantSession, str]:
        """The session of who asks.  Only who may send gets here: what it sends is kept at once."""
        tenants = self._core.tenants
        tenant = tenants.tenant(headers, "", GATEWAY)
        tenant = HOLDER if tenant == NOBODY and holder else tenant
        served = tenants.served(GATEWAY, tenant)
        served.accept()
        return served, tenant

    async def _compress(
        self, served: TenantSession, tenant: str, headers: Mapping[str, str], receive: Receive,
        reply: HttpResponse,
    ) -> None:  # fmt: skip
        settings, began = self._core.settings, time.perf_counter()
        budget = RequestBudget(self._core.held)
        with self._counted() as outcome, closing(budget):
            body = Body(receive, settings.max_bytes, settings.read_seconds, budget)
            data = await body.whole()
            if data is None:
                raise Declined(413, "too long to be read: raise max_bytes, or send it as it is")
            encoding = headers.get("content-encoding", "").lower()
            data = unpacked(data, encoding, settings.max_bytes)
            if data is None:
                raise Declined(415, "its Content-Encoding cannot be read: send it plain")
            named = headers.get(AFFINITY, "")[:200] or session_hint(headers)
            job = _Job(self._core, served, tenant, named, budget, data)
            answered = await in_worker(job.answered)
            outcome.name = job.outcome
        self._count_rows(job, answered)
        await reply.json(200, answered)
        before, after = answered["tokens_before"], answered["tokens_after"]
        log_lines.say(
            "gateway compress", status=200, session=job.conversation, rows=len(job.rows),
            tokens=after, saved=before - after, seconds=round(time.perf_counter() - began, 3),
        )  # fmt: skip

    @contextmanager
    def _counted(self) -> Iterator[_Outcome]:
        """Count a call by what came of it."""
        outcome = _Outcome("not answered")
        try:
            yield outcome
        except Declined as declined:
            outcome.name = f"declined with {declined.status}"
            raise
        finally:
            self._calls.outcomes[outcome.name] += 1
            self._metrics.count("trimtab_gateway_calls_total", outcome=outcome.name)

    def _count_rows(self, job: _Job, answered: dict[str, Any]) -> None:
        before, after = answered["tokens_before"], answered["tokens_after"]
        changed = sum(a is not b for a, b in zip(job.rows, answered["messages"], strict=True))
        self._calls.rows += len(job.rows)
        self._calls.rows_shortened += changed
        self._calls.tokens += before
        self._calls.tokens_kept += after
        count = self._metrics.count
        count("trimtab_gateway_tokens_total", before, kind="arrived")
        count("trimtab_gateway_tokens_total", after, kind="kept")
        count("trimtab_gateway_rows_total", len(job.rows), kind="arrived")
        count("trimtab_gateway_rows_total", changed, kind="shortened")


@dataclass(slots=True)
class _Outcome:
    """What came of a call, as it is counted."""

    name: str


class _Job:
    """One request to shorten rows, in a worker thread."""

    def __init__(
        self, core: Core, served: TenantSession, tenant: str, named: str, budget: RequestBudget,
        data: bytes,
    ) -> None:  # fmt: skip
        self._core, self._served, self._tenant = core, served, tenant
        self._named, self._budget, self._data = named, budget, data
        self.rows: list[Any] = []
        self.conversation = ""
        self.outcome = UNCHANGED

    def answered(self) -> dict[str, Any]:
        """The answer; the rows as they came where they cannot be made shorter.  Raises Declined for
        what is no such request."""
        self._budget.begin()
        try:
            with stopped_by(self._budget.check):
                model = self._read()
                if self._core.settings.pass_through:
                    self.outcome = "unchanged: pass_through is set"
                    return _answer(self.rows, 0, 0, [])
                return self._shortened(model)
        except Interrupted:
            self.outcome = "unchanged: it took too long"
            log_lines.say(
                "gateway compress: it took too long, the rows go back unchanged",
                level=logging.WARNING,
            )
        except InvalidSetting:
            self.outcome = "unchanged: no window is known"
            log_lines.say(
                "gateway compress: no window is known for this model, the rows go back "
                "unchanged: give window",
                level=logging.WARNING,
            )
        except (Declined, MemoryError):
            raise
        except Exception as error:
            self.outcome = "unchanged: a fault of ours"
            fault("compress", error)
        return _answer(self.rows, 0, 0, [])

    def _read(self) -> str:
        """The name of the model; its rows are in ``rows``."""
        try:
            source = self._core.tenants.source(self._tenant, self._data, self._budget)
        except TooMuch:
            raise Declined(413, "too much to be read: send fewer rows") from None
        tree = {} if source is None or not isinstance(source.tree, dict) else source.tree
        rows = tree.get("messages")
        if not isinstance(rows, list):
            raise Declined(400, 'no rows: send {"messages": […], "model": "…"}')
        if not self._budget.allows(tree):
            raise Declined(413, "too many rows: send fewer")
        self.rows, model = rows, tree.get("model")
        return model if isinstance(model, str) else ""

    def _shortened(self, model: str) -> dict[str, Any]:
        gateway_rows = GatewayRows(self.rows, model, self._named)
        own = Settings(format="openai-chat", recall=self._tenant != NOBODY)
        wanted = ROWS | self._core.settings.fit | own
        fitted = shortened(self._served.session, gateway_rows.request, wanted)
        self.conversation = fitted.conversation
        if fitted.tokens_after < fitted.tokens_before:
            self.outcome = SHORTENED
        rows, hashes = gateway_rows.shortened(fitted.request["messages"], fitted.report.edits)
        return _answer(rows, fitted.tokens_before, fitted.tokens_after, hashes)


def _answer(rows: list[Any], before: int, after: int, hashes: list[str]) -> dict[str, Any]:
    return {
        "messages": rows, "tokens_before": before, "tokens_after": after,
        "tokens_saved": before - after, "compression_ratio": round(after / before, 4) if before
        else 1.0, "transforms_applied": ["trimtab"] if before > after else [], "ccr_hashes": hashes,
    }  # fmt: skip


def _original(served: TenantSession, digits: str, query: str) -> str:
    """The original behind a hash, or its lines that match ``query``.  Raises Declined."""
    handle = handle_at(digits)
    try:
        if not handle:
            raise UnknownHandle("no hash of ours")
        text = served.session.recall(handle)
    except UnknownHandle:
        raise Declined(404, "no original is kept under this hash: run the tool again") from None
    except StoreError:
        raise Declined(503, "the store does not answer: ask again") from None
    except TrimtabError as error:
        raise Declined(400, str(error)) from None
    if query:
        return answer(served.session, {"handle": handle, "search": query}).text
    if len(text) <= MAX_CHARS:
        return text
    return (
        f"{text[:MAX_CHARS]}\n[{MAX_CHARS:,} of {len(text):,} chars; give a query to find lines in "
        "all of it]"
    )
