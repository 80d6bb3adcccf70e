"""Which requests are forwarded, and whereto: what is wrong with a request is found before any of
its body is read."""

from __future__ import annotations

from collections.abc import Mapping

from trimtab.proxy.callers.access import HEADER, Access
from trimtab.proxy.config.settings import ProxySettings
from trimtab.proxy.config.upstreams import choose
from trimtab.proxy.http.asgi import Declined, Scope
from trimtab.proxy.http.client_request import ClientRequest
from trimtab.proxy.http.headers import what_is_wrong
from trimtab.proxy.http.routes import climbs, route

_OR_IN_PATH = "or in the path, /token/TOKEN/…"


async def admitted(
    scope: Scope, headers: Mapping[str, str], access: Access, settings: ProxySettings
) -> ClientRequest:
    """The request of an ASGI scope.  Raises Declined; after a wrong token it waits first."""
    has_token, raw_path = await let_in(scope, headers, access, settings)
    if climbs(raw_path):
        raise Declined(400, "dot segments in the path: send the path itself")
    if access.has_token_within(raw_path):
        raise Declined(400, "the proxy's token stands within the path: begin the path with "
                            "/token/TOKEN/")  # fmt: skip
    if problem := what_is_wrong(scope["headers"], headers):
        raise Declined(400, problem, closes=True)
    chosen = choose(settings.upstreams, raw_path, headers)
    if chosen is None or not raw_path.startswith("/"):
        pages = "; the dashboard is at /_trimtab/" if raw_path == "/" else ""
        raise Declined(404, f"no upstream is configured for this path{pages}")
    upstream, path = chosen
    if upstream.sign and not (has_token and access.same_origin(headers)):
        if access.gives_wrong_token(headers):
            await access.slow_down()
        raise Declined(403, f"requests to {upstream.name} are signed by the proxy: send its token "
                            f"as {HEADER}, {_OR_IN_PATH}")  # fmt: skip
    method, query = scope["method"], scope.get("query_string", b"").decode("latin-1")
    query = access.query_without_token(query)
    return ClientRequest(
        method, path, query, access.without_token(scope["headers"]), upstream,
        route(method, path, query), has_token=has_token,
    )  # fmt: skip


async def let_in(
    scope: Scope, headers: Mapping[str, str], access: Access, settings: ProxySettings
) -> tuple[bool, str]:
    """(whether the request brings the token, its path without it).  Raises Declined where it may
    not be sent; after a wrong token it waits first."""
    in_path, raw_path = access.in_path(raw_path_of(scope))
    has_token = access.may_send(headers) if in_path is None else access.lets_send(in_path)
    if not has_token and (in_path is not None or settings.asks_for_token):
        if in_path is not None or access.gives_wrong_token(headers):
            await access.slow_down()
        raise Declined(401, f"send the proxy's token as {HEADER}, {_OR_IN_PATH}")
    return has_token, raw_path


def raw_path_of(scope: Scope) -> str:
    """The path of an ASGI scope, not decoded."""
    raw_path: bytes = scope.get("raw_path", b"")
    return raw_path.decode("latin-1") or str(scope["path"])
