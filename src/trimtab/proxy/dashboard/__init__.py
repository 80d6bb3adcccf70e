"""The proxy's own pages: dashboard, metrics, health; who may see them, and what their forms do."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qs, quote, unquote

from trimtab.errors import TrimtabError
from trimtab.proxy.access import COOKIE, Access
from trimtab.proxy.asgi import Body, HttpResponse, Receive, Scope
from trimtab.proxy.dashboard import views
from trimtab.proxy.dashboard.status import session_status
from trimtab.proxy.headers import plain
from trimtab.proxy.metrics import CONTENT_TYPE
from trimtab.proxy.request_recorder import ProxyRecords
from trimtab.proxy.tenants import Tenants
from trimtab.proxy.worker import in_worker

HOME = "/_trimtab/"
STATUS = f"{HOME}status"
_HEADERS = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
_MOST_FORM_BYTES = 10_000


@dataclass(frozen=True)
class DashboardData:
    """What the pages show and act on; ``draining``: whether the proxy is being stopped;
    ``recall``: whether models are offered the tool."""

    records: ProxyRecords
    access: Access
    tenants: Tenants
    draining: bool
    recall: bool = False


def check() -> None:
    """Raises MissingExtra where the pages could not be made."""
    views.page_templates()


async def serve(data: DashboardData, scope: Scope, receive: Receive, reply: HttpResponse) -> None:
    """Answer a request for one of them."""
    path, method, headers = scope["path"], scope["method"], plain(scope["headers"])
    if path in (f"{HOME}health", f"{HOME}ready"):
        ready = path.endswith("health") or not data.draining
        # Without its store it still serves: taking all replicas away would help nobody.
        state = "fails" if data.tenants.store_problem else "ok"
        said = {"ok": ready, "draining": data.draining, "store": state}
        await reply.json(200 if ready else 503, said)
        return
    if path == "/_trimtab":
        await reply.whole(308, [(b"location", HOME.encode())])
        return
    if method == "POST":
        await _post(data, path, headers, Body(receive, _MOST_FORM_BYTES), reply)
        return
    if method not in ("GET", "HEAD"):
        await _page(reply, 405, views.message("Not here", "Only GET and POST."))
        return
    query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
    if path == HOME and "token" in query:
        await _let_in(data, query["token"][-1], reply)
        return
    if not data.access.authenticated(headers):
        if data.access.gives_wrong_token(headers):
            await data.access.slow_down()
        if path in ("/metrics", STATUS):
            await reply.json(401, {"error": "send the token as x-trimtab-token"})
        else:
            await _page(reply, 401, views.sign_in(False))
        return
    if path == "/metrics":
        records = data.records
        store_up = not data.tenants.store_problem
        text = records.metrics.text(len(records.activity.sessions), store_up=store_up)
        await reply.whole(200, [(b"content-type", CONTENT_TYPE.encode())], text.encode())
        return
    if path == STATUS:
        name = query.get("session", [""])[-1]
        found = session_status(data.records.activity, name, recall=data.recall)
        await reply.json(200, found)
        return
    status, body = await _get(data, path, {k: v[-1] for k, v in query.items()}, headers)
    await _page(reply, status, body)


async def _page(reply: HttpResponse, status: int, body: bytes) -> None:
    policy = (
        f"default-src 'none'; style-src 'sha256-{views.style_hash()}'; form-action 'self'; "
        "frame-ancestors 'none'; base-uri 'none'"
    )
    await reply.whole(status, [*_HEADERS, (b"content-security-policy", policy.encode())], body)


async def _get(
    data: DashboardData, path: str, query: dict[str, str], headers: dict[str, str]
) -> tuple[int, bytes]:
    records, wanted = data.records, query.get("q", "")[:200]
    live = "q" not in query
    now = records.clock()
    steps = [unquote(step) for step in path.removeprefix(HOME).split("/")]
    if steps == [""]:
        url = f"http://{headers.get('host', '')}"
        problem = data.tenants.store_problem
        return 200, views.home(records.activity, now, url, wanted, live=live, problem=problem)
    session = (
        records.activity.sessions.get(steps[1]) if len(steps) > 1 and steps[0] == "s" else None
    )
    if session is None:
        return 404, views.message("Not found", "No session has this name, or it was forgotten.")
    if len(steps) == 2:
        problem = data.tenants.store_problem
        return 200, views.session(session, now, wanted, live=live, problem=problem)
    found = session.edits.get(steps[3]) if len(steps) == 4 and steps[2] == "e" else None
    if found is None:
        return 404, views.message("Not found", "This session has no such edit.")
    texts = await in_worker(lambda: data.tenants.texts(session, found.handle))
    return 200, views.edit(
        session, found, *texts, token=data.access.form_token(),
        said=_SAID.get(query.get("done", ""), ""), actions=_ACTIONS, step=query.get("step", ""),
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


async def _post(
    data: DashboardData, path: str, headers: dict[str, str], body: Body, reply: HttpResponse
) -> None:
    if not data.access.same_origin(headers):
        await _page(reply, 403, views.message("Refused", "This form is on another site's page."))
        return
    sent = await body.whole()
    form = {k: v[-1] for k, v in parse_qs((sent or b"").decode("utf-8", "replace")).items()}
    if path == f"{HOME}token":
        await _let_in(data, form.get("token", ""), reply)
        return
    if not data.access.authenticated(headers):
        await _page(reply, 401, views.sign_in(False))
        return
    if not data.access.form_fits(form.get("token", "")):
        await _page(reply, 403, views.message("Refused", "This form is old: load the page again."))
        return
    await _act(data, path.removeprefix(HOME), form, reply)


async def _let_in(data: DashboardData, given: str, reply: HttpResponse) -> None:
    """Give whoever has the token our cookie, and an address without it."""
    if not data.access.token_fits(given):
        await data.access.slow_down()
        await _page(reply, 401, views.sign_in(True))
        return
    cookie = f"{COOKIE}={data.access.cookie()}; Path={HOME}; HttpOnly; SameSite=Strict"
    await reply.whole(303, [(b"location", HOME.encode()), (b"set-cookie", cookie.encode())])


async def _act(data: DashboardData, name: str, form: dict[str, str], reply: HttpResponse) -> None:
    session = data.records.activity.sessions.get(form.get("session", ""))
    found = session.edits.get(form.get("handle", "")) if session else None
    if session is None or found is None or name not in _SAID:
        await _page(reply, 404, views.message("Not found", "This session has no such edit."))
        return
    try:
        await in_worker(lambda: data.tenants.act(name, session, found))
    except TrimtabError as error:
        await _page(reply, 409, views.message("Not done", str(error)))
        return
    to = f"{HOME}s/{session.id}/e/{quote(found.handle, safe='')}?done={name}"
    await reply.whole(303, [(b"location", to.encode())])
