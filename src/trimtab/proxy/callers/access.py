"""Decides who may send requests and who may see the pages: hosts, origins, tokens and cookies.

A web page open in a browser on this machine must not reach the proxy, neither through a host name
that resolves to loopback (DNS rebinding) nor by submitting a form.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections.abc import Mapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from urllib.parse import unquote, unquote_plus, urlsplit

from trimtab.proxy.config.settings import LOOPBACK, ProxySettings
from trimtab.proxy.http.headers import Raw
from trimtab.retry import credentials

COOKIE = "trimtab"
HEADER = "x-trimtab-token"
PREFIX = "/token/"
"""``/token/TOKEN/…``: for clients that can set a base URL but no header."""
_SLOWER_SECONDS, _SLOWEST_SECONDS = 0.2, 5.0
"""Seconds added to the answer's delay by each wrong token, and the longest delay."""
_FORGIVEN_SECONDS = 60.0
pause = asyncio.sleep


class Access:
    """The access checks of one run of the proxy."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self._made = secrets.token_urlsafe(24)
        self._secret = secrets.token_bytes(32)
        self._wrong, self._last_wrong = 0, 0.0

    @property
    def token(self) -> str:
        """The configured token, or one generated at start.

        There is always one: other users of this machine can reach loopback, too.
        """
        return self.settings.token or self._made

    def host_allowed(self, headers: Mapping[str, str]) -> bool:
        """Whether the ``Host`` header names this machine; checked on loopback only.

        A page whose host name was made to resolve to 127.0.0.1 sends its own name.
        """
        if not self.settings.local and not self.settings.hosts:
            return True
        host = _host(headers.get("host", ""))
        return host in LOOPBACK or host in self.settings.hosts

    def same_origin(self, headers: Mapping[str, str]) -> bool:
        """Whether a request that changes something comes from one of our pages, or from no page."""
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        origin = headers.get("origin")
        return origin is None or _netloc(origin) == headers.get("host", "")

    def authenticated(self, headers: Mapping[str, str]) -> bool:
        """Whether the request carries the token, in a header or in our cookie."""
        fits = any(map(self.token_fits, _tokens_in(headers)))
        return fits or _same(self._cookie(headers), self.cookie())

    def may_send(self, headers: Mapping[str, str]) -> bool:
        """Whether the request carries the token or the clients' token: both let it be forwarded."""
        return self.authenticated(headers) or any(map(self.lets_send, _tokens_in(headers)))

    def lets_send(self, token: str) -> bool:
        """Whether this is the token, or the one for clients."""
        clients = self.settings.client_token
        return self.token_fits(token) or bool(clients and _same(token, clients))

    def in_path(self, path: str) -> tuple[str | None, str]:
        """The token at the beginning of a path (None without one), and the rest of the path."""
        if not path.startswith(PREFIX):
            return None, path
        token, slash, rest = path.removeprefix(PREFIX).partition("/")
        return token, slash + rest

    def gives_wrong_token(self, headers: Mapping[str, str]) -> bool:
        """Whether the request carries something where a token may stand, and none is right."""
        token = any(_tokens_in(headers)) or bool(self._cookie(headers))
        return token and not self.may_send(headers)

    async def slow_down(self) -> None:
        """Wait after a wrong token; the delay grows with their number."""
        now = time.monotonic()
        if now - self._last_wrong > _FORGIVEN_SECONDS:
            self._wrong = 0
        self._wrong, self._last_wrong = self._wrong + 1, now
        await pause(min(self._wrong * _SLOWER_SECONDS, _SLOWEST_SECONDS))

    def without_token(self, raw: Raw) -> Raw:
        """The headers without our tokens, which must not reach an upstream."""
        ours = [one.encode() for one in (*self._tokens(), self.cookie())]
        return [(name, value) for name, value in raw if not any(one in value for one in ours)]

    def query_without_token(self, query: str) -> str:
        """The query without our tokens."""
        return "&".join(part for part in query.split("&") if not self._has_token(part))

    def has_token_within(self, path: str) -> bool:
        """Whether a token stands in a path where none is looked for, behind ``/to/NAME`` say."""
        return any(one in self._tokens() for one in unquote(path).split("/"))

    def _has_token(self, part: str) -> bool:
        spellings = (part, unquote_plus(part))
        return any(one in text for one in self._tokens() for text in spellings)

    def _tokens(self) -> list[str]:
        return [one for one in (self.token, self.settings.client_token) if one]

    def token_fits(self, token: str) -> bool:
        return _same(token, self.token)

    def cookie(self) -> str:
        """The cookie's value; it proves knowledge of the token without containing it."""
        return hmac.new(self._secret, self.token.encode(), sha256).hexdigest()

    def form_token(self) -> str:
        """The hidden field of our forms against cross-site requests: other sites cannot read it."""
        return hmac.new(self._secret, b"form", sha256).hexdigest()

    def form_fits(self, token: str) -> bool:
        """Whether a form is ours."""
        return _same(token, self.form_token())

    def _cookie(self, headers: Mapping[str, str]) -> str:
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return cookie.value if cookie else ""


def _tokens_in(headers: Mapping[str, str]) -> list[str]:
    """What the headers that may carry a token hold."""
    values = (headers.get(name, "") for name in (HEADER, *credentials.HEADERS))
    return [credentials.bare_key(value) for value in values]


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _host(value: str) -> str:
    if "@" in value:
        return ""
    try:
        return (urlsplit(f"//{value}").hostname or "").lower()
    except ValueError:
        return ""


def _same(token: str, wanted: str) -> bool:
    return hmac.compare_digest(token.encode("utf-8", "replace"), wanted.encode())
