"""One turn of a conversation: fit a request, then report the result.

The caller keeps the journal.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trimtab.errors import CannotFit
from trimtab.journal.journal import Journal
from trimtab.reporting import fit_events
from trimtab.reporting.log import log_fit, may_warn
from trimtab.request import pipeline
from trimtab.request.fitted import Fitted
from trimtab.request.message_cache import MessageCache
from trimtab.request.pipeline import FitResult
from trimtab.request.prepared_request import PreparedRequest, SessionFacts
from trimtab.settings import Settings
from trimtab.summarizers.summarizer import Summarizer
from trimtab.telemetry import listening
from trimtab.transcript.protected import pinned


@dataclass(frozen=True)
class Turn:
    """The result of a turn, and the journal after it (without originals)."""

    result: FitResult
    journal: Journal
    started: float
    """``time.perf_counter()`` at its start."""

    @property
    def is_client_request(self) -> bool:
        """Whether the client made the request for itself (a title, a summary), beside the
        conversation."""
        return self.result.prepared.limits.is_client_request


def decide(
    request: Any,
    settings: Settings,
    cache: MessageCache,
    journal: Journal,
    facts: SessionFacts | None = None,
) -> Turn:
    """Fit one request.  Raises what ``trimtab.fit`` raises; stores nothing."""
    started = time.perf_counter()
    prepared = pipeline.prepare(request, with_summarizer(settings), cache, journal, facts)
    try:
        result = _run(prepared)
    except CannotFit:
        fit_events.cannot_fit(prepared, started)
        raise
    cache.keep_only(prepared.arrived, prepared.transcript)
    return Turn(result, pipeline.journal_after(result), started)


def _run(prepared: PreparedRequest) -> FitResult:
    """Make the request fit.

    Where pins are in the way, the model's notes give way first, then pins of the journal (set by
    ``pin`` or ``undo``) are released, the largest first.  Pins of the settings stay.  Raises
    CannotFit.
    """
    try:
        return pipeline.run(prepared)
    except CannotFit as error:
        if error.limit != "pin":
            raise
        refused = error
    if prepared.holds_notes and prepared.model_notes:
        result = _run(replace(prepared, holds_notes=False))
        prepared.warnings.append("the model's own notes gave way to the window")
        return result
    transcript, sizes = prepared.transcript, prepared.sizes
    blocks = {pin: pinned(transcript, [pin]) for pin in prepared.journal.pins}
    tokens = {
        pin: sum(sizes.block(transcript, transcript.refs[ref]) for ref in refs)
        for pin, refs in blocks.items()
        if refs
    }
    pins = sorted(tokens, key=lambda pin: (-tokens[pin], pin))
    over, freed, count = refused.minimum - refused.allowed, 0, 0
    while count < len(pins):
        while count < len(pins) and freed < over:
            freed, count = freed + tokens[pins[count]], count + 1
        released = tuple(pins[:count])
        journal = prepared.journal.pinned(released, pin=False)
        fewer = replace(prepared, journal=journal, released=released)
        try:
            result = pipeline.run(fewer)
        except CannotFit as error:
            over = freed + max(error.minimum - error.allowed, 1)
            continue
        prepared.warnings.append(
            f"pins gave way to the window: {count} of {len(pins)} pinned parts, {freed:,} tokens"
        )
        return result
    raise refused


def reported(turn: Turn, originals: Mapping[str, str]) -> Fitted:
    """The result for the caller, logged and reported to listeners; ``originals`` by handle."""
    result, prepared = turn.result, turn.result.prepared
    fitted = Fitted(result, originals)
    loud = prepared.new_repairs or result.is_refusal_expected or may_warn(result)
    if loud or (result.new and "logging" in sys.modules):  # not imported: no log handler is set up
        log_fit(result, fitted)
    if listening(prepared.settings.on_event):
        fit_events.fitted(result, fitted, turn.started)
    return fitted


def take_turn(
    request: Any,
    settings: Settings,
    cache: MessageCache,
    journal: Journal,
    facts: SessionFacts | None = None,
) -> tuple[Turn, Fitted, Journal]:
    """Decide and report a turn: the turn, its ``Fitted``, and the journal with originals."""
    turn = decide(request, settings, cache, journal, facts)
    originals = turn.result.originals
    if turn.is_client_request:  # not part of the conversation: its edits are not kept
        return turn, reported(turn, journal.originals | originals), journal
    after = turn.journal
    if after is not journal or originals.keys() - journal.originals.keys():
        after = after.add((), originals)
    return turn, reported(turn, after.originals), after


def with_summarizer(settings: Settings) -> Settings:
    """The settings with a plain summarizer function wrapped in a ``Summarizer``."""
    say = settings.summarizer
    if say is None or isinstance(say, Summarizer):
        return settings
    return settings | Settings(summarizer=Summarizer(say))
