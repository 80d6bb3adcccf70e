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

from trimtab.proxy.headers import fingerprint
from trimtab.proxy.settings import ProxySettings
from trimtab.proxy.upstreams import Upstream
from trimtab.session import Session

MOST = 200
"""Sessions in memory: the least recently used goes first; a store keeps what it knew."""
ONE = "local"


class Tenants:
    """Sessions by upstream and tenant."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self._sessions: OrderedDict[tuple[str, str], Session] = OrderedDict()

    def tenant(self, headers: Mapping[str, str], query: str) -> str:
        """Who sends this: the one user, or a digest of the credential."""
        if self.settings.one_tenant:
            return ONE
        return fingerprint(headers, query) or "nobody"

    def session(self, upstream: Upstream, tenant: str) -> Session:
        """The session that fits this tenant's requests to this upstream."""
        key = (upstream.name, tenant)
        found = self._sessions.pop(key, None)
        if found is None:
            keywords = dict(self.settings.fit)
            if upstream.window is not None:
                keywords["window"] = upstream.window
            found = Session(**keywords)
        self._sessions[key] = found
        while len(self._sessions) > MOST:
            self._sessions.popitem(last=False)
        return found


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
