"""The first page: what would have been refused and what it cost, then a row for each session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from trimtab.amounts import many
from trimtab.proxy.dashboard.format import ago, share
from trimtab.proxy.dashboard.page import HOME, LIVE_SECONDS, page
from trimtab.proxy.dashboard.sparkline import Sparkline
from trimtab.proxy.records.activity_log import ActivityLog, money_of, outcome_of
from trimtab.proxy.records.prefix_breaks import LIFETIME
from trimtab.proxy.records.recent_requests import RecentRequests
from trimtab.proxy.records.request_record import RequestRecord, agent_of
from trimtab.proxy.records.session_record import PROBLEM_SECONDS, SessionRecord
from trimtab.reporting.axis import short_number

SHOWN_SESSIONS, SHOWN_PROBLEMS = 50, 5
TIMES = {"hour": 3_600.0, "day": 86_400.0, "week": 7 * 86_400.0}
"""Spans that the list can be limited to, in seconds."""
COLUMNS = {
    "last": "Last", "project": "Project", "sent": "Sent", "full": "Of the window",
    "requests": "Requests", "saved": "Saved", "edits": "Edits",
}  # fmt: skip
"""What the list can be sorted by → its head."""
_ORDERS: dict[str, Callable[[SessionRecord], Any]] = {
    "last": lambda session: -session.last,
    "project": lambda session: (not session.project, session.project.casefold()),
    "sent": lambda session: -session.now,
    "full": lambda session: -_full(session),
    "requests": lambda session: -session.sums["turns"],
    "saved": lambda session: -session.saved,
    "edits": lambda session: -session.sums["edits"],
}


@dataclass(frozen=True)
class Choice:
    """Which sessions the page lists, and in which order: words of a search, one of ``TIMES`` or "",
    one of ``COLUMNS`` or "" for those that fail first, then the newest."""

    wanted: str = ""
    since: str = ""
    sort: str = ""

    @classmethod
    def of(cls, query: dict[str, str]) -> Choice:
        """That of an address; what it does not know is left out."""
        since, sort = query.get("since", ""), query.get("sort", "")
        return cls(
            query.get("q", "")[:200], since if since in TIMES else "",
            sort if sort in COLUMNS else "",
        )  # fmt: skip

    def address(self, **changed: str) -> str:
        """The page with this choice, some of it changed."""
        given = {"q": self.wanted, "since": self.since, "sort": self.sort, **changed}
        query = urlencode({name: value for name, value in given.items() if value})
        return f"{HOME}?{query}" if query else HOME


class Link(NamedTuple):
    """A choice that the page offers."""

    name: str
    address: str
    chosen: bool


def home(
    activity: ActivityLog, requests: RecentRequests, now: float, url: str, choice: Choice,
    problem: str = "",
) -> bytes:  # fmt: skip
    """The page.  ``problem``: a problem of the store."""
    oldest = now - TIMES[choice.since] if choice.since else 0.0
    during = [session for session in activity.sessions.values() if session.last >= oldest]
    listed = [session for session in reversed(during) if _matches(session, choice.wanted)]
    order = _ORDERS.get(choice.sort)
    listed.sort(key=order or (lambda session: (not session.failing(now), -session.last)))
    sums = Counter[str]()
    for session in during:
        sums.update(session.sums)
    return page(
        "home.html", "Sessions", live=LIVE_SECONDS, problem=problem,
        any=bool(activity.sessions), gateways=str(activity.gateways), url=url,
        wanted=choice.wanted, hidden=_hidden(choice),
        outcome=outcome_of(sums) if sums["turns"] or sums["outgrown"] else "",
        money=money_of(sums), nothing_cut=bool(sums["turns"]) and not sums["edits"],
        figures=_figures(sums, activity),
        problems=_problems(requests.rows, now),
        warnings=[
            {"text": text, "count": many(count, "request")}
            for text, count in reversed(activity.warnings.items())
        ],
        times=_times(choice), heads=_heads(choice),
        sessions=[_row(session, now) for session in listed[:SHOWN_SESSIONS]],
        more=len(listed) - SHOWN_SESSIONS,
    )  # fmt: skip


def _hidden(choice: Choice) -> list[tuple[str, str]]:
    """What a new search keeps of the choice."""
    kept = (("since", choice.since), ("sort", choice.sort))
    return [(name, value) for name, value in kept if value]


def _times(choice: Choice) -> list[Link]:
    names = {"": "all", "hour": "last hour", "day": "last day", "week": "last week"}
    return [
        Link(name, choice.address(since=since), since == choice.since)
        for since, name in names.items()
    ]


def _heads(choice: Choice) -> dict[str, Link]:
    """The head of each column; the chosen one leads back to the usual order."""
    return {
        name: Link(head, choice.address(sort="" if name == choice.sort else name),
                   name == choice.sort)
        for name, head in COLUMNS.items()
    }  # fmt: skip


def _problems(rows: Sequence[RequestRecord], now: float) -> list[dict[str, Any]]:
    """The failures that nothing has mended since, by provider and cause, newest first.

    What a client asked for beside its conversations (a model list, a path that nobody has) is no
    problem of ours; the page of requests has it.
    """
    causes: dict[tuple[str, int, str], tuple[RequestRecord, int]] = {}
    for row in _unmended(rows, now):
        key = (row.upstream, row.status, row.problem)
        newest, count = causes.get(key, (row, 0))
        causes[key] = (newest, count + 1)
    return [
        {
            "number": row.request, "upstream": row.upstream, "status": row.status or "no answer",
            "what": row.problem, "count": many(count, "request"), "when": ago(now - row.when),
        }
        for row, count in [*causes.values()][:SHOWN_PROBLEMS]
    ]  # fmt: skip


def _unmended(rows: Sequence[RequestRecord], now: float) -> Iterator[RequestRecord]:
    """Failures, newest first: a provider that did not answer and has not since, and requests of a
    session that had no answer after them."""
    answered = set[tuple[str, str]]()
    for row in reversed(rows):
        if row.answered:
            answered |= {(row.upstream, row.session), (row.upstream, "")}
        elif now - row.when < PROBLEM_SECONDS:
            is_down = not row.status or row.status >= 500
            mended = (row.upstream, "" if is_down else row.session) in answered
            if not mended and (is_down or row.session):
                yield row


def _figures(sums: Counter[str], activity: ActivityLog) -> list[tuple[str, str, str]]:
    """Figures over these sessions: (name, figure, meaning); none that are not there yet."""
    rows = []
    if sums["saved"]:
        rows += [
            ("Tokens not sent", short_number(sums["saved"]), "summed over all requests"),
            ("Of all that arrived", share(sums["saved"], sums["arrived"]), "tokens not sent"),
            ("Edits", f"{sums['edits']:,}", "each is made once and then stays"),
        ]  # fmt: skip
    if sums["cached"]:
        rows.append(("Read from cache", share(sums["cached"], sums["prompt"]),
                     "of the prompt tokens the providers counted"))  # fmt: skip
    if activity.warm.pings:
        net = activity.warm.saved - activity.warm.spent
        rows.append(("Kept warm", f"{net:+.2f} $", str(activity.warm)))
    return rows


def _matches(session: SessionRecord, wanted: str) -> bool:
    named = (
        session.prompt, session.project, session.id, session.hint, session.client, session.model,
        session.upstream, session.format,
    )  # fmt: skip
    text = " ".join(named).casefold()
    return all(word in text for word in wanted.casefold().split())


def _full(session: SessionRecord) -> float:
    return session.now / session.window if session.window else 0.0


def _row(session: SessionRecord, now: float) -> dict[str, Any]:
    idle = now - session.last
    failed = session.sums["failed"]
    return {
        "id": session.id, "title": session.title, "project": session.project,
        "about": _about(session), "live": idle < LIFETIME, "last": ago(idle),
        "problem": session.failing(now),
        "failed": f"{many(failed, 'request')} failed" if failed else "",
        "spark": Sparkline.of(session.trend, session.window),
        "sent": short_number(session.now) if session.now else "–",
        "window": short_number(session.window) if session.window else "",
        "full": f"{_full(session):.0%}" if session.window and session.now else "–",
        "part": min(round(100 * _full(session)), 100),
        "numbers": (
            f"{session.sums['turns']:,}", short_number(session.saved), f"{session.sums['edits']:,}",
        ),
    }  # fmt: skip


def _about(session: SessionRecord) -> str:
    """Agent, provider and model, if known."""
    agent = agent_of(session.client)[:24] if session.client else ""
    return " · ".join(filter(None, (f"{agent} → {session.upstream}".strip(), session.model)))
