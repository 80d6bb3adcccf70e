"""What a fit came to, told as events: one for the request, one for each new edit.

Knows outcomes and reports.  Does not know who listens, nor what any text said.
"""

from __future__ import annotations

import time
from typing import Any

from trimtab.fitted import Fitted
from trimtab.settings import NO_WINDOW
from trimtab.telling.events import EditEvent, FitEvent, emit, listening, printable
from trimtab.telling.report import Report
from trimtab.turns.work import Outcome, Work


def fitted(outcome: Outcome, done: Fitted, started: float) -> None:
    """Tell of one request; ``started`` is what ``time.perf_counter`` said before it."""
    work = outcome.work
    listener = work.settings.on_event
    if not listening(listener):
        return
    about, report = _about(work), done.report
    new = [edit for edit in report.edits if edit.new]
    for edit in new:
        emit(listener, EditEvent(
            kind=edit.kind, op=edit.op, role=edit.role, tool=printable(edit.tool),
            tokens_before=edit.tokens_before, tokens_after=edit.tokens_after, loss=edit.loss,
            **about,
        ))  # fmt: skip
    emit(listener, FitEvent(
        outcome=_outcome(outcome, report), window=_window(work),
        tokens_before=report.tokens_before, tokens_after=report.tokens_after,
        edits=len(report.edits), new_edits=len(new), repairs=len(report.repairs),
        warnings=len(report.warnings), milliseconds=_milliseconds(started), **about,
    ))  # fmt: skip


def cannot_fit(work: Work, started: float) -> None:
    """Tell of a request that cannot be made to fit."""
    listener = work.settings.on_event
    if not listening(listener):
        return
    tokens = work.usage.measure(work.given)
    emit(listener, FitEvent(
        outcome="cannot_fit", window=_window(work), tokens_before=tokens, tokens_after=tokens,
        edits=0, new_edits=0, repairs=len(work.mends.mends) if work.mends else 0,
        warnings=len(work.warnings), milliseconds=_milliseconds(started), **_about(work),
    ))  # fmt: skip


def _outcome(outcome: Outcome, report: Report) -> str:
    if outcome.step == "original":
        return "original"
    if outcome.step not in ("", "planned"):
        return "fallback"
    if outcome.new:
        return "reduced"
    if outcome.applied:
        return "kept"
    return "repaired" if report.repairs else "unchanged"


def _about(work: Work) -> dict[str, Any]:
    transcript = work.transcript
    return {"format": transcript.format.name, "model": printable(transcript.facts.model)}


def _window(work: Work) -> int | None:
    return None if work.force.window >= NO_WINDOW else work.force.window


def _milliseconds(started: float) -> float:
    return round(1000 * (time.perf_counter() - started), 3)
