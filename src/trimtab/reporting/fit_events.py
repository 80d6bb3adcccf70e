"""The result of a fit as events: one for the request, one for each new edit.

Events contain outcomes and figures, never texts.
"""

from __future__ import annotations

import time
from typing import Any

from trimtab.events import EditEvent, FitEvent, printable
from trimtab.report import Report
from trimtab.request.fitted import Fitted
from trimtab.request.pipeline import FitResult
from trimtab.request.prepared_request import PreparedRequest
from trimtab.settings import NO_WINDOW
from trimtab.telemetry import emit, listening


def fitted(result: FitResult, done: Fitted, started: float) -> None:
    """Emit the events of one request; ``started``: ``time.perf_counter()`` before it."""
    prepared = result.prepared
    listener = prepared.settings.on_event
    if not listening(listener):
        return
    about, report = _about(prepared), done.report
    new = [edit for edit in report.edits if edit.new]
    for edit in new:
        emit(listener, EditEvent(
            kind=edit.kind, op=edit.op, role=edit.role, tool=printable(edit.tool),
            tokens_before=edit.tokens_before, tokens_after=edit.tokens_after, loss=edit.loss,
            **about,
        ))  # fmt: skip
    emit(listener, FitEvent(
        outcome=_outcome(result, report), window=_window(prepared),
        tokens_before=report.tokens_before, tokens_after=report.tokens_after,
        edits=len(report.edits), new_edits=len(new), repairs=len(report.repairs),
        warnings=len(report.warnings), milliseconds=_milliseconds(started), **about,
    ))  # fmt: skip


def cannot_fit(prepared: PreparedRequest, started: float) -> None:
    """Emit the event of a request that cannot be made to fit."""
    listener = prepared.settings.on_event
    if not listening(listener):
        return
    tokens = prepared.sizes.measure(prepared.arrived)
    emit(listener, FitEvent(
        outcome="cannot_fit", window=_window(prepared), tokens_before=tokens, tokens_after=tokens,
        edits=0, new_edits=0, repairs=len(prepared.repairs.repairs) if prepared.repairs else 0,
        warnings=len(prepared.warnings), milliseconds=_milliseconds(started), **_about(prepared),
    ))  # fmt: skip


def _outcome(result: FitResult, report: Report) -> str:
    if result.step == "original":
        return "original"
    if result.step not in ("", "planned"):
        return "fallback"
    if result.new:
        return "reduced"
    if result.applied:
        return "kept"
    return "repaired" if report.repairs else "unchanged"


def _about(prepared: PreparedRequest) -> dict[str, Any]:
    transcript = prepared.transcript
    return {"format": transcript.format.name, "model": printable(transcript.facts.model)}


def _window(prepared: PreparedRequest) -> int | None:
    return None if prepared.limits.window >= NO_WINDOW else prepared.limits.window


def _milliseconds(started: float) -> float:
    return round(1000 * (time.perf_counter() - started), 3)
