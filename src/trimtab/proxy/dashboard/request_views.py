"""The pages of requests: the last ones as a list, and the texts of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trimtab.proxy.dashboard.compared import compared
from trimtab.proxy.dashboard.format import ago, duration
from trimtab.proxy.dashboard.page import HOME, LIVE_SECONDS, REQUESTS, page
from trimtab.proxy.dashboard.readable import cut, indented, statements
from trimtab.proxy.records.recent_requests import RecentRequests
from trimtab.proxy.records.request_record import RequestRecord, agent_of
from trimtab.proxy.records.session_record import SessionRecord
from trimtab.retry.content_encoding import unpacked

SHOWN = 30
MAX_TEXT_BYTES = 4_000_000
TEXTS = {"came": "Request as received", "sent": "Request as sent", "answer": "Answer"}


def requests(
    recent: RecentRequests, sessions: Mapping[str, SessionRecord], now: float, wanted: str, *,
    keeps_texts: bool,
) -> bytes:  # fmt: skip
    """The last requests that match ``wanted``; "failed" matches those that failed."""
    rows = [row for row in reversed(recent.rows) if _matches(row, wanted)]
    return page(
        "requests.html", "Requests", section=REQUESTS, live=LIVE_SECONDS, any=bool(recent.rows),
        rows=[_row(row, sessions, now) for row in rows[:SHOWN]], more=len(rows) - SHOWN,
        wanted=wanted, action=REQUESTS, keeps_texts=keeps_texts,
    )  # fmt: skip


def _matches(row: RequestRecord, wanted: str) -> bool:
    text = f"{row.upstream} {row.path} {row.client} {row.model} {row.status} {row.problem}"
    text += "" if row.answered else " failed"
    return all(word in text.casefold() for word in wanted.casefold().split())


def _row(row: RequestRecord, sessions: Mapping[str, SessionRecord], now: float) -> dict[str, Any]:
    session = sessions.get(row.session)
    counted = bool(row.prompt)
    return {
        "number": row.request, "when": ago(now - row.when), "status": row.status or "no answer",
        "failed": not row.answered, "what": row.path, "to": row.upstream,
        "agent": agent_of(row.client)[:24] if row.client else "–", "model": row.model or "–",
        "session": row.session if session else "", "title": session.title if session else "",
        "problem": row.problem,
        "numbers": (
            duration(row.seconds), f"{row.arrived:,}" if row.arrived else "–",
            f"{row.sent:,}" if row.sent else "–", f"{row.cached:,}" if counted else "–",
            f"{row.output:,}" if counted else "–",
        ),
    }  # fmt: skip


def texts(row: RequestRecord) -> dict[str, str]:
    """The kept texts of a request, by name; the sent body only if it differs."""
    if row.texts is None:
        return {}
    came = unpacked(row.texts.came, row.texts.encoding, MAX_TEXT_BYTES) or b""
    by_name = {"came": came}
    if row.texts.went not in (row.texts.came, came):
        by_name["sent"] = row.texts.went
    by_name["answer"] = row.texts.answer
    return {name: data.decode("utf-8", "replace") for name, data in by_name.items()}


def request(
    row: RequestRecord, session: SessionRecord | None, now: float, *, keeps_texts: bool
) -> bytes:
    """The page of one request with its texts."""
    by_name = texts(row)
    read = {
        name: statements(text, session.format)
        for name, text in by_name.items() if session and name != "answer"
    }  # fmt: skip
    came, sent = read.get("came"), read.get("sent")
    parts = [
        {
            "name": name, "title": TEXTS[name], "chars": f"{len(text):,}",
            "read": one.last if (one := read.get(name)) else None, "text": cut(indented(text)),
        }
        for name, text in by_name.items()
    ]  # fmt: skip
    times = duration(row.seconds)
    times += f", first byte after {duration(row.first_byte)}" if row.first_byte else ""
    return page(
        "request.html", f"Request {row.request}", section=REQUESTS, trail=(("Requests", REQUESTS),),
        row=_row(row, {}, now), times=times,
        places=compared(came.rows, sent.rows) if came and sent else None,
        client=row.client or "a client that gives no name",
        sends=row.sends, parts_kept=parts, whole=bool(row.texts and row.texts.cut),
        address=f"{HOME}r/{row.request}", keeps_texts=keeps_texts,
        session=session.id if session else "", session_title=session.title if session else "",
    )  # fmt: skip
