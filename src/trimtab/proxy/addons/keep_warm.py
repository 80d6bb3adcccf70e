"""Keeps the prompt cache of idle conversations warm, where that pays (``pricing.keep_warm``).

Shortly before a cached prefix expires, the request that was sent last is sent once more for no
output: it reads the prefix and starts its lifetime again.  Credentials are those of the
conversation's own last request, held in memory only.  Only providers that document the lifetime of
a prefix are asked: Anthropic, and OpenAI's Responses from GPT-5.6 on.
"""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import Any

from trimtab.errors import StoreError
from trimtab.forking import ProcessName
from trimtab.formats import FORMATS
from trimtab.pricing.call_usage import price_of
from trimtab.pricing.conversation_usage import PREFIX as USAGE
from trimtab.pricing.conversation_usage import WARMER, ConversationUsage
from trimtab.pricing.keep_warm import MARGIN, LearnedGaps, PrefixPrices, plan_pings, prices_for
from trimtab.proxy.addons.base import Addon, Core, repeated
from trimtab.proxy.addons.metrics import Metrics
from trimtab.proxy.addons.records import SECONDS as WRITE_SECONDS
from trimtab.proxy.addons.records import Records
from trimtab.proxy.callers.tenants import NOBODY
from trimtab.proxy.config import log_lines
from trimtab.proxy.exchange.exchange import Exchange
from trimtab.proxy.exchange.provider_call import ProviderCall
from trimtab.proxy.http.answer_usage import TokenUsage
from trimtab.proxy.http.client_request import ClientRequest
from trimtab.proxy.http.http_client import UpstreamFailed
from trimtab.proxy.http.worker import in_worker
from trimtab.proxy.records.request_record import agent_of
from trimtab.proxy.records.session_record import SessionRecord
from trimtab.retry.content_encoding import unpacked
from trimtab.telemetry import fault

MAX_CONVERSATIONS = 200
MAX_HELD_BYTES = 100_000_000
"""Bytes of last requests that are held, over all conversations."""
FORGOTTEN = 12 * 3600.0
"""Seconds of silence after which a conversation counts as ended."""
SECONDS = 1.0
"""Seconds between two checks for prefixes that are about to expire."""
MAX_ANSWER_BYTES = 1_000_000
PREFIX = "gaps/"
"""How the names of stored facts begin that hold the gaps each process learned."""


@dataclass(slots=True)
class IdleConversation:
    """One conversation since its last request: what was sent, and what the provider has cached."""

    request: ClientRequest
    body: bytes
    session: SessionRecord
    prices: PrefixPrices
    tokens: int
    asked_at: float
    expires_at: float
    pings: int = 0
    over: bool = False
    """Whether pings have stopped for it; it may still continue."""

    def ping(self, most: int) -> bytes | None:
        """Its last request for ``most`` output tokens."""
        return ping_body(self.body, most, self.request.route.format)

    def has_larger_ping(self) -> bool:
        """Whether a ping for 1 token is another than one for none."""
        return self.ping(1) != self.ping(0)


class KeepWarm(Addon):
    """Watches conversations; ``tick`` is one check."""

    def __init__(self, core: Core, records: Records, metrics: Metrics) -> None:
        self._core, self._records, self._metrics = core, records, metrics
        self.gaps, self._own = LearnedGaps(), LearnedGaps()
        self._process, self._news = ProcessName(), False
        self._idle: OrderedDict[str, IdleConversation] = OrderedDict()
        self._spent: tuple[int, float] = (0, 0.0)
        self._no_zero: set[tuple[str, str]] = set()
        """Hosts and models that refuse ``max_tokens: 0``."""

    # --- what requests tell ---------------------------------------------------------------------

    def response(self, exchange: Exchange) -> None:
        """A conversation is active again; or its client broke off, and no ping follows."""
        session = self._records.session_of(exchange)
        if session is None:
            return
        # Many clients close the connection as soon as they have the whole answer.
        if not exchange.reply.ended:
            self._broken_off(session)
        elif exchange.tenant != NOBODY and exchange.reply.status < 400:
            self._answered(exchange.request, exchange.calls[-1], session)

    def _answered(self, request: ClientRequest, call: ProviderCall, session: SessionRecord) -> None:
        if self._core.settings.keep_warm == "off":
            return
        now, key = self._records.clock(), _key(session)
        agent, usage, body = agent_of(session.client), call.usage, call.body
        session_pings = 0
        if (before := self._idle.pop(key, None)) is not None:
            session_pings = before.pings
            self._learn(agent, before.asked_at, now - before.asked_at)
            self._count_hit(before, now, usage)
        prices = prices_for(session.model, hour=usage.written_1h > 0 or b'"1h"' in body)
        tokens = usage.cached + usage.written
        format = FORMATS.get(request.route.format)
        can_ping = format is not None and format.warm_request and not request.upstream.sign
        if not can_ping or prices is None or not tokens:
            return
        self._idle[key] = IdleConversation(
            request, body, session, prices, tokens, now, now + prices.lifetime, session_pings
        )
        total = sum(len(conversation.body) for conversation in self._idle.values())
        idle = self._idle
        while len(idle) > MAX_CONVERSATIONS or (total > MAX_HELD_BYTES and len(idle) > 1):
            _, dropped = idle.popitem(last=False)
            total -= len(dropped.body)

    def forget(self, session: SessionRecord) -> None:
        """Keep this session's cache warm no more: its request is not needed."""
        self._idle.pop(_key(session), None)

    def _broken_off(self, session: SessionRecord) -> None:
        """Stop pinging a conversation."""
        if (conversation := self._idle.pop(_key(session), None)) is not None:
            self._learn(agent_of(session.client), conversation.asked_at, inf)

    def _learn(self, agent: str, when: float, gap: float) -> None:
        for gaps in (self.gaps, self._own):
            gaps.add(agent, when, gap)
        self._news = True

    def load(self) -> None:
        """Read the gaps learned earlier and what today's pings have cost so far.  Runs in a worker
        thread."""
        store = self._core.tenants.usage_store()
        try:
            facts, usage = store.facts(PREFIX), store.facts(USAGE)
        except StoreError as error:
            fault("store", error)
            return
        for fact in facts.values():
            self.gaps.take(LearnedGaps.from_dict(fact))
        now = self._records.clock()
        today = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}"
        costs = [
            price_of(row.usage, above_tier=row.above_tier)
            for fact in usage.values()
            if fact.get("agent") == WARMER
            for row in ConversationUsage.from_dict(fact)
            if row.day == today
        ]
        self._spent = (int(now // 86_400), sum(cost.total for cost in costs if cost is not None))

    def write(self) -> None:
        """Store what was learned since the last time.  Runs in a worker thread."""
        if not self._news:
            return
        self._news = False
        facts = {f"{PREFIX}{self._process}": self._own.as_dict()}
        store = self._core.tenants.usage_store()
        try:
            store.write(store.batch("", updated_facts=facts))
        except StoreError:
            self._news = True

    def _count_hit(self, conversation: IdleConversation, now: float, usage: TokenUsage) -> None:
        """Count a cache read that pings made possible: without them the prefix had expired."""
        kept = min(usage.cached, conversation.tokens)
        if (
            conversation.pings
            and kept
            and now > conversation.asked_at + conversation.prices.lifetime
        ):
            self._records.activity.warm.hits += 1
            self._records.activity.warm.saved += conversation.prices.lost(kept)

    # --- what is sent ---------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Check every second, and store what is learned, as long as the proxy runs."""
        if self._core.settings.keep_warm != "off":
            await in_worker(self.load)
        async with repeated(SECONDS, self.tick), repeated(WRITE_SECONDS, self._store):
            yield
        await self._store()

    async def _store(self) -> None:
        await in_worker(self.write)

    async def tick(self) -> None:
        """Send the pings that are due now."""
        now = self._records.clock()
        for key, conversation in list(self._idle.items()):
            agent = agent_of(conversation.session.client)
            if now - conversation.asked_at > FORGOTTEN:
                self._idle.pop(key, None)
                self._learn(agent, conversation.asked_at, inf)
            elif not conversation.over and now >= conversation.expires_at - MARGIN:
                if now >= conversation.expires_at or not self._pays(conversation, agent, now):
                    conversation.over = True
                else:
                    await self._ping(key, conversation)

    def _pays(self, conversation: IdleConversation, agent: str, now: float) -> bool:
        """Whether a ping is likely to pay, and both caps allow it."""
        workers = max(self._core.settings.workers, 1)  # each knows its own pings only
        left = self._core.settings.keep_warm_pings // workers - conversation.pings
        if left <= 0 or self._core.settings.keep_warm == "off":
            return False
        day, spent = self._spent
        today = int(now // 86_400)
        spent = spent if day == today else 0.0
        cost = conversation.prices.ping(conversation.tokens)
        if spent + cost > self._core.settings.keep_warm_dollars / workers:
            return False
        idle = now - conversation.asked_at
        gaps = self.gaps.of(agent, conversation.asked_at, idle)
        read = before_cut(conversation.session)
        return (
            plan_pings(gaps, idle, conversation.prices, conversation.tokens, left, read).pings > 0
        )

    async def _ping(self, key: str, conversation: IdleConversation) -> None:
        """Send one ping and record what it was billed."""
        place = (conversation.request.upstream.host, conversation.session.model)
        most = 1 if place in self._no_zero else 0
        status, usage = await self._sent(conversation, most)
        if status == 400 and most == 0 and await in_worker(conversation.has_larger_ping):
            self._no_zero.add(place)
            most = 1
            status, usage = await self._sent(conversation, most)
        if status == 0:  # nothing came, or this request cannot be sent for no output
            conversation.over = True
            return
        now = self._records.clock()
        if self._idle.get(key) is not conversation:  # it has gone on meanwhile
            self._account(conversation, usage, now)
            return
        conversation.pings += 1
        conversation.expires_at = now + conversation.prices.lifetime
        outcome = "refused" if status >= 400 else "read"
        if outcome == "read" and usage.cached < conversation.tokens // 2:
            outcome = "missed"  # it had expired: what was just written is warm, but not for that
        conversation.over = outcome != "read" or usage.output > most
        self._metrics.count("trimtab_pings_total", outcome=outcome)
        self._account(conversation, usage, now)
        log_lines.say(
            "keep warm ping", level=logging.INFO, session=conversation.session.id, status=status,
            outcome=outcome, cached=usage.cached, pings=conversation.pings,
        )  # fmt: skip

    def _account(self, conversation: IdleConversation, usage: TokenUsage, now: float) -> None:
        warm, today = self._records.activity.warm, int(now // 86_400)
        billed = usage.call(conversation.session.model)
        cost = price_of(billed)
        dollars = cost.total if cost is not None and usage.prompt else 0.0
        warm.pings, warm.spent = warm.pings + 1, warm.spent + dollars
        day, spent = self._spent
        # Where nobody says what it took, what it should have taken counts against the cap.
        counted = dollars if usage.prompt else conversation.prices.ping(conversation.tokens)
        self._spent = (today, (spent if day == today else 0.0) + counted)
        session = conversation.session
        if usage.prompt:
            self._records.ledger.add(
                f"{session.upstream}/{session.id}/keep-warm", agent=WARMER,
                upstream=session.upstream, arm="", when=now, arrived=0, usage=billed,
                tenant=session.tenant,
            )  # fmt: skip

    async def _sent(self, conversation: IdleConversation, most: int) -> tuple[int, TokenUsage]:
        """The status (0: no answer) and the usage that was billed."""
        usage = TokenUsage()
        body = await in_worker(lambda: conversation.ping(most))
        if body is None:
            return 0, usage
        headers = conversation.request.headers_upwards(body, repacked=True)
        request = conversation.request
        try:
            async with self._core.client.send(
                request.method, request.address, headers, body
            ) as answer:
                data = await answer.whole(MAX_ANSWER_BYTES)
                if answer.status < 400:
                    plain = unpacked(data, answer.encoding, MAX_ANSWER_BYTES)
                    usage.take(_json(plain or b""))
                return answer.status, usage
        except UpstreamFailed:
            return 0, usage


def before_cut(session: SessionRecord) -> int | None:
    """Tokens that stand before the edits of a cut, where one is due with the next request, if
    that brings as much as the last one did; None where none is.

    They are what the request of the last cut still read, else the conversation's first request.
    """
    turns = [turn for turn in session.turns if turn.answered]
    if len(turns) < 2 or not turns[-1].trigger:
        return None
    last, before = turns[-1], turns[-2]
    if last.sent + max(last.arrived - before.arrived, 0) < last.trigger:
        return None
    cut = next((turn for turn in reversed(turns) if turn.new and turn.cached), None)
    return turns[0].prompt if cut is None else cut.cached


def ping_body(body: bytes, most: int, format: str) -> bytes | None:
    """The same request for ``most`` output tokens, or one that only prepares the cache; None where
    the provider would not take that."""
    tree, warm_request = _json(body), FORMATS[format].warm_request
    sent = warm_request(tree, most) if warm_request and isinstance(tree, dict) else None
    if sent is None:
        return None
    sent.pop("stream", None)
    return json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _key(session: SessionRecord) -> str:
    return f"{session.upstream}/{session.tenant}/{session.id}"
