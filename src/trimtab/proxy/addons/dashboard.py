"""The proxy's own pages: dashboard, metrics, health.  Checks access, and acts on their forms.

What each page shows is in ``proxy/dashboard/``: a file and a template each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs, quote, unquote

from trimtab.errors import TrimtabError
from trimtab.proxy.addons.base import Addon, Core
from trimtab.proxy.addons.keep_warm import KeepWarm
from trimtab.proxy.addons.metrics import CONTENT_TYPE, Metrics
from trimtab.proxy.addons.recall import Recall
from trimtab.proxy.addons.records import Records
from trimtab.proxy.callers.access import COOKIE
from trimtab.proxy.dashboard import (
    edit_view,
    exports,
    home_view,
    keep_view,
    request_views,
    search_view,
    session_view,
    spend_view,
)
from trimtab.proxy.dashboard.archive import SessionArchive
from trimtab.proxy.dashboard.page import HOME, message, page_templates, policy, sign_in
from trimtab.proxy.dashboard.status import session_status
from trimtab.proxy.http.asgi import Body, HttpResponse, Receive, Scope
from trimtab.proxy.http.headers import plain
from trimtab.proxy.http.worker import in_worker
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
_MAX_FORM_BYTES = 10_000


async def _page(reply: HttpResponse, status: int, body: bytes) -> None:
    await _sent(reply, PageAnswer(status, body))


async def _sent(reply: HttpResponse, page: PageAnswer) -> None:
    headers = [(b"content-type", page.kind.encode()), *_HEADERS]
    headers.append((b"content-security-policy", policy().encode()))
    await reply.whole(page.status, headers, page.body)


class PageAnswer(NamedTuple):
    """An answer to a GET."""

    status: int
    body: bytes
    kind: str = HTML


_NOTICES = {
    "undo": "Undone: the original is sent from the next turn on, as long as it fits.",
    "pin": "Pinned: it is reduced no further.",
    "unpin": "Unpinned: it may be reduced again.",
    "keep": "Pinned: it is whole from the next turn on, as long as it fits.",
    "release": "Unpinned: the next cut may take it.",
}


class Dashboard(Addon):
    """Raises MissingExtra if a package that the pages need is not installed."""

    def __init__(
        self, core: Core, records: Records, metrics: Metrics, recall: Recall, warm: KeepWarm
    ) -> None:
        page_templates()
        self._core, self._records, self._metrics = core, records, metrics
        self._recall, self._keep_warm = recall, warm

    def serves(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        """Whether it is one of our pages; a browser at ``/`` is sent to the first."""
        path = scope["path"]
        if path == "/":
            return scope["method"] == "GET" and "text/html" in headers.get("accept", "")
        return path in ("/metrics", HOME.rstrip("/")) or path.startswith(HOME)

    async def serve(self, scope: Scope, receive: Receive, reply: HttpResponse) -> None:
        """Answer a request for one of the pages."""
        path, method, headers = scope["path"], scope["method"], plain(scope["headers"])
        if path in (f"{HOME}health", f"{HOME}ready"):
            ready = path.endswith("health") or not self._core.draining
            # It still serves when its store fails: a shared store would make all replicas unready.
            state = "fails" if self._core.tenants.store_problem else "ok"
            health = {"ok": ready, "draining": self._core.draining, "store": state}
            await reply.json(200 if ready else 503, health)
            return
        if path == "/":
            await reply.whole(303, [(b"location", HOME.encode())])
            return
        if path == HOME.rstrip("/"):
            await reply.whole(308, [(b"location", HOME.encode())])
            return
        if method == "POST":
            await self._post(path, headers, Body(receive, _MAX_FORM_BYTES), reply)
            return
        if method not in ("GET", "HEAD"):
            await _page(reply, 405, message("Not here", "Only GET and POST."))
            return
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"))
        if path == HOME and "token" in query:
            await self._let_in(query["token"][-1], reply)
            return
        if not self._core.access.authenticated(headers):
            if self._core.access.gives_wrong_token(headers):
                await self._core.access.slow_down()
            if path in ("/metrics", STATUS):
                await reply.json(401, {"error": "send the token as x-trimtab-token"})
            else:
                await _page(reply, 401, sign_in(False))
            return
        if path == "/metrics":
            kind, text = (b"content-type", CONTENT_TYPE.encode()), self._metrics.text()
            await reply.whole(200, [kind], text.encode())
            return
        if path == STATUS:
            name = query.get("session", [""])[-1]
            recall = self._core.settings.offers_recall
            status = session_status(self._records.activity, name, recall=recall)
            await reply.json(200, status)
            return
        shown = await self._get(path, {k: v[-1] for k, v in query.items()}, headers)
        await _sent(reply, shown)

    async def _get(self, path: str, query: dict[str, str], headers: dict[str, str]) -> PageAnswer:
        records, wanted = self._records, query.get("q", "")[:200]
        now, activity = records.clock(), records.activity
        problem = self._core.tenants.store_problem
        match [unquote(step) for step in path.removeprefix(HOME).split("/")]:
            case [""]:
                url = f"http://{headers.get('host', '')}"
                return PageAnswer(200, home_view.home(
                    activity, records.requests, now, url, home_view.Choice.of(query), problem
                ))  # fmt: skip
            case ["sessions.json"]:
                return PageAnswer(200, exports.sessions(activity.sessions.values()), JSON)
            case ["requests"]:
                keeps = self._core.settings.keeps_texts
                return PageAnswer(200, request_views.requests(
                    records.requests, activity.sessions, now, wanted, keeps_texts=keeps
                ))  # fmt: skip
            case ["requests.json"]:
                return PageAnswer(200, exports.requests(records.requests), JSON)
            case ["spend" | "spend.json" as name]:
                by = query.get("by", "day")
                by = by if by in spend_view.GROUPS else "day"
                spend = await in_worker(lambda: spend_view.spend(records.usage_facts(), by))
                if name == "spend.json":
                    return PageAnswer(200, exports.as_json(spend.as_dict()), JSON)
                summarizes = self._core.settings.fit.summarizer is not None
                return PageAnswer(200, spend_view.spend_page(
                    spend, by, activity, activity.sessions, summarizes=summarizes
                ))  # fmt: skip
            case ["search"]:
                return await self._search(query, wanted.strip())
            case ["r", number, *rest] if number.isdecimal() and len(number) < 10 and len(rest) < 2:
                return await self._request(int(number), rest)
            case ["s", id, *rest]:
                return await self._session(id, rest, query)
        return PageAnswer(404, message("Not found", "There is no such page."))

    async def _search(self, query: dict[str, str], words: str) -> PageAnswer:
        sessions = self._records.activity.sessions
        of, scope = sessions.get(query.get("s", "")), query.get("in", "")
        scope = scope if of is not None and scope in search_view.SCOPES else ""
        searched = search_view.of_scope(sessions.values(), of, scope) if words else []
        for one in searched:
            await self._records.load(one)
        archives = [(one, self._archive(one)) for one in searched if one.edits]
        found = await in_worker(lambda: search_view.found_in(archives, words))
        return PageAnswer(200, search_view.search(of, scope, words, len(searched), found))

    async def _request(self, number: int, rest: list[str]) -> PageAnswer:
        records = self._records
        request = records.requests.get(number)
        if request is None:
            return PageAnswer(404, message("Not found", "This request is not among the last ones."))
        if rest:
            texts = await in_worker(lambda: request_views.texts(request))
            if rest[0] not in texts:
                return PageAnswer(404, message("Not found", "This text is not kept."))
            return PageAnswer(200, texts[rest[0]].encode("utf-8", "replace"), TEXT)
        session, now = records.activity.sessions.get(request.session), records.clock()
        keeps = self._core.settings.keeps_texts
        return PageAnswer(200, await in_worker(
            lambda: request_views.request(request, session, now, keeps_texts=keeps)
        ))  # fmt: skip

    async def _session(self, id: str, rest: list[str], query: dict[str, str]) -> PageAnswer:
        records = self._records
        session = records.activity.sessions.get(id.removesuffix(".json"))
        if session is None:
            about = "No session has this name, or it was forgotten."
            return PageAnswer(404, message("Not found", about))
        await self._records.load(session)
        now, problem = records.clock(), self._core.tenants.store_problem
        if not rest and id.endswith(".json"):
            return PageAnswer(200, exports.session(session), JSON)
        if not rest:
            token = self._core.access.form_token()
            wanted = query.get("q", "")[:200]
            folds = [edit for edit in reversed(session.edits.values()) if edit.steps]
            archive = self._archive(session)
            await in_worker(lambda: archive.name_folds(folds[: session_view.NAMED_FOLDS]))
            return PageAnswer(200, session_view.session(
                session, now, wanted, problem, token=token, everything="all" in query
            ))  # fmt: skip
        if rest == ["keep"]:
            return PageAnswer(200, await self._keep(session, query))
        edit = session.edits.get(rest[1]) if len(rest) == 2 and rest[0] == "e" else None
        if edit is None:
            return PageAnswer(404, message("Not found", "This session has no such edit."))
        archive = self._archive(session)
        await in_worker(lambda: archive.name_folds([edit]))
        texts = await in_worker(lambda: archive.texts(edit.handle))
        notice, token = _NOTICES.get(query.get("done", ""), ""), self._core.access.form_token()
        step = query.get("step", "")
        return PageAnswer(200, await in_worker(
            lambda: edit_view.edit(session, edit, *texts, token=token, notice=notice, step=step)
        ))  # fmt: skip

    async def _keep(self, session: SessionRecord, query: dict[str, str]) -> bytes:
        """The page about what stays."""
        newest = self._records.requests.newest(session.id)

        def show() -> bytes:
            texts = request_views.texts(newest) if newest else {}
            body = texts.get("came", "")
            sent = texts.get("sent", body)
            archive = self._archive(session)
            preview = archive.preview(body.encode()) if body else None
            notice = _NOTICES.get(query.get("done", ""), "")
            notes = archive.notes(sent.encode()) if sent else {}
            return keep_view.keep(
                session, archive.pins(), preview, notes, token=self._core.access.form_token(),
                notice=notice,
            )  # fmt: skip

        return await in_worker(show)

    def _archive(self, session: SessionRecord) -> SessionArchive:
        return SessionArchive(self._core.tenants, session)

    # --- forms -----------------------------------------------------------------------------------

    async def _post(
        self, path: str, headers: dict[str, str], body: Body, reply: HttpResponse
    ) -> None:
        if not self._core.access.same_origin(headers):
            await _page(reply, 403, message("Refused", "This form is on another site's page."))
            return
        sent = await body.whole()
        form = {k: v[-1] for k, v in parse_qs((sent or b"").decode("utf-8", "replace")).items()}
        if path == f"{HOME}token":
            await self._let_in(form.get("token", ""), reply)
            return
        if not self._core.access.authenticated(headers):
            await _page(reply, 401, sign_in(False))
            return
        if not self._core.access.form_fits(form.get("token", "")):
            await _page(reply, 403, message("Refused", "This form is old: load the page again."))
            return
        await self._act(path.removeprefix(HOME), form, reply)

    async def _let_in(self, token: str, reply: HttpResponse) -> None:
        """Exchange a valid token for our cookie, and redirect to an address without the token."""
        if not self._core.access.token_fits(token):
            await self._core.access.slow_down()
            await _page(reply, 401, sign_in(True))
            return
        cookie = f"{COOKIE}={self._core.access.cookie()}; Path={HOME}; HttpOnly; SameSite=Strict"
        await reply.whole(303, [(b"location", HOME.encode()), (b"set-cookie", cookie.encode())])

    async def _act(self, name: str, form: dict[str, str], reply: HttpResponse) -> None:
        session = self._records.activity.sessions.get(form.get("session", ""))
        if session is not None:
            await self._records.load(session)
        if session is not None and name == "forget":
            await self._forget(session, reply)
            return
        if session is not None and name in ("keep", "release"):
            await self._pin(name, session, form, reply)
            return
        edit = session.edits.get(form.get("handle", "")) if session else None
        if session is None or edit is None or name not in _NOTICES:
            await _page(reply, 404, message("Not found", "This session has no such edit."))
            return
        try:
            await in_worker(lambda: self._archive(session).act(name, edit))
            session.changed.add(edit.handle)
        except TrimtabError as error:
            await _page(reply, 409, message("Not done", str(error)))
            return
        to = f"{HOME}s/{session.id}/e/{quote(edit.handle, safe='')}?done={name}"
        await reply.whole(303, [(b"location", to.encode())])

    async def _forget(self, session: SessionRecord, reply: HttpResponse) -> None:
        try:
            await self._records.forget(session)
        except TrimtabError as error:
            await _page(reply, 409, message("Not deleted", str(error)))
            return
        self._recall.hidden.forget(session.upstream, session.tenant, session.id)
        self._keep_warm.forget(session)
        about = "This conversation is deleted: its originals, journal, notes and this page."
        await _page(reply, 200, message("Deleted", about))

    async def _pin(
        self, name: str, session: SessionRecord, form: dict[str, str],
        reply: HttpResponse,
    ) -> None:  # fmt: skip
        text, file = form.get("text", "").strip(), form.get("file", "").strip()
        if bool(text) == bool(file):
            notice = "Give a sentence or a file" + (", not both." if text else ".")
            await _page(reply, 409, message("Not done", notice))
            return
        try:
            await in_worker(
                lambda: self._archive(session).pin(text=text, file=file, pinned=name == "keep")
            )
        except TrimtabError as error:
            await _page(reply, 409, message("Not done", str(error)))
            return
        to = f"{HOME}s/{session.id}/keep?done={name}"
        await reply.whole(303, [(b"location", to.encode())])
