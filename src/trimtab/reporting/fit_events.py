"""The result of a fit as events: one for the request, one for each new edit.

Events contain outcomes and figures, never texts.
"""

from __future__ import annotations

import time
from typing import Any

from trimtab.events import EditEvent, FitEvent, printable
from trimtab.report import Report
from trimtab.request.fitted import Fitted
from trimtab.request.measured import MeasuredRequest
from trimtab.request.pipeline import AS_RECEIVED, FitResult
from trimtab.settings import NO_WINDOW
from trimtab.telemetry import emit, listening


def fitted(result: FitResult, done: Fitted, started: float) -> None:
    """Emit the events of one request; ``started``: ``time.perf_counter()`` before it."""
    measured = result.measured
    listener = measured.settings.on_event
    if not listening(listener):
        return
    about, report = _about(measured), done.report
    new = [edit for edit in report.edits if edit.new]
    for edit in new:
        emit(listener, EditEvent(
            kind=edit.kind, op=edit.op, role=edit.role, tool=printable(edit.tool),
            tokens_before=edit.tokens_before, tokens_after=edit.tokens_after, loss=edit.loss,
            **about,
        ))  # fmt: skip
    emit(listener, FitEvent(
        outcome=_outcome(result, report), window=_window(measured),
        tokens_before=report.tokens_before, tokens_after=report.tokens_after,
        edits=len(report.edits), new_edits=len(new), repairs=len(report.repairs),
        warnings=len(report.warnings), milliseconds=_milliseconds(started), **about,
    ))  # fmt: skip


def cannot_fit(measured: MeasuredRequest, started: float) -> None:
    """Emit the event of a request that cannot be made to fit."""
    listener = measured.settings.on_event
    if not listening(listener):
        return
    tokens, made = measured.tokens_before, measured.repaired.made
    emit(listener, FitEvent(
        outcome="cannot_fit", window=_window(measured), tokens_before=tokens, tokens_after=tokens,
        edits=0, new_edits=0, repairs=len(made.repairs) if made else 0,
        warnings=len(measured.warnings), milliseconds=_milliseconds(started), **_about(measured),
    ))  # fmt: skip


def _outcome(result: FitResult, report: Report) -> str:
    if result.step == AS_RECEIVED:
        return "original"
    if result.fell_back:
        return "fallback"
    if result.new:
        return "reduced"
    if result.applied:
        return "kept"
    return "repaired" if report.repairs else "unchanged"


def _about(measured: MeasuredRequest) -> dict[str, Any]:
    transcript = measured.transcript
    return {"format": transcript.format.name, "model": printable(transcript.facts.model)}


def _window(measured: MeasuredRequest) -> int | None:
    return None if measured.limits.window >= NO_WINDOW else measured.limits.window


def _milliseconds(started: float) -> float:
    return round(1000 * (time.perf_counter() - started), 3)
