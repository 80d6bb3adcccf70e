"""Pages of the proxy's own: which address shows what, and who may see it.

Knows addresses, the token and the protection of forms.  Does not know mark-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, unquote

from trimtab.errors import TrimtabError
from trimtab.proxy.access import COOKIE
from trimtab.proxy.asgi import Body, Receive, Reply, Scope
from trimtab.proxy.dashboard import views
from trimtab.proxy.dashboard.html import STYLE_HASH
from trimtab.proxy.headers import plain

if TYPE_CHECKING:
    from trimtab.proxy.app import Proxy

HOME = "/_trimtab/"
_POLICY = (
    f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
_HEADERS = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_MOST_FORM_BYTES = 10_000


async def serve(proxy: Proxy, scope: Scope, receive: Receive, reply: Reply) -> None:
    """Answer a request for one of them."""
    path, method, headers = scope["path"], scope["method"], plain(scope["headers"])
    if path in (f"{HOME}health", f"{HOME}ready"):
        ready = path.endswith("health") or not proxy.draining
        await reply.json(200 if ready else 503, {"ok": ready, "draining": proxy.draining})
        return
    if path == "/_trimtab":
        await reply.whole(308, [(b"location", HOME.encode())])
        return
    if method == "POST":
        await _post(proxy, path, headers, Body(receive, _MOST_FORM_BYTES), reply)
        return
    if method not in ("GET", "HEAD"):
        await _page(reply, 405, views.message("Not here", "Only GET and POST."))
        return
    if not proxy.access.known(headers):
        if path == "/metrics":
            await reply.json(401, {"error": "send the token as x-trimtab-token"})
        else:
            await _page(reply, 401, views.sign_in(False))
        return
    if path == "/metrics":
        books = proxy.books
        text = books.metrics.text(books.ledger.totals, len(books.ledger.sessions))
        kind = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
        await reply.whole(200, [kind], text.encode())
        return
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    status, body = _shown(proxy, path, {k: v[-1] for k, v in query.items()}, headers)
    await _page(reply, status, body)


async def _page(reply: Reply, status: int, body: bytes) -> None:
    await reply.whole(status, _HEADERS, body)


def _shown(
    proxy: Proxy, path: str, query: dict[str, str], headers: dict[str, str]
) -> tuple[int, bytes]:
    books, wanted = proxy.books, query.get("q", "")[:200]
    live = "q" not in query
    now = books.clock()
    steps = [unquote(step) for step in path.removeprefix(HOME).split("/")]
    if steps == [""]:
        url = f"http://{headers.get('host', '')}"
        return 200, views.home(books.ledger, now, url, wanted, live=live)
    session = books.ledger.sessions.get(steps[1]) if len(steps) > 1 and steps[0] == "s" else None
    if session is None:
        return 404, views.message("Not found", "No session has this name, or it was forgotten.")
    if len(steps) == 2:
        return 200, views.session(session, now, wanted, live=live)
    found = session.edits.get(steps[3]) if len(steps) == 4 and steps[2] == "e" else None
    if found is None:
        return 404, views.message("Not found", "This session has no such edit.")
    texts = proxy.tenants.texts(session, found.handle)
    return 200, views.edit(
        session, found, *texts, token=proxy.access.form_token(),
        said=_SAID.get(query.get("done", ""), ""), actions=_ACTIONS,
    )  # fmt: skip


_ACTIONS = (
    ("undo", "Undo", "send the original from the next turn on, and keep it; costs a cache break"),
    ("pin", "Pin", "reduce it no further"),
    ("unpin", "Let go", "it may be reduced again"),
)
_SAID = {
    "undo": "Undone: the original is sent from the next turn on, as long as it fits.",
    "pin": "Pinned: it is reduced no further.",
    "unpin": "Let go: it may be reduced again.",
}


async def _post(proxy: Proxy, path: str, headers: dict[str, str], body: Body, reply: Reply) -> None:
    if not proxy.access.same_origin(headers):
        await _page(reply, 403, views.message("Refused", "This form is on another site's page."))
        return
    data = await body.whole()
    form = {k: v[-1] for k, v in parse_qs((data or b"").decode("utf-8", "replace")).items()}
    if path == f"{HOME}token":
        if not proxy.access.token_fits(form.get("token", "")):
            await _page(reply, 401, views.sign_in(True))
            return
        cookie = f"{COOKIE}={proxy.access.cookie()}; Path={HOME}; HttpOnly; SameSite=Strict"
        await reply.whole(303, [(b"location", HOME.encode()), (b"set-cookie", cookie.encode())])
        return
    if not proxy.access.known(headers):
        await _page(reply, 401, views.sign_in(False))
        return
    if not proxy.access.form_fits(form.get("token", "")):
        await _page(reply, 403, views.message("Refused", "This form is old: load the page again."))
        return
    await _act(proxy, path.removeprefix(HOME), form, reply)


async def _act(proxy: Proxy, name: str, form: dict[str, str], reply: Reply) -> None:
    session = proxy.books.ledger.sessions.get(form.get("session", ""))
    found = session.edits.get(form.get("handle", "")) if session else None
    if session is None or found is None or name not in _SAID:
        await _page(reply, 404, views.message("Not found", "This session has no such edit."))
        return
    try:
        proxy.tenants.act(name, session, found)
    except TrimtabError as error:
        await _page(reply, 409, views.message("Not done", str(error)))
        return
    to = f"{HOME}s/{session.id}/e/{quote(found.handle, safe='')}?done={name}"
    await reply.whole(303, [(b"location", to.encode())])
