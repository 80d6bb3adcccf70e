"""The four ways in which a program sends a conversation through the library.

A door takes a body and returns what reached the provider, whether it is the very thing that was
given, and how what was taken out is read again.  The provider always answers: what it would have
refused is for the judge.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2
import openai

import trimtab
from soak.newest.formats import answer_of, url_of
from soak.newest.talk import Talk
from soak.newest.upstream import Upstream
from trimtab.proxy import Proxy, ProxySettings, Server
from trimtab.proxy import Upstream as ProxyUpstream

NAMES = ("fit", "Session", "wrap", "proxy")


@dataclass
class Sent:
    """``body``: what reached the provider.  ``same``: it is the object, or has the bytes, that
    the client gave.  ``recalled``: the originals that can be read again; None: not asked."""

    body: dict[str, Any]
    same: bool
    recalled: Callable[[], list[str]] | None = None
    problem: str = ""


class CannotSend(Exception):
    """The library refused the request, as it may where the window is too small."""


Send = Callable[[dict[str, Any]], Sent]


@contextmanager
def opened(name: str, talk: Talk, window: int, proxies: Mapping[int, Server]) -> Iterator[Send]:
    """A door for one conversation."""
    if name == "proxy":
        with _proxy(talk, proxies[window]) as send:
            yield send
    elif name == "wrap":
        with _wrap(talk, window) as send:
            yield send
    else:
        yield _library(talk, window, trimtab.Session() if name == "Session" else None)


def _library(talk: Talk, window: int, session: trimtab.Session | None) -> Send:
    keywords: dict[str, Any] = {"window": window}
    if "model" not in talk.head:
        keywords["model"] = talk.model

    in_bytes = len(talk.turns) % 2 == 1

    def send(body: dict[str, Any]) -> Sent:
        given = json.dumps(body, ensure_ascii=False).encode() if in_bytes else body
        try:
            fitted = (session.fit if session else trimtab.fit)(given, **keywords)
        except trimtab.CannotFit as error:
            raise CannotSend(str(error)) from error
        sent = json.loads(fitted.request) if in_bytes else fitted.request

        def recalled() -> list[str]:
            return [(session or fitted).recall(handle) for handle in _handles(fitted)]

        return Sent(sent, fitted.request is given, recalled)

    return send


def _handles(fitted: trimtab.Fitted) -> list[str]:
    handles = [edit.handle for edit in fitted.report.edits]
    handles += [handle for repair in fitted.report.repairs for handle in repair.handles]
    return [handle for handle in handles if handle]


class _Recorded(trimtab.Session):
    """A session that keeps the last result: a wrapped client shows none, and sends a request that
    cannot fit as it came."""

    last: trimtab.Fitted
    too_long: trimtab.CannotFit | None = None

    def fit(self, request: Any, **keywords: Any) -> trimtab.Fitted:
        self.too_long = None
        try:
            self.last = super().fit(request, **keywords)
        except trimtab.CannotFit as error:
            self.too_long = error
            raise
        return self.last


@contextmanager
def _wrap(talk: Talk, window: int) -> Iterator[Send]:
    """The provider's SDK where it takes any body, else an HTTP client; a fresh session."""
    seen: list[bytes] = []

    def provider(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.content)
        return httpx2.Response(200, json=answer_of(talk.format))

    session = _Recorded(window=window, store="memory:")
    http = httpx2.Client(transport=httpx2.MockTransport(provider))
    url = url_of(talk)
    with http:
        post = _poster(talk, http, session, url)

        def send(body: dict[str, Any]) -> Sent:
            given = json.dumps(body, ensure_ascii=False).encode()
            seen.clear()
            try:
                post(body, given)
            except trimtab.CannotFit as error:
                raise CannotSend(str(error)) from error
            except (openai.OpenAIError, anthropic.AnthropicError, httpx2.HTTPError) as error:
                cause = error.__cause__ or error
                if isinstance(cause, trimtab.TrimtabError):
                    raise CannotSend(str(cause)) from error
                raise
            if session.too_long is not None:
                raise CannotSend(str(session.too_long))
            sent = json.loads(seen[-1])
            same = seen[-1] == given if type(http) is httpx2.Client and _raw(talk) else sent == body

            def recalled() -> list[str]:
                return [session.recall(handle) for handle in _handles(session.last)]

            again = "" if len(seen) == 1 else f"{len(seen)} sends though each was answered"
            return Sent(sent, same, recalled, again)

        yield send


def _raw(talk: Talk) -> bool:
    """Whether this conversation goes through a bare HTTP client, whose bytes are compared."""
    sdk = talk.format in ("openai-chat", "openai-responses", "anthropic")
    return not sdk or len(talk.turns) % 2 == 0


def _poster(talk: Talk, http: httpx2.Client, session: Any, url: str) -> Callable[[Any, bytes], Any]:
    headers = {"content-type": "application/json", **talk.headers}
    if _raw(talk):
        client = trimtab.wrap(http, session=session)
        return lambda body, data: client.post(url, content=data, headers=headers)
    base, _, path = url.rpartition("/v1/" if "/v1/" in url else "/chat/")
    if "/v1/" not in url:
        path = f"chat/{path}"
        root = base
    else:
        root = f"{base}/v1"
    if talk.format == "anthropic":
        claude = trimtab.wrap(
            anthropic.Anthropic(base_url=base, api_key="x", max_retries=0, http_client=http),
            session=session,
        )
        return lambda body, data: claude.post(
            f"/v1/{path}", body=body, cast_to=object, options={"headers": talk.headers}
        )
    other = trimtab.wrap(
        openai.OpenAI(base_url=root, api_key="x", max_retries=0, http_client=http), session=session
    )
    return lambda body, data: other.post(f"/{path}", body=body, cast_to=object)


# --- the proxy ---


@contextmanager
def proxies_before(upstream: Upstream, windows: tuple[int, ...]) -> Iterator[dict[int, Server]]:
    """A proxy for each window, all before one provider."""
    servers = {
        window: Server(
            Proxy(
                ProxySettings(
                    fit=trimtab.Settings(window=window), listen=":0", drain_seconds=0.5,
                    upstreams=(ProxyUpstream("provider", upstream.url),),
                )
            )
        ).__enter__()
        for window in windows
    }  # fmt: skip
    upstreams.update({server.port: upstream for server in servers.values()})
    try:
        yield servers
    finally:
        for server in servers.values():
            server.stop()


upstreams: dict[int, Upstream] = {}
"""The provider behind the proxy of a port."""


@contextmanager
def _proxy(talk: Talk, server: Server) -> Iterator[Send]:
    upstream = upstreams[server.port]
    parts = urlsplit(url_of(talk, f"http://127.0.0.1:{server.port}"))
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    headers = {"content-type": "application/json", "authorization": "Bearer x", **talk.headers}

    def send(body: dict[str, Any]) -> Sent:
        data = json.dumps(body, ensure_ascii=False).encode()
        upstream.forget()
        connection.request("POST", parts.path, data, headers)
        response = connection.getresponse()
        text = response.read()
        if response.status != 200:
            if b"cannot" in text.lower() or b"smallest" in text.lower() or b"fit" in text.lower():
                raise CannotSend(text.decode(errors="replace"))
            raise RuntimeError(f"{response.status}: {text[:300]!r}")
        again = "" if len(upstream.bodies) == 1 else f"{len(upstream.bodies)} sends"
        return Sent(json.loads(upstream.bodies[-1]), upstream.bodies[-1] == data, None, again)

    try:
        yield send
    finally:
        connection.close()
