"""Answers gateways that call a compressor beside them: ``POST /v1/compress`` and
``GET /v1/retrieve/HASH``, in the words of LiteLLM's guardrail ``headroom``.

It gets rows of a conversation and gives the same number back, tool results among them shortened in
their place.  What it cuts is kept in the proxy's store, for the tenant of the request's key.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from trimtab.errors import (
    InvalidRequest,
    InvalidSetting,
    StoreError,
    TrimtabError,
    UnknownHandle,
)
from trimtab.formats.body import RequestBody
from trimtab.journal.hashes import handle_at
from trimtab.proxy.addons.base import Addon, Core
from trimtab.proxy.callers.admission import let_in
from trimtab.proxy.callers.tenants import HOLDER, NOBODY, TenantSession
from trimtab.proxy.config import log_lines
from trimtab.proxy.config.upstreams import Upstream
from trimtab.proxy.http.asgi import Body, Declined, HttpResponse, Receive, Scope
from trimtab.proxy.http.budgets import RequestBudget, TooMuch
from trimtab.proxy.http.headers import plain
from trimtab.proxy.http.worker import in_worker
from trimtab.sessions.rows import Row, applied_only, rows_of, settings_of, shorten
from trimtab.sessions.session_turns import take_out
from trimtab.telemetry import fault

COMPRESS, RETRIEVE = "/v1/compress", "/v1/retrieve/"
AFFINITY = "x-headroom-affinity"
GATEWAY = Upstream("gateway", "http://gateway.invalid")
"""Names the rows' conversations in the store; nothing is ever sent there."""


class Compress(Addon):
    """Shortens the rows that a gateway hands over, and gives back what it cut from them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def serves(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        """Whether a gateway calls; an upstream's own page of that name is below ``/to/NAME``."""
        path = self._core.access.in_path(scope["path"])[1]
        if scope["method"] == "POST":
            return path == COMPRESS
        return scope["method"] == "GET" and path.startswith(RETRIEVE)

    async def serve(self, scope: Scope, receive: Receive, reply: HttpResponse) -> None:
        """Answer it.  Raises Declined."""
        core, headers = self._core, plain(scope["headers"])
        holder, path = await let_in(scope, headers, core.access, core.settings)
        served = await in_worker(lambda: self._served(scope, holder))
        try:
            if path == COMPRESS:
                answer = await self._compressed(served, receive, headers.get(AFFINITY, "")[:200])
            else:
                query = parse_qs(scope.get("query_string", b"").decode("latin-1")).get(
                    "query", [""]
                )
                answer = await in_worker(
                    lambda: _original(served, path.removeprefix(RETRIEVE), query[0])
                )
        except UnknownHandle as error:
            raise Declined(404, str(error)) from None
        except StoreError as error:
            raise Declined(503, str(error)) from None
        except (InvalidRequest, InvalidSetting) as error:
            raise Declined(400, str(error)) from None
        await reply.json(200, answer)

    async def _compressed(
        self, served: TenantSession, receive: Receive, session: str
    ) -> dict[str, Any]:
        core, began = self._core, time.perf_counter()
        budget = RequestBudget(core.held)
        body = Body(receive, core.settings.max_bytes, core.settings.read_seconds, budget)
        try:
            received = await body.whole()
            if received is None:
                raise Declined(413, "too many rows at once: raise max_bytes", closes=True)
            answer = await in_worker(lambda: _shortened(served, received, session, budget))
        finally:
            budget.close()
        log_lines.say(
            "gateway compress", rows=len(answer["messages"]), tokens=answer["tokens_after"],
            saved=answer["tokens_saved"], fit_ms=round(1000 * (time.perf_counter() - began), 1),
        )  # fmt: skip
        return answer

    def _served(self, scope: Scope, holder: bool) -> TenantSession:
        """The session of the caller's tenant.  Raises Declined where nothing tells whose it is."""
        core, tenants = self._core, self._core.tenants
        headers = plain(core.access.without_token(scope["headers"]))
        tenant = tenants.tenant(headers, "", GATEWAY)
        if tenant == NOBODY and not holder:
            raise Declined(
                401, "a key tells tenants apart: give the gateway one to send as Authorization "
                "(api_key), or set tenants = one"
            )  # fmt: skip
        served = tenants.served(GATEWAY, HOLDER if tenant == NOBODY else tenant)
        served.accept()
        return served


def _shortened(
    served: TenantSession, body: bytes, name: str, budget: RequestBudget
) -> dict[str, Any]:
    """The answer to a call, in the session that the gateway calls ``name``."""
    given, model = _rows(body, budget)
    rows = rows_of(given, model, name)
    if rows is None:
        return _answer(given, 0, 0, [])
    session = served.session
    settings = settings_of(session.settings, model)
    try:
        take_out(session, rows.request, shorten, settings=settings)
        fitted = session.fit(
            rows.request, settings=applied_only(settings), destination=GATEWAY.name
        )
        shown, hashes = rows.shortened(fitted)
    except (InvalidSetting, StoreError):
        raise
    except TrimtabError as error:  # the gateway's request goes on as it is
        fault("compress", error)
        return _answer(given, 0, 0, [])
    return _answer(shown, fitted.tokens_before, fitted.tokens_after, hashes)


def _rows(body: bytes, budget: RequestBudget) -> tuple[list[Row], str]:
    """(rows, the model's name) of a body.  Raises InvalidRequest, Declined."""
    try:
        budget.take_parsed(body)
    except TooMuch:
        raise Declined(413, "too many rows at once: send fewer") from None
    tree = RequestBody.of(body).tree
    rows = tree.get("messages") if isinstance(tree, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise Declined(400, 'no rows: send {"messages": [{"role": …, "content": …}], "model": …}')
    if not budget.allows(tree):
        raise Declined(413, "too many rows at once: send fewer")
    model = tree.get("model")
    return rows, model if isinstance(model, str) else ""


def _answer(rows: list[Row], before: int, after: int, hashes: list[str]) -> dict[str, Any]:
    return {
        "messages": rows, "tokens_before": before, "tokens_after": after,
        "tokens_saved": before - after, "compression_ratio": after / before if before else 1.0,
        "ccr_hashes": hashes, "transforms_applied": ["trimtab:results"] if hashes else [],
    }  # fmt: skip


def _original(served: TenantSession, hash: str, query: str) -> dict[str, Any]:
    """The original with this hash; with a query the lines that match it.  Raises UnknownHandle,
    StoreError."""
    handle = handle_at(hash.lower())
    if not handle:
        raise UnknownHandle("no original has such a hash: send one of ccr_hashes")
    text = served.session.recall(handle)
    if query.strip():
        text = served.session.look_up(handle=handle, search=query)
    return {"hash": hash, "original_content": text}
