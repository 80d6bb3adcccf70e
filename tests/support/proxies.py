"""A proxy before a provider, for tests.

Knows how both are started.  Asserts nothing.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import trimtab
from trimtab.proxy import Proxy, ProxySettings, Server, Upstream

_tokens: dict[int, str] = {}
"""By port."""


@contextmanager
def proxied(url: str, *, window: int | None = None, **settings: Any) -> Iterator[Server]:
    """A proxy on a free port whose only upstream is ``url``."""
    given = dict(settings)
    fit = trimtab.Settings(window=window) | given.pop("fit", trimtab.Settings())
    if "upstreams" not in given:
        given["upstreams"] = (Upstream("provider", url),)
    given = {"listen": ":0", "drain_seconds": 2.0, **given}
    server = Server(Proxy(ProxySettings(fit=fit, **given))).__enter__()
    _tokens[server.port] = server.proxy.access.token
    try:
        yield server
    finally:
        server.stop()  # its thread ends by itself: nobody waits for it


def settled(server: Server) -> Server:
    """The server when all that was answered is told to its records."""
    for _ in range(500):
        if not server.proxy.addons.metrics.in_flight:
            break
        time.sleep(0.01)
    return server


def ask(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
    *,
    bring_token: bool = True,
) -> tuple[int, dict[str, str], bytes]:
    """One plain HTTP request: status, headers, body.

    It brings the token of a proxy that was started here, where its own pages are asked for.
    """
    parts = urlsplit(url)
    token = _tokens.get(parts.port or 0)
    if token and bring_token and path.startswith(("/_trimtab", "/metrics")):
        headers = {"x-trimtab-token": token, **(headers or {})}
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    try:
        connection.request(method, parts.path + path, body=body, headers=headers or {})
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return response.status, found, response.read()
    finally:
        connection.close()
