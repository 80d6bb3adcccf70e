"""Keeps what is known of each request: for the dashboard, for the bill, and for other addons."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from trimtab.errors import StoreError
from trimtab.pricing.call_usage import price_of
from trimtab.pricing.conversation_usage import PREFIX
from trimtab.pricing.prices import named
from trimtab.proxy.addons.base import Addon, Core, repeated
from trimtab.proxy.config import log_lines
from trimtab.proxy.exchange.exchange import HUNG_UP, Exchange
from trimtab.proxy.exchange.provider_call import ProviderCall
from trimtab.proxy.http.worker import in_worker
from trimtab.proxy.records.activity_log import ActivityLog
from trimtab.proxy.records.prefix_breaks import beginning, note_break
from trimtab.proxy.records.recent_requests import RecentRequests
from trimtab.proxy.records.request_record import (
    RequestRecord,
    RequestTexts,
    agent_of,
    meaning,
)
from trimtab.proxy.records.session_history import (
    SessionHistory,
    fill,
    read_sessions,
    stored_parts,
)
from trimtab.proxy.records.session_record import SessionRecord
from trimtab.proxy.records.session_title import first_prompt, folder
from trimtab.proxy.records.usage_ledger import UsageLedger
from trimtab.telemetry import fault

SECONDS = 5.0
"""Seconds between two writes of what conversations were billed and what the dashboard shows."""
_RECORDS = "records"


class Records(Addon):
    """``clock``: seconds since the epoch."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.clock: Callable[[], float] = time.time
        self.activity, self.requests = ActivityLog(), RecentRequests()
        self.ledger, self._history = UsageLedger(), SessionHistory()

    # --- the two hooks ---------------------------------------------------------------------------

    def request(self, exchange: Exchange) -> None:
        """Keep a copy of its answer, if the dashboard shows texts."""
        if exchange.settings.keeps_texts and exchange.is_fitted:
            exchange.reply.kept = bytearray()

    def response(self, exchange: Exchange) -> None:
        """Record it: a turn of its session for each call of the model, if it was fitted."""
        prices = exchange.settings.fit.prices
        self.activity.prices = named(prices) if prices else None
        for text in (text for call in exchange.calls for text in call.warnings):
            if self.activity.warn(text):
                log_lines.say(text, level=logging.WARNING)
        calls = [call for call in exchange.calls if call.fits]
        if calls:
            session = self._session(exchange)
            records = [self._turn(exchange, call, session, calls) for call in calls]
            session.problem = records[-1].problem
        else:
            call = exchange.calls[-1] if exchange.calls else None
            records = [self._record(exchange, call, is_last=True)]
        exchange.metadata[_RECORDS] = records
        self.requests.add(records[-1])

    def of(self, exchange: Exchange) -> list[RequestRecord]:
        """The records of an exchange that has ended: one, or one for each call of the model."""
        records: list[RequestRecord] = exchange.metadata[_RECORDS]
        return records

    def session_of(self, exchange: Exchange) -> SessionRecord | None:
        """The session of an exchange that has ended; None if it was not fitted."""
        return self.activity.sessions.get(self.of(exchange)[-1].session)

    def _began(self, exchange: Exchange) -> float:
        return self.clock() - (time.perf_counter() - exchange.began)

    def _session(self, exchange: Exchange) -> SessionRecord:
        request = exchange.request
        session = self.activity.session(
            exchange.conversation, tenant=exchange.tenant, upstream=request.upstream.name,
            format=request.route.format, client=request.client, hint=request.hint,
            now=self._began(exchange),
        )  # fmt: skip
        if exchange.settings.keeps_texts and not session.prompt:
            session.prompt, session.project = first_prompt(exchange.tree), folder(exchange.tree)
        return session

    def _turn(
        self,
        exchange: Exchange,
        call: ProviderCall,
        session: SessionRecord,
        calls: list[ProviderCall],
    ) -> RequestRecord:
        """Record one call of the model in its session, and what it was billed."""
        session.model = call.model or session.model
        turn = self._record(exchange, call, is_last=call is calls[-1])
        turn.session, turn.look_up = session.id, call is not calls[0]
        session.add(turn, call.fits, call.learned_room, names_calls=exchange.settings.keeps_texts)
        if turn.answered and turn.prompt:
            note_break(session, turn, beginning(exchange.tree))
        usage = call.usage.call(session.model)
        cost = price_of(usage) if turn.prompt else None
        self.activity.ended(session, turn, cost.total if cost else 0.0)
        if turn.answered and turn.prompt:
            self.ledger.add(
                f"{session.upstream}/{session.id}", agent=agent_of(session.client),
                upstream=session.upstream, arm=session.arm, when=turn.when, arrived=turn.arrived,
                usage=usage, tenant=session.tenant, look_up=turn.look_up,
            )  # fmt: skip
        return turn

    def _record(
        self, exchange: Exchange, call: ProviderCall | None, *, is_last: bool
    ) -> RequestRecord:
        """One call, or None: the whole request.  Only the last one ends as the request does."""
        request, reply, error = exchange.request, exchange.reply, exchange.error
        record = RequestRecord(
            0, self._began(exchange), status=200, request=exchange.number,
            upstream=request.upstream.name, path=request.path[:200],
            operation=request.route.operation, client=request.client,
        )  # fmt: skip
        if call is not None:
            usage = call.usage
            record.model, record.note, record.sends = call.model, call.note, max(call.sends, 1)
            record.refusals, record.fit_ms = tuple(call.refusals), call.fit_milliseconds
            record.prompt, record.cached, record.written = usage.prompt, usage.cached, usage.written
            record.output, record.diagnosis = usage.output, usage.diagnosis
        if is_last:
            broke_off = error not in ("", HUNG_UP) and reply.status < 400
            record.status = 502 if broke_off else reply.status
            record.note = exchange.note or error
            record.seconds = time.perf_counter() - exchange.began
            record.first_byte = reply.begun_at - exchange.began if reply.begun_at else 0.0
            record.problem = _problem(exchange, record)
            if reply.kept is not None and exchange.received is not None:
                record.texts = _texts(exchange, exchange.received, bytes(reply.kept))
        return record

    # --- what is stored --------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Read the sessions of earlier runs; store what is new every few seconds, and at the
        end."""
        await in_worker(self._read)
        async with repeated(SECONDS, self._store):
            yield
        await self._store()

    async def _store(self) -> None:
        self._collect()
        await in_worker(self.write)

    def _collect(self) -> None:
        if self._core.tenants.history_store() is not None:
            self._history.collect(self.activity.sessions.values())

    def _read(self) -> None:
        store = self._core.tenants.history_store()
        try:
            sessions = read_sessions(store) if store is not None else []
        except StoreError as error:
            fault("store", error)
            return
        for session in sessions:
            self.activity.sessions.setdefault(session.id, session)

    def write(self) -> None:
        """Store what is billed, and what was collected of sessions.  Runs in a worker thread."""
        self.ledger.write(self._core.tenants.usage_store())
        if (store := self._core.tenants.history_store()) is not None:
            self._history.write(store)

    async def load(self, session: SessionRecord) -> None:
        """Load a session's turns and edits of earlier runs."""
        store = self._core.tenants.history_store()
        if not session.loaded and store is not None:
            fill(session, await in_worker(lambda: stored_parts(store, session.id)))

    async def forget(self, session: SessionRecord) -> None:
        """Delete a session with its conversation, from the store and from memory; what it was
        billed stays, which is numbers.  Raises StoreError."""
        await in_worker(lambda: self._core.tenants.forget(
            session.upstream, session.tenant, session.conversation, session.id
        ))  # fmt: skip
        self._history.forget(session.id)
        self.activity.sessions.pop(session.id, None)
        self.requests.forget(session.id)

    def usage_facts(self) -> dict[str, Any]:
        """What all conversations were billed, stored or not yet.  Runs in a worker thread."""
        try:
            facts = dict(self._core.tenants.usage_store().facts(PREFIX))
        except StoreError:
            facts = {}
        return facts | self.ledger.unwritten()


def _problem(exchange: Exchange, record: RequestRecord) -> str:
    """Why its client got no answer, or an error; "" if it was answered."""
    if exchange.error or record.answered:
        return exchange.error
    kinds = [refusal.kind for call in exchange.calls for refusal in call.refusals]
    named = [kind for kind in kinds if kind != "other"]
    if named:
        return f"refused: {meaning(named[-1])}"
    return f"the provider answered {record.status}"


def _texts(exchange: Exchange, received: bytes, answer: bytes) -> RequestTexts:
    sent = exchange.calls[-1].body if exchange.calls else b""
    cut = exchange.reply.sent_bytes > len(answer)
    return RequestTexts(received, sent or received, answer, exchange.request.encoding, cut=cut)
