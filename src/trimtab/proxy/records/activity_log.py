"""Recent sessions, for the dashboard, and totals for the line at the end of a run.

Bounded: the oldest session is forgotten first.  Totals are kept for as long as the proxy runs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass

from trimtab.amounts import many
from trimtab.pricing import models, outcome
from trimtab.pricing.prices import Prices
from trimtab.proxy.records.gateway_calls import GatewayCalls
from trimtab.proxy.records.request_record import RequestRecord
from trimtab.proxy.records.savings import prompt_dollars
from trimtab.proxy.records.session_record import TREND, SessionRecord

SESSIONS = 300
WARNINGS = 50
MILLION = 1_000_000


@dataclass(slots=True)
class WarmTotals:
    """What keep-warm cost and saved, in US dollars at list prices.  ``hits`` counts conversations
    that continued after their cache would have expired, and read it."""

    pings: int = 0
    hits: int = 0
    spent: float = 0.0
    saved: float = 0.0

    def __str__(self) -> str:
        pings, caches = many(self.pings, "ping"), many(self.hits, "cache")
        return f"{pings} kept {caches} warm: {self.saved:.2f} $ saved for {self.spent:.2f} $"


class ActivityLog:
    """All sessions, newest last, and totals."""

    def __init__(self) -> None:
        self.sessions: OrderedDict[str, SessionRecord] = OrderedDict()
        self.totals: Counter[str] = Counter()
        self.prices: Prices | None = None
        """The price table that savings are estimated by."""
        self.warm = WarmTotals()
        self.gateways = GatewayCalls()
        self.warnings: OrderedDict[str, int] = OrderedDict()
        """Warnings about limits that are not in force as configured, with the number of
        requests."""

    def warn(self, text: str) -> bool:
        """Keep a warning, moved to the end; returns whether it is new."""
        count = self.warnings.pop(text, 0)
        self.warnings[text] = count + 1
        while len(self.warnings) > WARNINGS:
            self.warnings.popitem(last=False)
        return not count

    def session(
        self, id: str, *, tenant: str, upstream: str, format: str, client: str, hint: str,
        now: float,
    ) -> SessionRecord:  # fmt: skip
        """The session with this id; a new one is created."""
        record = self.sessions.pop(id, None)
        if record is None:
            record = SessionRecord(id, tenant, upstream, format, client, hint, now, now)
        self.sessions[id] = record
        while len(self.sessions) > SESSIONS:
            self.sessions.popitem(last=False)
        return record

    def ended(self, session: SessionRecord, turn: RequestRecord, dollars: float = 0.0) -> None:
        """Count a turn that has ended, in the provider's tokens if it reported them.

        A turn without an answer counts as failed and saves nothing.  ``dollars``: the list price of
        the usage that was reported.
        """
        session.ratio = turn.in_their_tokens(session.ratio)
        self.totals["refusals"] += len(turn.refusals)
        for sums in (session.sums, self.totals):
            if turn.was_refused or 0 < limit_of(session, turn) < turn.arrived:
                sums["outgrown"] += 1
            elif turn.answered and 0 < turn.window < turn.arrived:
                sums["budgeted"] += 1
            if turn.was_refused and not turn.answered:
                sums["refused"] += 1
        if not turn.answered:
            session.sums["failed"] += 1
            self.totals["failed"] += 1
            if turn.new:  # edits stay: its client's next attempt finds them
                session.sums["edits"] += turn.new
                self.totals["edits"] += turn.new
            return
        estimated = whole = 0.0
        if self.prices is not None:
            estimated, whole = prompt_dollars(self.prices, session.model, session.paid, turn)
        session.paid = turn
        counted = {
            "turns": 1, "arrived": turn.arrived, "sent": turn.sent, "saved": turn.saved,
            "edits": turn.new, "prompt": turn.prompt, "cached": turn.cached, "lost": turn.lost,
            "output": turn.output, "survived": len(turn.refusals), "paid": round(dollars * MILLION),
            "estimated": round(estimated * MILLION), "whole": round(whole * MILLION),
        }  # fmt: skip
        session.sums.update(counted)
        session.now, session.window = turn.sent, turn.window
        session.trend = (*session.trend, turn.sent)[-TREND:]
        self.totals.update(counted)
        self.totals["repairs"] += turn.repairs

    def line(self) -> str:
        """One line for the end of a run.

        ``trimtab: 4 of 9 requests would have been refused; all were answered. 12,400 of 81,000
        tokens saved over 9 requests, 3 edits, 1 refusal hidden from the client``
        """
        t = self.totals
        failed = f"{many(t['failed'], 'request')} failed"
        if not t["turns"]:
            return failed if t["failed"] else "no request came"
        parts = [f"{t['saved']:,} of {t['arrived']:,} tokens saved over "
                 f"{many(t['turns'], 'request')}"]  # fmt: skip
        if t["edits"]:
            parts.append(many(t["edits"], "edit"))
        if t["survived"]:
            parts.append(f"{many(t['survived'], 'refusal')} hidden from the client")
        if t["failed"]:
            parts.append(failed)
        if self.prices is not None and self.money:
            parts.append(f"about {self.money} than without ({self.prices.name})")
        if self.warm.pings:
            parts.append(str(self.warm))
        first = f"{outcome_of(t)} " if t["outgrown"] else ""
        return first + ", ".join(parts)

    @property
    def money(self) -> str:
        """``$1.25 less``, ``$0.03 more``; "" where none was counted."""
        saved = self.totals["whole"] - self.totals["estimated"]
        return outcome.difference(-saved / MILLION, 0.0) if saved else ""


def outcome_of(sums: Counter[str]) -> str:
    """The first sentence of a report, for the sums of one session or of many."""
    calls = sums["turns"] + sums["refused"]
    if sums["budgeted"] and not sums["outgrown"]:
        return outcome.within_budget(sums["budgeted"], calls)
    return outcome.refusals(sums["outgrown"], calls, sums["refused"])


def money_of(sums: Counter[str]) -> str:
    """The second sentence: what the prompts cost compared with everything sent, by a price table;
    without one what was paid, by the usage that was reported; "" where neither is known."""
    if sums["whole"]:
        other = "with everything sent" + (" and nothing refused" if sums["outgrown"] else "")
        return outcome.money(sums["estimated"] / MILLION, sums["whole"] / MILLION, other)
    paid = outcome.dollars(sums["paid"] / MILLION)
    return f"The requests cost {paid} at list prices." if sums["paid"] else ""


def limit_of(session: SessionRecord, turn: RequestRecord) -> int:
    """The largest prompt that the provider takes: what a refusal taught, else the model's window,
    else the window that was set; 0 if none is known."""
    model = models.find(session.model) if session.model and not turn.learned else None
    return model.input_tokens if model is not None else turn.learned or turn.window
