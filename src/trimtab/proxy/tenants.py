"""Whose conversations are whose: a session of the library for each upstream and tenant.

Knows settings and credentials' fingerprints.  Does not know HTTP.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

from trimtab import stores
from trimtab.errors import InvalidRequest, TrimtabError, UnknownHandle
from trimtab.proxy import logs
from trimtab.proxy.headers import fingerprint
from trimtab.proxy.ledger import Edit
from trimtab.proxy.ledger import Session as Known
from trimtab.proxy.plan import INLINE_BYTES
from trimtab.proxy.recall import Quiet, StoredExchanges
from trimtab.proxy.settings import ProxySettings
from trimtab.proxy.upstreams import Upstream
from trimtab.reading.grown import Grown
from trimtab.reading.source import Source
from trimtab.sending.learned import LearnedLimits
from trimtab.sending.stored_limits import StoredLimits
from trimtab.session import Session

MOST = 200
"""Sessions in memory: the least recently used goes first; a store keeps what it knew."""
ONE = "local"
MOST_PARSED = 64
_BEGINNING = 600
"""Bytes by which the last body of a conversation is found: it is a memo only."""


class Served(NamedTuple):
    """One tenant at one upstream: the session, and what refusals taught; both in the store."""

    session: Session
    learned: LearnedLimits


class Tenants:
    """Sessions by upstream and tenant.

    Raises InvalidSetting or MissingExtra where no session could be made: later that would be a
    fault in every request, each sent as it came.
    """

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self._store = stores.open_store(settings.store or "memory:")
        Session(store=self._store, **settings.fit)  # reads and writes nothing yet
        self._growing: OrderedDict[tuple[str, bytes], Grown] = OrderedDict()
        self._lock, self._quiet = Lock(), Quiet()
        self._served: OrderedDict[tuple[str, str], Served] = OrderedDict()

    def tenant(self, headers: Mapping[str, str], query: str) -> str:
        """Who sends this: the one user, or a digest of the credential."""
        if self.settings.one_tenant:
            return ONE
        return fingerprint(headers, query) or "nobody"

    @property
    def far(self) -> bool:
        """Whether the store is on another machine, which may take its time."""
        return not self._store.near

    def served(self, upstream: Upstream, tenant: str) -> Served:
        """What fits this tenant's requests to this upstream."""
        key = (upstream.name, tenant)
        found = self._served.pop(key, None)
        if found is None:
            keywords = dict(self.settings.fit)
            if upstream.window is not None:
                keywords["window"] = upstream.window
            name = f"{upstream.name}/{tenant}"
            session = Session(store=self._store, tenant=name, **keywords)
            found = Served(session, LearnedLimits(StoredLimits(session)))
        self._served[key] = found
        while len(self._served) > MOST:
            self._served.popitem(last=False)
        return found

    def quick(self, session: Session, tenant: str, body: bytes, format: str) -> Source | None:
        """The parsed body, where it goes on from one seen before and next to nothing is new, so
        that fitting it takes no longer than to hand it to a thread; else None."""
        if len(body) <= INLINE_BYTES:  # no thread is asked anyway
            return None
        with self._lock:
            growing = self._growing.get((tenant, body[:_BEGINNING]))
        news = growing.news(body) if growing else len(body)
        if news > INLINE_BYTES or (source := self.source(tenant, body)) is None:
            return None
        return source if session.goes_on(source, news, format) else None

    def source(self, tenant: str, body: bytes) -> Source | None:
        """The parsed body; None where it is no JSON.  Of one that extends the last one with the
        same beginning, only what is new is parsed."""
        key = (tenant, body[:_BEGINNING])
        with self._lock:
            growing = self._growing.pop(key, None) or Grown()
        try:
            found = growing.source(body)
        except InvalidRequest:
            return None
        with self._lock:
            self._growing[key] = growing
            while len(self._growing) > MOST_PARSED:
                self._growing.popitem(last=False)
        return found

    def close(self) -> None:
        """Keep what is not kept yet, as long as the store answers."""
        for served in self._served.values():
            try:
                served.session.close()
            except TrimtabError as error:
                logs.fault("store", error)

    def exchanges(self, upstream: Upstream, tenant: str) -> StoredExchanges | None:
        """Where exchanges that a client never saw outlast the process; None in memory."""
        if not self.settings.store or self.settings.store.startswith("memory:"):
            return None
        kept = stores.open(self._store, f"{upstream.name}/{tenant}")
        return StoredExchanges(kept, self._quiet)

    # --- what the pages ask for ---------------------------------------------------------------

    def _of(self, known: Known) -> Session | None:
        served = self._served.get((known.upstream, known.tenant))
        return None if served is None else served.session

    def texts(self, known: Known, handle: str) -> tuple[str | None, str]:
        """The original behind a handle (None where it is no longer kept), and what is sent."""
        session = self._of(known)
        if session is None:
            return None, ""
        try:
            return session.recall(handle), session.shown(handle)
        except TrimtabError:
            return None, ""

    def act(self, name: str, known: Known, edit: Edit) -> None:
        """Undo an edit, pin what it touches, or take that back.  Raises TrimtabError."""
        session = self._of(known)
        if session is None:
            raise UnknownHandle("this session is no longer in memory: it goes on at its next turn")
        {"undo": session.undo, "pin": session.pin, "unpin": session.unpin}[name](edit.handle)


LISTS = ("messages", "input", "contents")
"""Keys of a request under which its history stands."""


def conversation(tenant: str, format: str, hint: str, body: Any) -> str:
    """A name for the conversation that a parsed body belongs to: whose it is, what its client
    calls it, and what its user said first.

    Titles, classifiers and subagents share the client's name, but not the first words.
    """
    parts = (tenant, format, hint, first_words(body))
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=6).hexdigest()


def first_words(body: Any) -> str:
    """The text of the first message of a user; "" where there is none."""
    given = [body.get(key) for key in LISTS] if isinstance(body, dict) else [body]
    messages: Any = next((one for one in given if one), None)
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, dict) and message.get("role") == "user":
            return _texts(message.get("content") or message.get("parts"))
    return messages if isinstance(messages, str) else ""


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(str(text) for text in texts if text)
