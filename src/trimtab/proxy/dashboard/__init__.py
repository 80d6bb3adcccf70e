"""Serves the proxy's own pages: dashboard, metrics, health; checks access and handles their
forms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote

from trimtab.errors import TrimtabError
from trimtab.proxy.callers.access import COOKIE, Access
from trimtab.proxy.callers.tenants import Tenants
from trimtab.proxy.dashboard import exports, keep_view, request_views, spend_view, views
from trimtab.proxy.dashboard.page import HOME, message, page_templates, policy, sign_in
from trimtab.proxy.dashboard.status import session_status
from trimtab.proxy.http.asgi import Body, HttpResponse, Receive, Scope
from trimtab.proxy.http.headers import plain
from trimtab.proxy.http.worker import in_worker
from trimtab.proxy.records.metrics import CONTENT_TYPE
from trimtab.proxy.records.request_recorder import ProxyRecords
from trimtab.proxy.records.session_record import SessionRecord

STATUS = f"{HOME}status"
HTML, JSON = "text/html; charset=utf-8", "application/json"
TEXT = "text/plain; charset=utf-8"
_HEADERS = [
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
    """What the pages show and act on.  ``draining``: whether the proxy is stopping; ``recall``:
    whether models are offered the recall tool."""

    records: ProxyRecords
    access: Access
    tenants: Tenants
    draining: bool
    recall: bool = False


def check() -> None:
    """Raises MissingExtra if a package that the pages need is not installed."""
    page_templates()


async def serve(data: DashboardData, scope: Scope, receive: Receive, reply: HttpResponse) -> None:
    """Answer a request for one of the pages."""
    path, method, headers = scope["path"], scope["method"], plain(scope["headers"])
    if path in (f"{HOME}health", f"{HOME}ready"):
        ready = path.endswith("health") or not data.draining
        # It still serves when its store fails: a shared store would make all replicas unready.
        state = "fails" if data.tenants.store_problem else "ok"
        health = {"ok": ready, "draining": data.draining, "store": state}
        await reply.json(200 if ready else 503, health)
        return
    if path == "/_trimtab":
        await reply.whole(308, [(b"location", HOME.encode())])
        return
    if method == "POST":
        await _post(data, path, headers, Body(receive, _MOST_FORM_BYTES), reply)
        return
    if method not in ("GET", "HEAD"):
        await _page(reply, 405, message("Not here", "Only GET and POST."))
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
            await _page(reply, 401, sign_in(False))
        return
    if path == "/metrics":
        records = data.records
        store_up = not data.tenants.store_problem
        records.metrics.holds(len(records.activity.sessions), store_up=store_up)
        text = records.metrics.text()
        await reply.whole(200, [(b"content-type", CONTENT_TYPE.encode())], text.encode())
        return
    if path == STATUS:
        name = query.get("session", [""])[-1]
        status = session_status(data.records.activity, name, recall=data.recall)
        await reply.json(200, status)
        return
    shown = await _get(data, path, {k: v[-1] for k, v in query.items()}, headers)
    await _sent(reply, shown)


async def _page(reply: HttpResponse, status: int, body: bytes) -> None:
    await _sent(reply, Shown(status, body))


async def _sent(reply: HttpResponse, shown: Shown) -> None:
    headers = [(b"content-type", shown.kind.encode()), *_HEADERS]
    headers.append((b"content-security-policy", policy().encode()))
    await reply.whole(shown.status, headers, shown.body)


class Shown(NamedTuple):
    """An answer to a GET."""

    status: int
    body: bytes
    kind: str = HTML


async def _get(
    data: DashboardData, path: str, query: dict[str, str], headers: dict[str, str]
) -> Shown:
    records, wanted = data.records, query.get("q", "")[:200]
    now, activity = records.clock(), records.activity
    problem = data.tenants.store_problem
    match [unquote(step) for step in path.removeprefix(HOME).split("/")]:
        case [""]:
            url = f"http://{headers.get('host', '')}"
            return Shown(
                200, views.home(activity, records.requests, now, url, wanted, problem=problem)
            )
        case ["sessions.json"]:
            return Shown(200, exports.sessions(activity.sessions.values()), JSON)
        case ["requests"]:
            body = request_views.requests(records.requests, activity.sessions, now, wanted)
            return Shown(200, body)
        case ["requests.json"]:
            return Shown(200, exports.requests(records.requests), JSON)
        case ["spend" | "spend.json" as name]:
            by = query.get("by", "day")
            by = by if by in spend_view.GROUPS else "day"
            spend = await in_worker(lambda: spend_view.spend(records.ledger, by))
            if name == "spend.json":
                return Shown(200, exports.as_json(spend.as_dict()), JSON)
            summarizes = data.tenants.settings.fit.summarizer is not None
            return Shown(200, spend_view.spend_page(
                spend, by, activity, activity.sessions, summarizes=summarizes
            ))  # fmt: skip
        case ["r", number, *rest] if number.isdecimal() and len(number) < 10 and len(rest) < 2:
            return await _request(data, int(number), rest)
        case ["s", id, *rest]:
            return await _session(data, id, rest, query)
    return Shown(404, message("Not found", "There is no such page."))


async def _request(data: DashboardData, number: int, rest: list[str]) -> Shown:
    records = data.records
    request = records.requests.get(number)
    if request is None:
        return Shown(404, message("Not found", "This request is not among the last ones."))
    if rest:
        texts = await in_worker(lambda: request_views.texts(request))
        if rest[0] not in texts:
            return Shown(404, message("Not found", "This text is not kept."))
        return Shown(200, texts[rest[0]].encode("utf-8", "replace"), TEXT)
    session, now = records.activity.sessions.get(request.session), records.clock()
    keeps = records.requests.keeps_texts
    return Shown(200, await in_worker(
        lambda: request_views.request(request, session, now, keeps_texts=keeps)
    ))  # fmt: skip


async def _session(data: DashboardData, id: str, rest: list[str], query: dict[str, str]) -> Shown:
    records = data.records
    session = records.activity.sessions.get(id.removesuffix(".json"))
    if session is None:
        about = "No session has this name, or it was forgotten."
        return Shown(404, message("Not found", about))
    await _filled(data, session)
    now, problem = records.clock(), data.tenants.store_problem
    if not rest and id.endswith(".json"):
        return Shown(200, exports.session(session), JSON)
    if not rest:
        return Shown(200, views.session(session, now, query.get("q", "")[:200], problem))
    if rest == ["keep"]:
        return Shown(200, await _keep(data, session, query))
    edit = session.edits.get(rest[1]) if len(rest) == 2 and rest[0] == "e" else None
    if edit is None:
        return Shown(404, message("Not found", "This session has no such edit."))
    texts = await in_worker(lambda: data.tenants.texts(session, edit.handle))
    said, token = _SAID.get(query.get("done", ""), ""), data.access.form_token()
    step = query.get("step", "")
    return Shown(200, await in_worker(
        lambda: views.edit(session, edit, *texts, token=token, said=said, step=step)
    ))  # fmt: skip


async def _keep(data: DashboardData, session: SessionRecord, query: dict[str, str]) -> bytes:
    """The page about what stays."""
    newest = data.records.requests.newest(session.id)

    def show() -> bytes:
        body = request_views.texts(newest).get("came", "") if newest else ""
        preview = data.tenants.preview(session, body.encode()) if body else None
        pins = data.tenants.pins(session)
        said, wanted = _SAID.get(query.get("done", ""), ""), query.get("q", "")[:200]
        found = data.tenants.look_up(session, wanted) if session.edits else ""
        token = data.access.form_token()
        return keep_view.keep(session, pins, preview, found, token=token, said=said, wanted=wanted)

    return await in_worker(show)


async def _filled(data: DashboardData, session: SessionRecord) -> None:
    """Load a session's turns and edits of earlier runs."""
    if not session.loaded:
        earlier = await in_worker(lambda: data.records.history.parts(session.id))
        data.records.history.fill(session, earlier)


_SAID = {
    "undo": "Undone: the original is sent from the next turn on, as long as it fits.",
    "pin": "Pinned: it is reduced no further.",
    "unpin": "Unpinned: it may be reduced again.",
    "keep": "Pinned: it is whole from the next turn on, as long as it fits.",
    "release": "Unpinned: the next cut may take it.",
}


async def _post(
    data: DashboardData, path: str, headers: dict[str, str], body: Body, reply: HttpResponse
) -> None:
    if not data.access.same_origin(headers):
        await _page(reply, 403, message("Refused", "This form is on another site's page."))
        return
    sent = await body.whole()
    form = {k: v[-1] for k, v in parse_qs((sent or b"").decode("utf-8", "replace")).items()}
    if path == f"{HOME}token":
        await _let_in(data, form.get("token", ""), reply)
        return
    if not data.access.authenticated(headers):
        await _page(reply, 401, sign_in(False))
        return
    if not data.access.form_fits(form.get("token", "")):
        await _page(reply, 403, message("Refused", "This form is old: load the page again."))
        return
    await _act(data, path.removeprefix(HOME), form, reply)


async def _let_in(data: DashboardData, given: str, reply: HttpResponse) -> None:
    """Exchange a valid token for our cookie, and redirect to an address without the token."""
    if not data.access.token_fits(given):
        await data.access.slow_down()
        await _page(reply, 401, sign_in(True))
        return
    cookie = f"{COOKIE}={data.access.cookie()}; Path={HOME}; HttpOnly; SameSite=Strict"
    await reply.whole(303, [(b"location", HOME.encode()), (b"set-cookie", cookie.encode())])


async def _act(data: DashboardData, name: str, form: dict[str, str], reply: HttpResponse) -> None:
    session = data.records.activity.sessions.get(form.get("session", ""))
    if session is not None:
        await _filled(data, session)
    if session is not None and name in ("keep", "release"):
        await _pin(data, name, session, form, reply)
        return
    edit = session.edits.get(form.get("handle", "")) if session else None
    if session is None or edit is None or name not in _SAID:
        await _page(reply, 404, message("Not found", "This session has no such edit."))
        return
    try:
        await in_worker(lambda: data.tenants.act(name, session, edit))
        data.records.activity.changed(session, edit)
    except TrimtabError as error:
        await _page(reply, 409, message("Not done", str(error)))
        return
    to = f"{HOME}s/{session.id}/e/{quote(edit.handle, safe='')}?done={name}"
    await reply.whole(303, [(b"location", to.encode())])


async def _pin(
    data: DashboardData, name: str, session: SessionRecord, form: dict[str, str],
    reply: HttpResponse,
) -> None:  # fmt: skip
    text, file = form.get("text", "").strip(), form.get("file", "").strip()
    if bool(text) == bool(file):
        said = "Give a sentence or a file" + (", not both." if text else ".")
        await _page(reply, 409, message("Not done", said))
        return
    try:
        await in_worker(
            lambda: data.tenants.keep(session, text=text, file=file, pinned=name == "keep")
        )
    except TrimtabError as error:
        await _page(reply, 409, message("Not done", str(error)))
        return
    to = f"{HOME}s/{session.id}/keep?done={name}"
    await reply.whole(303, [(b"location", to.encode())])
