"""The pages of sessions: all of them, one, and one edit.

Each function computes what its template shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote

from trimtab.amounts import many
from trimtab.journal.folded_steps import CONTENTS_CHARS, folded_steps, steps_of
from trimtab.proxy.dashboard import chart
from trimtab.proxy.dashboard.format import ago, duration, share
from trimtab.proxy.dashboard.page import HOME, LIVE_SECONDS, SESSIONS, page
from trimtab.proxy.dashboard.readable import statements
from trimtab.proxy.records.activity_log import ActivityLog, outcome_of
from trimtab.proxy.records.prefix_breaks import CAUSES
from trimtab.proxy.records.recent_requests import RecentRequests
from trimtab.proxy.records.request_record import RequestRecord, agent_of, meaning
from trimtab.proxy.records.session_record import EditRecord, SessionRecord
from trimtab.reporting.axis import short_number

SHOWN_SESSIONS, SHOWN_EDITS, SHOWN_TURNS, SHOWN_PROBLEMS = 100, 200, 50, 5
SHOWN_CHARS = 60_000
PROBLEM_SECONDS = 24 * 3_600.0


def home(
    activity: ActivityLog, requests: RecentRequests, now: float, url: str, wanted: str,
    problem: str = "",
) -> bytes:  # fmt: skip
    """The sessions that match ``wanted``: those whose last request failed first, then the newest.

    ``problem``: a problem of the store.
    """
    sessions = [
        session for session in reversed(activity.sessions.values()) if _matches(session, wanted)
    ]
    sessions.sort(key=lambda session: (not _failing(session, now), -session.last))
    return page(
        "home.html", "Sessions", live=LIVE_SECONDS,
        any=bool(activity.sessions), url=url, wanted=wanted, outcome=outcome_of(_sums(activity)),
        figures=_totals(activity),
        problem=problem, problems=_problems(requests.rows, now),
        warnings=[
            {"text": text, "count": many(count, "request")}
            for text, count in reversed(activity.warnings.items())
        ],
        sessions=[_session_row(session, now) for session in sessions[:SHOWN_SESSIONS]],
        more=len(sessions) - SHOWN_SESSIONS,
    )  # fmt: skip


def _failing(session: SessionRecord, now: float) -> bool:
    return bool(session.problem) and now - session.last < PROBLEM_SECONDS


def _problems(rows: Iterable[RequestRecord], now: float) -> list[dict[str, Any]]:
    """The failures among the recent requests: one row for each provider and cause, newest first."""
    causes: dict[tuple[str, int, str], tuple[RequestRecord, int]] = {}
    for row in rows:
        if not row.answered:
            key = (row.upstream, row.status, row.problem)
            causes[key] = (row, causes.get(key, (row, 0))[1] + 1)
    newest = sorted(causes.values(), key=lambda cause: -cause[0].when)
    return [
        {
            "number": row.request, "upstream": row.upstream, "status": row.status or "no answer",
            "what": row.problem, "count": many(count, "request"), "when": ago(now - row.when),
        }
        for row, count in newest[:SHOWN_PROBLEMS]
    ]  # fmt: skip


def _sums(activity: ActivityLog) -> Counter[str]:
    sums: Counter[str] = Counter()
    for session in activity.sessions.values():
        sums.update(session.sums)
    return sums


def _totals(activity: ActivityLog) -> list[tuple[str, str, str]]:
    """Figures over all sessions: (name, figure, meaning)."""
    sums = _sums(activity)
    rows = [
        ("Tokens saved", short_number(sums["saved"]), "not sent, summed over all requests"),
        ("Share saved", share(sums["saved"], sums["arrived"]), "of all tokens that arrived"),
        ("Requests", f"{sums['turns']:,}", "that were answered, over these sessions"),
        ("Failed", f"{sums['failed']:,}", "of these sessions: not answered, no work is counted"),
        ("Edits", f"{sums['edits']:,}", "each is made once and then stays"),
        ("Refusals survived", f"{sums['survived']:,}", "the client never saw them"),
        ("Read from cache", share(sums["cached"], sums["prompt"]),
         "of the prompt tokens the providers counted"),
    ]  # fmt: skip
    if activity.warm.pings:
        net = activity.warm.saved - activity.warm.spent
        rows.append(("Kept warm", f"{net:+.2f} $", str(activity.warm)))
    if activity.money:
        about = "than with everything sent: about, at list prices, since the proxy was started"
        rows.append(("Cost", activity.money, about))
    return rows


def _matches(session: SessionRecord, wanted: str) -> bool:
    words = wanted.casefold().split()
    named = (
        session.prompt,
        session.project,
        session.id,
        session.hint,
        session.client,
        session.model,
        session.upstream,
    )
    text = " ".join((*named, session.format)).casefold()
    return all(word in text for word in words)


def _session_row(session: SessionRecord, now: float) -> dict[str, Any]:
    return {
        "id": session.id, "title": session.title, "about": _about(session),
        "model": session.model or "–", "last": ago(now - session.last),
        "problem": session.problem if _failing(session, now) else "",
        "numbers": (
            session.sums["turns"], short_number(session.now) if session.now else "–",
            short_number(session.saved), session.sums["edits"], session.sums["failed"],
        ),
    }  # fmt: skip


def _about(session: SessionRecord) -> str:
    """Project, agent and provider, if known."""
    agent = agent_of(session.client)[:24] if session.client else ""
    return f"{' · '.join(filter(None, (session.project, agent)))} → {session.upstream}".strip()


def session(
    session: SessionRecord, now: float, wanted: str, problem: str = "", *, token: str = ""
) -> bytes:
    """One session: its context over the turns, its requests, edits and refusals."""
    words = wanted.casefold().split()
    edits = [
        edit for edit in reversed(session.edits.values())
        if all(word in _searched(edit) for word in words)
    ]  # fmt: skip
    stand = [edit for edit in edits if session.state(edit) in ("in force", "to be undone")]
    past = [edit for edit in edits if session.state(edit) not in ("in force", "to be undone")]
    turns = list(session.turns)
    return page(
        "session.html", session.title, trail=SESSIONS, live=LIVE_SECONDS, token=token,
        id=session.id,
        about=_described(session, now), figures=_figures(session), problem=problem,
        failing=session.problem if _failing(session, now) else "",
        charts=[chart.context(turns, size) for size in (chart.WIDE, chart.NARROW)],
        marks=_marks(turns), breaks=_breaks(turns),
        any=bool(session.edits), wanted=wanted, address=f"{HOME}s/{session.id}",
        groups=[
            (name, [_edit_row(session, row) for row in rows[:SHOWN_EDITS]], len(rows) - SHOWN_EDITS)
            for name, rows in (("in force", stand), ("replaced or undone", past))
        ],
        turns=[_turn_row(turn, now) for turn in reversed(turns[-SHOWN_TURNS:])],
        earlier=len(turns) - SHOWN_TURNS,
        refusals=[
            {**row, "when": ago(now - row["when"]), "kind": meaning(row["kind"])}
            for row in reversed(session.refusals)
        ],
    )  # fmt: skip


def _described(session: SessionRecord, now: float) -> str:
    client = session.client or "a client that gives no name"
    project = f"in {session.project}, " if session.project else ""
    model = session.model or "model unknown"
    about = f"{project}{client} to {session.upstream}, {session.format}, {model}; "
    about += f"begun {ago(now - session.began)}, last {ago(now - session.last)}"
    return about + (f"; of the experiment: {session.arm}" if session.arm else "")


def _figures(session: SessionRecord) -> list[tuple[str, str, str]]:
    last = next((turn for turn in reversed(session.turns) if turn.answered), None)
    full = last.sent / last.window if last and last.window else None
    sums = session.sums
    return [
        ("Sent now", short_number(last.sent) if last else "–", "tokens of the last request"),
        ("Of the window", f"{full:.0%}" if full is not None else "–", "less the output reserve"),
        ("Without cuts", short_number(last.arrived) if last else "–",
         "tokens that the last request arrived with"),
        ("Saved", short_number(session.saved), "tokens not sent, over all turns"),
        ("Read from cache", share(sums["cached"], sums["prompt"]),
         "of the tokens the provider counted"),
        ("Turns", f"{sums['turns']:,}", "requests of this session that were answered"),
        ("Failed", f"{sums['failed']:,}", "requests of this session that were not"),
    ]  # fmt: skip


def _marks(turns: Sequence[RequestRecord]) -> dict[str, Any]:
    """The marks that the chart's legend has to explain."""
    causes = {turn.cause for turn in turns}
    window = turns[-1].window if turns else 0
    drawn = {line.kind for line in chart.context(turns).lines}
    return {
        "drawn": drawn,
        "window": "" if "window" in drawn or not window else short_number(window),
        "again": any(turn.sends > 1 for turn in turns),
        "failed": not all(turn.answered for turn in turns),
        "breaks": [(name, cause) for cause, name in chart.BREAKS.items() if cause in causes],
    }


def _breaks(turns: Sequence[RequestRecord]) -> list[tuple[str, str, int, str]]:
    """Cache breaks by cause: (cause, meaning, count, tokens)."""
    return [
        (cause, meant, len(broken), short_number(sum(turn.lost for turn in broken)))
        for cause, meant in CAUSES.items()
        if (broken := [turn for turn in turns if turn.cause == cause])
    ]


def _turn_row(turn: RequestRecord, now: float) -> dict[str, Any]:
    return {
        "number": turn.number, "request": turn.request, "when": ago(now - turn.when),
        "status": turn.status or "no answer", "failed": not turn.answered,
        "note": turn.note or (f"cache lost to {turn.cause}" if turn.cause else ""),
        "numbers": (
            duration(turn.seconds), f"{turn.arrived:,}", f"{turn.sent:,}",
            f"{turn.cached:,}" if turn.prompt else "–", f"{turn.output:,}", turn.sends,
        ),
    }  # fmt: skip


def _edit_row(session: SessionRecord, edit: EditRecord) -> dict[str, Any]:
    sizes = (edit.tokens_before, edit.tokens_after, edit.saved)
    state = session.state(edit)
    return {
        "path": quote(edit.handle, safe=""), "handle": edit.handle, "kind": edit.kind,
        "of": edit.tool or edit.role or "–", "why": edit.why,
        "state": f"{state}, pinned" if edit.pinned and state == "in force" else state,
        "numbers": (edit.turn, *(short_number(size * session.ratio) for size in sizes)),
    }  # fmt: skip


def actions(
    session: SessionRecord, edit: EditRecord, kept: bool
) -> list[tuple[str, str, str, str]]:
    """The actions on an edit: (name, label, effect, why it is not possible or "").

    ``kept``: whether its original is kept.
    """
    state = session.state(edit)
    no_undo = {
        "to be undone": "undone already: the next turn sends the original",
        "undone": "undone already",
        "replaced": "another edit took its place, or its text is no longer sent: nothing to undo",
    }.get(state, "")
    undo = no_undo or ("" if kept else "the original is no longer kept")
    rows = [("undo", "Undo", "send the original from the next turn on; costs a cache break", undo)]
    if edit.pinned:
        rows.append(("unpin", "Unpin", "it may be reduced again", ""))
    else:
        no_pin = "" if state == "in force" else f"this edit is {state}"
        rows.append(("pin", "Pin", "reduce it no further", no_pin))
    return rows


def _searched(row: EditRecord) -> str:
    return f"{row.as_edit().title} {row.kind} {row.role} {row.why} {row.handle}".casefold()


def edit(
    session: SessionRecord, row: EditRecord, before: str | None, after: str, *, token: str,
    notice: str = "", step: str = "",
) -> bytes:  # fmt: skip
    """The page of one edit: the original beside what is sent.  For a fold: the table of contents of
    its steps, and the step with the number ``step``."""
    steps = folded_steps(before) if before and len(before) > CONTENTS_CHARS else []
    steps = steps if len(steps) > 1 else []
    chosen = int(step) if steps and step.isdecimal() and len(step) < 7 else 0
    chosen = chosen if chosen <= len(steps) else 0
    shown, edit_state = before, session.state(row)
    if before is not None and chosen:
        shown = steps_of(before, chosen, chosen)
    return page(
        "edit.html", row.handle, trail=(*SESSIONS, (session.title, f"{HOME}s/{session.id}")),
        about=f"{row.as_edit().title}, turn {row.turn}: {row.why}",
        state=edit_state + (", pinned" if row.pinned else ""),
        notice=notice, actions=actions(session, row, before is not None), token=token,
        session=session.id,
        before=None if shown is None else cut(shown), after=cut(after),
        stands=edit_state == "in force", is_undone="undone" in edit_state,
        pending=edit_state == "to be undone",
        read=statements(shown, session.format) if shown and shown.startswith("[{") else None,
        steps=steps, chosen=chosen,
        before_tokens=f"{round(row.tokens_before * session.ratio):,}",
        after_tokens=f"{round(row.tokens_after * session.ratio):,}",
    )  # fmt: skip


def cut(value: str) -> str:
    """The beginning of a text, as much as a page shows."""
    if len(value) <= SHOWN_CHARS:
        return value
    note = f"\n… {len(value) - SHOWN_CHARS:,} more characters: trimtab recall has them all"
    return value[:SHOWN_CHARS] + note
