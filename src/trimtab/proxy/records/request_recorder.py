"""Records the course of one request in the activity log, the metrics and the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trimtab.errors import StoreError
from trimtab.proxy.http.answer_usage import TokenUsage
from trimtab.proxy.records import logs
from trimtab.proxy.records.activity_log import ActivityLog
from trimtab.proxy.records.metrics import TOKEN_KINDS, Metrics
from trimtab.proxy.records.prefix_breaks import beginning, note_break
from trimtab.proxy.records.recent_requests import RecentRequests, RequestRecord, RequestTexts
from trimtab.proxy.records.session_history import SessionHistory
from trimtab.proxy.records.session_record import (
    RefusalRecord,
    SessionRecord,
    TurnRecord,
    meaning,
)
from trimtab.proxy.records.session_title import first_prompt, folder
from trimtab.proxy.records.usage_ledger import UsageLedger
from trimtab.request.fitted import Fitted
from trimtab.retry.refusals import classify
from trimtab.stores.tenant import TenantStore
from trimtab.telemetry import fault

HUNG_UP = "the client hung up"


@dataclass
class ProxyRecords:
    """What the proxy keeps about its requests; ``clock``: seconds since the epoch."""

    activity: ActivityLog = field(default_factory=ActivityLog)
    metrics: Metrics = field(default_factory=Metrics)
    clock: Callable[[], float] = time.time
    ledger: UsageLedger = field(default_factory=UsageLedger)
    requests: RecentRequests = field(default_factory=RecentRequests)
    history: SessionHistory = field(default_factory=SessionHistory)

    def connect(
        self, usage: TenantStore, history: TenantStore | None, *, keeps_texts: bool
    ) -> None:
        """Set the stores of bills and of sessions.  ``keeps_texts``: keep requests' texts in
        memory."""
        self.ledger.store, self.history.store = usage, history
        self.requests.keeps_texts = keeps_texts

    def read_history(self) -> None:
        """Load the sessions of earlier runs.  Runs in a worker thread."""
        try:
            sessions = self.history.read()
        except StoreError as error:
            fault("store", error)
            return
        for session in sessions:
            self.activity.sessions.setdefault(session.id, session)

    def writing(self, facts: Mapping[str, Any]) -> Callable[[], None]:
        """A function that stores everything new, and these facts; call it in a worker thread."""
        self.history.collect(self.activity)

        def write() -> None:
            self.ledger.write(facts)
            self.history.write()

        return write


class RequestRecorder:
    """Records one request."""

    def __init__(
        self, records: ProxyRecords, upstream: str, operation: str, path: str = "", client: str = ""
    ) -> None:
        self._records, self.upstream, self.operation = records, upstream, operation
        self._path, self._client = path, client
        self._number, self._when = records.requests.next_number(), records.clock()
        self.texts: RequestTexts | None = None
        """Set only if the texts of requests are kept."""
        self._began = time.perf_counter()
        self.open_session: Callable[[], SessionRecord] | None = None
        self.session: SessionRecord | None = None
        self.turn: TurnRecord | None = None
        self.note = ""
        self.model = ""
        self.tree: Any = None
        """The parsed request; the session's title is made from it."""
        self.sends = 1
        self.usage = TokenUsage()
        self._refusals: list[RefusalRecord] = []
        self._kinds: list[str] = []
        records.metrics.answering(1)

    def fitted(self, fitted: Fitted, milliseconds: float, room: int | None) -> None:
        """Record that the request was fitted; it becomes a turn of its session."""
        if self.open_session is None:
            return
        look_up = self.turn is not None  # another round of the same answer
        if self.turn is not None and self.session is not None:
            self._close_turn(self.session, self.turn, 200)
        self.session = session = self.open_session()
        if self._records.requests.keeps_texts and not session.prompt:
            session.prompt, session.project = first_prompt(self.tree), folder(self.tree)
        session.model, session.arm = self.model or session.model, fitted.arm or session.arm
        self.turn = session.turn(fitted, self._records.clock(), room)
        self.turn.look_up = look_up
        self.turn.fit_ms, self.turn.request = milliseconds, self._number
        self._count_new(fitted)
        self._records.metrics.took("trimtab_fit_seconds", milliseconds / 1000)

    def warn(self, text: str) -> None:
        """Record a limit that is not in force as configured: logged once, shown on the
        dashboard."""
        if self._records.activity.warn(text):
            logs.say(text, level=logging.WARNING)

    def refitted(self, fitted: Fitted) -> None:
        """Record that the request was made smaller or repaired after a refusal."""
        self.sends += 1
        if self.turn is None or self.session is None:
            return
        self.turn.sends = self.sends
        self.session.sent(self.turn, fitted)
        self._count_new(fitted)

    def _count_new(self, fitted: Fitted) -> None:
        if fitted.made_edits:
            self._kinds += [edit.kind for edit in fitted.report.edits if edit.new]

    def refused(self, status: int, error: object) -> None:
        """Record a refusal; its outcome is known when the request ends."""
        number = self.turn.number if self.turn else 0
        kind = classify(status, error).kind
        self._refusals.append(RefusalRecord(self._records.clock(), number, status, kind, ""))

    def closed(self, status: int, *, error: str = "", first_byte: float = 0.0) -> None:
        """Record the end.  ``error``: what went wrong between us and the provider or the client."""
        records, seconds = self._records, time.perf_counter() - self._began
        records.metrics.answering(-1)
        labels = {"upstream": self.upstream, "kind": self.operation, "status": str(status)}
        records.metrics.count("trimtab_requests_total", **labels)
        records.metrics.took("trimtab_request_seconds", seconds)
        if first_byte:
            records.metrics.took("trimtab_first_byte_seconds", first_byte - self._began)
        if error or self.note == "fault":
            kind = "fault" if "fault" in (error, self.note) else "upstream"
            kind = "client" if error == HUNG_UP else kind
            records.metrics.count("trimtab_errors_total", kind=kind)
        facts: dict[str, object] = {"status": status, "seconds": round(seconds, 3)}
        if self.turn is not None and self.session is not None:
            turn = self.turn
            turn.seconds, turn.note = seconds, self.note or error
            broke_off = bool(error) and error != HUNG_UP and status < 400
            self._close_turn(self.session, turn, 502 if broke_off else status)
            self._record_refusals(recovered=turn.answered)
            facts |= {
                "session": self.session.id, "turn": turn.number, "tokens": turn.sent,
                "saved": max(turn.arrived - turn.sent, 0), "edits": turn.edits, "new": turn.new,
                "sends": turn.sends, "fit_ms": round(turn.fit_ms, 1), "cached": turn.cached,
            }  # fmt: skip
        if error:
            facts["error"] = error
        self._record_request(status, error, seconds, first_byte)
        level = logging.WARNING if error or status >= 500 else logging.INFO
        logs.say(f"{self.upstream} {self.operation}", level=level, **facts)

    def _record_request(self, status: int, error: str, seconds: float, first_byte: float) -> None:
        """Add the request to the recent ones, and its failure to its session."""
        turn, session = self.turn, self.session
        record = RequestRecord(
            self._number, self._when, self.upstream, self._path, self.operation, self._client,
            self.model, session.id if session else "", status, seconds,
            first_byte - self._began if first_byte else 0.0, sends=self.sends, texts=self.texts,
        )  # fmt: skip
        if turn is not None:
            record.arrived, record.sent = turn.arrived, turn.sent
        record.prompt, record.cached = self.usage.prompt, self.usage.cached
        record.output = self.usage.output
        if record.failed or error:
            kinds = [refusal.kind for refusal in self._refusals if refusal.kind != "other"]
            refused = f"refused: {meaning(kinds[-1])}" if kinds else ""
            record.problem = error or refused or f"the provider answered {status}"
        if session is not None:
            session.problem = record.problem
        self._records.requests.add(record)

    def _close_turn(self, session: SessionRecord, turn: TurnRecord, status: int) -> None:
        """Complete a turn and count it."""
        usage = self.usage
        turn.status, turn.prompt, turn.cached = status, usage.prompt, usage.cached
        turn.output, turn.written = usage.output, usage.written
        turn.diagnosis = usage.diagnosis
        if turn.answered and usage.prompt:
            note_break(session, turn, beginning(self.tree))
        self._records.activity.sent(session, turn, self._kinds)
        if usage.prompt and 0 < status < 400:
            self._records.ledger.add(
                f"{session.upstream}/{session.id}", agent=agent_of(session.client),
                upstream=session.upstream, arm=session.arm, when=turn.when,
                arrived=turn.arrived, usage=usage.call(session.model), tenant=session.tenant,
                look_up=turn.look_up,
            )  # fmt: skip
        metrics = self._records.metrics
        for kind in self._kinds:
            metrics.count("trimtab_edits_total", kind=kind)
        self._kinds = []
        if not turn.answered:
            return
        saved = max(turn.arrived - turn.sent, 0)
        tokens = (turn.arrived, turn.sent, saved, turn.prompt, turn.cached, turn.output)
        for kind, number in zip(TOKEN_KINDS, tokens, strict=True):
            metrics.count_tokens(kind, number)

    def _record_refusals(self, *, recovered: bool) -> None:
        assert self.session is not None
        for refusal in self._refusals:
            refusal.action = "recovered" if recovered else "passed on"
            self._records.activity.refused(self.session, refusal)
            self._records.metrics.count(
                "trimtab_refusals_total", kind=refusal.kind, action=refusal.action
            )


def agent_of(client: str) -> str:
    """The program that a ``User-Agent`` names: ``claude-cli/2.1 (external)`` → ``claude-cli``."""
    return client.partition("/")[0].partition(" ")[0] or "unknown"
