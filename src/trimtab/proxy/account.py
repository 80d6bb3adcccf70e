"""What becomes of one request, told to the ledger, the metrics and the log.

Knows what is kept of a request.  Changes nothing about it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from trimtab.fitted import Fitted
from trimtab.proxy import logs
from trimtab.proxy.ledger import Ledger, Refusal, Session, Turn
from trimtab.proxy.metrics import Metrics
from trimtab.proxy.reading import Usage
from trimtab.refusals import classify

HUNG_UP = "the client hung up"


@dataclass
class Books:
    """Where it is told; ``clock``: seconds since the epoch."""

    ledger: Ledger = field(default_factory=Ledger)
    metrics: Metrics = field(default_factory=Metrics)
    clock: Callable[[], float] = time.time


class Account:
    """The story of one request."""

    def __init__(self, books: Books, upstream: str, operation: str) -> None:
        self._books, self.upstream, self.operation = books, upstream, operation
        self._began = time.perf_counter()
        self.of: Callable[[], Session] | None = None
        self.session: Session | None = None
        self.turn: Turn | None = None
        self.note = ""
        self.model = ""
        self.tree: Any = None
        """The parsed request: its first words name its conversation."""
        self.sends = 1
        self.usage = Usage()
        self._refusals: list[Refusal] = []
        self._kinds: list[str] = []
        books.metrics.in_flight += 1

    def fitted(self, fitted: Fitted, milliseconds: float, room: int | None) -> None:
        """The request was made to fit: it is a turn of its session."""
        if self.of is None:
            return
        if self.turn is not None and self.session is not None:  # another round of the same answer
            self._book(self.session, self.turn, 200)
        self.session = session = self.of()
        session.model = self.model or session.model
        self.turn = session.turn(fitted, self._books.clock(), room)
        self.turn.fit_ms = milliseconds
        self._seen(fitted)
        self._books.metrics.took("trimtab_fit_seconds", milliseconds / 1000)

    def refitted(self, fitted: Fitted) -> None:
        """It was made smaller, or mended, after a refusal."""
        self.sends += 1
        if self.turn is None or self.session is None:
            return
        self.turn.sends = self.sends
        self.session.sent(self.turn, fitted)
        self._seen(fitted)

    def _seen(self, fitted: Fitted) -> None:
        if fitted.changed:
            edits = fitted.report.edits
            self._kinds += [edit.kind for edit in edits if edit.new]

    def refused(self, status: int, error: object) -> None:
        """The provider refused; what was done is known at the end."""
        number = self.turn.number if self.turn else 0
        kind = classify(status, error).kind
        self._refusals.append(Refusal(self._books.clock(), number, status, kind, ""))

    def closed(self, status: int, *, error: str = "", first_byte: float = 0.0) -> None:
        """The end.  ``error``: what went wrong between us and the provider or the client."""
        books, seconds = self._books, time.perf_counter() - self._began
        books.metrics.in_flight -= 1
        labels = {"upstream": self.upstream, "kind": self.operation, "status": str(status)}
        books.metrics.count("trimtab_requests_total", **labels)
        books.metrics.took("trimtab_request_seconds", seconds)
        if first_byte:
            books.metrics.took("trimtab_first_byte_seconds", first_byte - self._began)
        if error or self.note == "fault":
            kind = "fault" if "fault" in (error, self.note) else "upstream"
            kind = "client" if error == HUNG_UP else kind
            books.metrics.count("trimtab_errors_total", kind=kind)
        facts: dict[str, object] = {"status": status, "seconds": round(seconds, 3)}
        if self.turn is not None and self.session is not None:
            turn = self.turn
            turn.seconds, turn.note = seconds, self.note or error
            self._book(self.session, turn, status)
            self._tell_refusals(recovered=0 < status < 400)
            facts |= {
                "session": self.session.id, "turn": turn.number, "tokens": turn.sent,
                "saved": turn.arrived - turn.sent, "edits": turn.edits, "new": turn.new,
                "sends": turn.sends, "fit_ms": round(turn.fit_ms, 1), "cached": turn.cached,
            }  # fmt: skip
        if error:
            facts["error"] = error
        level = logging.WARNING if error or status >= 500 else logging.INFO
        logs.say(f"{self.upstream} {self.operation}", level=level, **facts)

    def _book(self, session: Session, turn: Turn, status: int) -> None:
        """A turn has ended."""
        usage = self.usage
        turn.status, turn.prompt, turn.cached = status, usage.prompt, usage.cached
        turn.output = usage.output
        self._books.ledger.sent(session, turn, self._kinds)
        for kind in self._kinds:
            self._books.metrics.count("trimtab_edits_total", kind=kind)
        self._kinds = []

    def _tell_refusals(self, *, recovered: bool) -> None:
        assert self.session is not None
        for refusal in self._refusals:
            refusal.action = "recovered" if recovered else "passed on"
            self._books.ledger.refused(self.session, refusal)
            self._books.metrics.count(
                "trimtab_refusals_total", kind=refusal.kind, action=refusal.action
            )
