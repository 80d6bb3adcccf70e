"""Who may talk to the proxy, and who may see its pages.

Knows hosts, origins, tokens and cookies.  A web page that a browser of this machine shows must not
reach us: not by a name that is made to point here, nor by a form.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from trimtab.proxy.settings import LOOPBACK, ProxySettings

COOKIE = "trimtab"
HEADER = "x-trimtab-token"


class Access:
    """The checks, for one run of the proxy."""

    def __init__(self, settings: ProxySettings) -> None:
        self.settings = settings
        self._secret = secrets.token_bytes(32)

    def host_allowed(self, headers: Mapping[str, str]) -> bool:
        """Whether the request names this machine: only asked where nobody else reaches us.

        A page whose name was made to point at 127.0.0.1 sends its own name.
        """
        if not self.settings.local and not self.settings.hosts:
            return True
        host = _host(headers.get("host", ""))
        return host in LOOPBACK or host in self.settings.hosts

    def same_origin(self, headers: Mapping[str, str]) -> bool:
        """Whether a request that changes something comes from a page of ours, or from no page."""
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return False
        origin = headers.get("origin")
        return origin is None or _netloc(origin) == headers.get("host", "")

    def from_elsewhere(self, headers: Mapping[str, str]) -> bool:
        """Whether a page of another site sends this."""
        return not self.same_origin(headers)

    def known(self, headers: Mapping[str, str]) -> bool:
        """Whether the request carries the token, in a header or in our cookie."""
        token = self.settings.token
        if not token:
            return self.settings.local
        given = headers.get(HEADER) or headers.get("authorization", "").removeprefix("Bearer ")
        return _same(given, token) or _same(self._cookie(headers), self.cookie())

    def token_fits(self, given: str) -> bool:
        """Whether this is the token."""
        return bool(self.settings.token) and _same(given, self.settings.token)

    def cookie(self) -> str:
        """The cookie's value: proves the token without holding it."""
        return hmac.new(self._secret, self.settings.token.encode(), sha256).hexdigest()

    def form_token(self) -> str:
        """Stands in each form of ours; a page of another site cannot read it."""
        return hmac.new(self._secret, b"form", sha256).hexdigest()

    def form_fits(self, given: str) -> bool:
        """Whether a form is ours."""
        return _same(given, self.form_token())

    def _cookie(self, headers: Mapping[str, str]) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return found.value if found else ""


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


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
