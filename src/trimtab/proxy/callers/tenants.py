"""One library ``Session`` for each upstream and tenant.  A tenant is the digest of a credential."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from trimtab import stores
from trimtab.errors import InvalidRequest, StoreError, TrimtabError
from trimtab.forking import Lock
from trimtab.formats.body import RequestBody
from trimtab.formats.incremental_json import IncrementalParser
from trimtab.pricing.conversation_usage import TENANT as USAGE
from trimtab.proxy.config import log_lines
from trimtab.proxy.config.settings import ProxySettings
from trimtab.proxy.config.upstreams import Upstream
from trimtab.proxy.http.budgets import RequestBudget
from trimtab.proxy.http.headers import fingerprints
from trimtab.rounds import StoredExchanges, exchanges_of
from trimtab.session import Session
from trimtab.sessions.session_turns import store_of, undone_by
from trimtab.stores.breaker import WatchedStore
from trimtab.stores.deferred import DeferredStore
from trimtab.stores.tenant import KEY, SESSIONS, TenantStore, stored_under
from trimtab.telemetry import fault

MAX_SESSIONS = 200
"""Sessions in memory; the least recently used is dropped first, its data stays in the store."""
LOCAL = "local"
"""The tenant of all requests if the proxy serves one user."""
NOBODY = ""
"""The tenant of requests with neither a key nor the token: nothing is remembered between them."""
HOLDER = "token"
"""The tenant of requests with the proxy's token and no key of their own."""
MAX_KNOWN = 10_000
"""Credentials whose tenant is remembered; the store knows the others."""
MAX_PARSED = 64
MAX_PARSED_BYTES = 100_000_000
"""Limit of all remembered parsed bodies; the most recently used stay, at least one."""
_BEGINNING = 600
"""Bytes of a body's beginning that identify its conversation's last body in the cache."""


class TenantSession(NamedTuple):
    """One tenant at one upstream: its session, in the store."""

    session: Session
    deferred: DeferredStore | None = None
    """Holds writes back until the provider has accepted a request; None if there is one tenant."""

    def accept(self) -> None:
        """Store its data from now on: the provider has accepted a request of it."""
        try:
            if self.deferred is not None:
                self.deferred.accept()
        except StoreError as error:
            fault("store", error)


class Tenants:
    """Sessions by upstream and tenant.

    Raises InvalidSetting or MissingExtra at once if a session cannot be made with these settings.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self._store = WatchedStore(stores.open_store(settings.store or "memory:"), _tell)
        Session(store=self._store, settings=settings.fitting)  # reads and writes nothing yet
        self._growing: OrderedDict[tuple[str, bytes], IncrementalParser] = OrderedDict()
        self._parsed_bytes = 0
        """Of all texts in ``_growing``."""
        self._lock = Lock()
        self._served: OrderedDict[tuple[str, str], TenantSession] = OrderedDict()
        self._tenants: dict[tuple[str, tuple[str, ...]], str] = {}
        """Tenants in the store, by upstream and all digests of their credential."""
        self._former: dict[tuple[str, str], tuple[str, ...]] = {}
        """Of a tenant that was kept as several: the others."""

    @property
    def store_problem(self) -> str:
        """Why the store fails at the moment; "" while it works."""
        return str(self._store.failing or "")

    def tenant(self, headers: Mapping[str, str], query: str, upstream: Upstream) -> str:
        """The tenant of a request: LOCAL if the proxy serves one user, else the digest of its
        credential, or NOBODY if it has none.

        A credential whose data an earlier release has stored under another digest keeps that one.
        Reads the store until it knows the tenant.
        """
        if self.settings.one_tenant:
            return LOCAL
        names = fingerprints(headers, query, self.settings.key_headers)
        if len(names) < 2:
            return next(iter(names), NOBODY)
        tenant = self._tenants.get((upstream.name, names))
        if tenant is None:
            tenant = self._stored(upstream, names)
        return tenant

    def _stored(self, upstream: Upstream, names: tuple[str, ...]) -> str:
        """The first of these tenants that is in the store; the first of all if there is none."""
        try:
            found = [
                name for name in names
                if self._store.fact(f"{upstream.name}/{name}", KEY) is not None
            ]  # fmt: skip
        except StoreError:
            found = []
        if not found:
            return names[0]
        tenant, *former = found
        with self._lock:
            self._tenants[upstream.name, names] = tenant
            if len(self._tenants) > MAX_KNOWN:
                del self._tenants[next(iter(self._tenants))]
            if former:  # a page may have opened it without them
                self._former[upstream.name, tenant] = tuple(former)
                self._served.pop((upstream.name, tenant), None)
        return tenant

    def served(self, upstream: Upstream, tenant: str) -> TenantSession:
        """The session of this tenant at this upstream."""
        key = (upstream.name, tenant)
        served = self._served.pop(key, None)
        if served is None:
            name = f"{upstream.name}/{tenant}"
            if tenant == NOBODY:
                session = Session(
                    store="memory:", settings=self.settings.fitting, window=upstream.window
                )
                return TenantSession(session)
            one_tenant = self.settings.one_tenant
            deferred = None if one_tenant else DeferredStore(
                self._store, name, KEY,
                tuple(f"{upstream.name}/{one}" for one in self._former.get(key, ())),
            )  # fmt: skip
            session = Session(
                store=deferred or self._store, tenant=name, settings=self.settings.fitting,
                window=upstream.window,
            )  # fmt: skip
            undone_by(session, "trimtab pin {}")
            served = TenantSession(session, deferred)
        self._served[key] = served
        while len(self._served) > MAX_SESSIONS:
            self._served.popitem(last=False)
        return served

    def find(self, upstream_name: str, tenant: str) -> Session | None:
        """The session of a tenant, which an earlier run may have made; None where its upstream is
        not configured any more, or it has none."""
        served = self._served.get((upstream_name, tenant))
        if served is None and tenant:
            named = (one for one in self.settings.upstreams if one.name == upstream_name)
            if (upstream := next(named, None)) is not None:
                served = self.served(upstream, tenant)
        return None if served is None else served.session

    def forget(self, upstream_name: str, tenant: str, conversation: str, id: str) -> None:
        """Delete one conversation of a tenant, ``id`` in the dashboard, from the store and from
        memory.  Raises StoreError."""
        session = self.find(upstream_name, tenant)
        conversations = store_of(session) if session is not None else None
        if conversations is not None:
            conversations.forget(conversation)
        name = f"{upstream_name}/{tenant}"
        stores.purge(
            self._store, partial(stores.open, self._store), now=time.time(), tenant=name,
            conversations=stored_under(name, conversation, [id]),
        )  # fmt: skip

    def source(self, tenant: str, body: bytes, budget: RequestBudget) -> RequestBody | None:
        """The parsed body; None if it is not JSON.  If it extends the last body with the same
        beginning, only the new part is parsed.  Raises TooMuch if ``budget`` has no room for it."""
        key = (tenant, body[:_BEGINNING])
        growing = self._take_out(key) or IncrementalParser()
        try:
            parsed = growing.parse(body, budget.take_parsed)
        except InvalidRequest:
            return None
        with self._lock:
            self._take_out(key)  # of a request that came at the same time
            self._growing[key] = growing
            self._parsed_bytes += growing.stored_bytes
            while len(self._growing) > 1 and (
                len(self._growing) > MAX_PARSED or self._parsed_bytes > MAX_PARSED_BYTES
            ):
                self._take_out(next(iter(self._growing)))
        return parsed

    def _take_out(self, key: tuple[str, bytes]) -> IncrementalParser | None:
        """Remove a parser, so that nobody else uses it; None if there is none."""
        with self._lock:
            growing = self._growing.pop(key, None)
            self._parsed_bytes -= growing.stored_bytes if growing else 0
            return growing

    def close(self) -> None:
        """Write what is not stored yet, as long as the store answers."""
        for served in self._served.values():
            try:
                served.session.close()
            except TrimtabError as error:
                fault("store", error)
        self._store.close()

    def usage_store(self) -> TenantStore:
        """The store of what conversations were billed."""
        return stores.open(self._store, USAGE)

    def history_store(self) -> TenantStore | None:
        """The store of the dashboard's sessions; None for a store in memory."""
        return stores.open(self._store, SESSIONS) if self._durable else None

    @property
    def _durable(self) -> bool:
        return bool(self.settings.store) and not self.settings.store.startswith("memory:")

    def exchanges(self, upstream: Upstream, tenant: str) -> StoredExchanges | None:
        """The store of exchanges hidden from the client; None for a store in memory."""
        if tenant == NOBODY or not self._durable:
            return None
        return exchanges_of(self.served(upstream, tenant).session)


def _tell(store: WatchedStore) -> None:
    """Log one line when the store begins to fail, and one when it works again."""
    if store.failing is None:
        log_lines.say("the store answers again")
    else:
        log_lines.say(f"the store fails: {store.failing}", level=logging.WARNING)
