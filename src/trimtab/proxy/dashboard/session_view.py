"""The page of one session: its context over the turns, its edits, requests and refusals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from trimtab.proxy.dashboard import chart
from trimtab.proxy.dashboard.format import ago, duration, share
from trimtab.proxy.dashboard.page import HOME, LIVE_SECONDS, SEARCH, SESSIONS, page
from trimtab.proxy.records.activity_log import money_of, outcome_of
from trimtab.proxy.records.prefix_breaks import CAUSES
from trimtab.proxy.records.request_record import RequestRecord, meaning
from trimtab.proxy.records.session_record import EditRecord, SessionRecord
from trimtab.reporting.axis import short_number

SHOWN_EDITS, SHOWN_TURNS, SHOWN_ALL = 20, 15, 500
NAMED_FOLDS = 60


def session(
    session: SessionRecord, now: float, wanted: str, problem: str = "", *, token: str = "",
    everything: bool = False,
) -> bytes:  # fmt: skip
    """The page.  ``everything``: edits and requests that are older than the newest few, too."""
    words = wanted.casefold().split()
    edits = [
        edit for edit in reversed(session.edits.values())
        if all(word in _searched(session, edit) for word in words)
    ]  # fmt: skip
    most_edits, most_turns = (SHOWN_ALL,) * 2 if everything else (SHOWN_EDITS, SHOWN_TURNS)
    stand = [edit for edit in edits if session.state(edit) in ("in force", "to be undone")]
    past = [edit for edit in edits if session.state(edit) not in ("in force", "to be undone")]
    turns = list(session.turns)
    return page(
        "session.html", session.title, trail=SESSIONS, live=LIVE_SECONDS, token=token,
        id=session.id, search=SEARCH,
        about=_described(session, now), figures=_figures(session), problem=problem,
        failing=session.failing(now), outcome=outcome_of(session.sums),
        money=money_of(session.sums),
        first_cut=short_number(turns[-1].trigger) if turns and turns[-1].trigger else "",
        charts=[chart.context(turns, size) for size in (chart.WIDE, chart.NARROW)],
        marks=_marks(turns), breaks=_breaks(turns),
        any=bool(session.edits), wanted=wanted, address=f"{HOME}s/{session.id}",
        groups=[
            (name, [_edit_row(session, row) for row in rows[:most_edits]], len(rows) - most_edits)
            for name, rows in (("in force", stand), ("replaced or undone", past))
        ],
        turns=[_turn_row(turn, now) for turn in reversed(turns[-most_turns:])],
        earlier=len(turns) - most_turns,
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
    """(name, figure, meaning); none that are not there yet."""
    last = next((turn for turn in reversed(session.turns) if turn.answered), None)
    if last is None:
        return []
    sums = session.sums
    rows = [("Sent now", short_number(last.sent), "tokens of the last request")]
    if last.window:
        about = f"{short_number(last.window)}: the window less the output reserve"
        rows.append(("Of the window", f"{last.sent / last.window:.0%}", about))
    if last.arrived > last.sent:
        rows.append(("Without cuts", short_number(last.arrived),
                     "tokens that the last request arrived with"))  # fmt: skip
    if session.saved:
        rows.append(("Saved", short_number(session.saved), "tokens not sent, over all requests"))
    if sums["cached"]:
        rows.append(("Read from cache", share(sums["cached"], sums["prompt"]),
                     "of the tokens that the provider counted"))  # fmt: skip
    return rows


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
        "path": quote(edit.handle, safe=""), "handle": edit.handle,
        "title": session.title_of(edit), "why": edit.why,
        "state": f"{state}, pinned" if edit.pinned and state == "in force" else state,
        "numbers": (edit.turn, *(short_number(size * session.ratio) for size in sizes)),
    }  # fmt: skip


def _searched(session: SessionRecord, row: EditRecord) -> str:
    words = (session.title_of(row), row.kind, row.tool, row.role, row.why, row.handle)
    return " ".join(words).casefold()
