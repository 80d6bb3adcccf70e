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
from trimtab.reporting.log import log_fit
from trimtab.request import pipeline
from trimtab.request.fitted import Fitted
from trimtab.request.pipeline import FitResult
from trimtab.request.received import TurnInputs
from trimtab.settings import Settings
from trimtab.summarizers.summarizer import Summarizer
from trimtab.telemetry import listening


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
        return self.result.measured.limits.is_client_request

    def warned(self, *warnings: str) -> Turn:
        """The turn with more warnings."""
        return replace(self, result=self.result.warned(*warnings))


def decide(request: Any, inputs: TurnInputs) -> Turn:
    """Fit one request.  Raises what ``trimtab.fit`` raises; stores nothing."""
    started = time.perf_counter()
    inputs = replace(inputs, settings=with_summarizer(inputs.settings))
    measured = pipeline.prepare(request, inputs)
    try:
        result = pipeline.run(measured)
    except CannotFit:
        fit_events.cannot_fit(measured, started)
        raise
    inputs.cache.keep_only(measured.received.transcript, measured.transcript)
    return Turn(result, pipeline.journal_after(result), started)


def reported(turn: Turn, originals: Mapping[str, str]) -> Fitted:
    """The result for the caller, logged and reported to listeners; ``originals`` by handle."""
    result, measured = turn.result, turn.result.measured
    fitted = Fitted(result, originals)
    loud = measured.new_repairs or result.is_refusal_expected or result.may_warn
    if loud or (result.new and "logging" in sys.modules):  # not imported: no log handler is set up
        log_fit(result, fitted)
    if listening(measured.settings.on_event):
        fit_events.fitted(result, fitted, turn.started)
    return fitted


def take_turn(request: Any, inputs: TurnInputs) -> tuple[Turn, Fitted, Journal]:
    """Decide and report a turn: the turn, its ``Fitted``, and the journal with originals."""
    turn, journal = decide(request, inputs), inputs.journal
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
