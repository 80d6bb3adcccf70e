"""Whose conversations are whose: a session of the library for each upstream and tenant.

Knows settings and credentials' fingerprints.  Does not know HTTP.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from trimtab import stores
from trimtab.errors import TrimtabError, UnknownHandle
from trimtab.proxy.headers import fingerprint
from trimtab.proxy.ledger import Edit
from trimtab.proxy.ledger import Session as Known
from trimtab.proxy.recall import StoredExchanges
from trimtab.proxy.settings import ProxySettings
from trimtab.proxy.upstreams import Upstream
from trimtab.session import Session
from trimtab.stores import Store

MOST = 200
"""Sessions in memory: the least recently used goes first; a store keeps what it knew."""
ONE = "local"


class Tenants:
    """Sessions by upstream and tenant."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self._opened: Store | None = None
        self._sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()

    def tenant(self, headers: Mapping[str, str], query: str) -> str:
        """Who sends this: the one user, or a digest of the credential."""
        if self.settings.one_tenant:
            return ONE
        return fingerprint(headers, query) or "nobody"

    def _store(self) -> Store:
        if self._opened is None:
            self._opened = stores.open_store(self.settings.store or "memory:")
        return self._opened

    def session(self, upstream: Upstream, tenant: str) -> Session:
        """The session that fits this tenant's requests to this upstream."""
        key = (upstream.name, tenant)
        found = self._sessions.pop(key, None)
        if found is None:
            keywords = dict(self.settings.fit)
            if upstream.window is not None:
                keywords["window"] = upstream.window
            name = f"{upstream.name}/{tenant}"
            found = Session(store=self._store(), tenant=name, **keywords)
        self._sessions[key] = found
        while len(self._sessions) > MOST:
            self._sessions.popitem(last=False)
        return found

    def exchanges(self, upstream: Upstream, tenant: str) -> StoredExchanges | None:
        """Where exchanges that a client never saw outlast the process; None in memory."""
        if not self.settings.store or self.settings.store.startswith("memory:"):
            return None
        return StoredExchanges(stores.open(self._store(), f"{upstream.name}/{tenant}"))

    # --- what the pages ask for ---------------------------------------------------------------

    def _of(self, known: Known) -> Session | None:
        return self._sessions.get((known.upstream, known.tenant))

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


_HISTORY = re.compile(r'(?<!\\)"(?:messages|input|contents)"\s*:\s*\[\s*')
_NEXT = re.compile(r"\s*,\s*")


def conversation(tenant: str, format: str, hint: str, body: bytes) -> str:
    """A name for the conversation that a body belongs to: whose it is, what its client calls it,
    and what its user said first.

    Titles, classifiers and subagents share the client's name, but not the first words.
    """
    parts = (tenant, format, hint, first_words(body))
    data = "\0".join(parts).encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=6).hexdigest()


def first_words(body: bytes) -> str:
    """The text of the first message of a user; "" where there is none.

    Reads no further than that message.
    """
    text = body.decode("utf-8", "surrogateescape")
    found = _HISTORY.search(text)
    decoder, at = json.JSONDecoder(), found.end() if found else -1
    while at >= 0:
        try:
            message, at = decoder.raw_decode(text, at)
        except ValueError:
            return ""
        if isinstance(message, dict) and message.get("role") == "user":
            return _texts(message.get("content") or message.get("parts"))
        more = _NEXT.match(text, at)
        at = more.end() if more else -1
    return ""


def _texts(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(str(text) for text in texts if text)
