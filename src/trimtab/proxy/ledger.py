"""What happened lately, for the dashboard and the line at the end: sessions, turns, edits.

Knows counts, sizes and handles; never what anything said.  Bounded: the oldest is forgotten first.
Totals are kept for as long as the proxy runs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtab.report import Report

SESSIONS = 300
TURNS = 1_000
EDITS = 2_000


@dataclass(slots=True)
class Edit:
    """One edit of a session: what it is, when it was made, what it saves on each turn."""

    handle: str
    kind: str
    op: str
    why: str
    tool: str
    turn: int
    tokens_before: int
    tokens_after: int
    loss: float
    refs: tuple[str, ...] = ()

    @property
    def saved(self) -> int:
        """Tokens on each turn."""
        return self.tokens_before - self.tokens_after


@dataclass(slots=True)
class Refusal:
    """One refusal by the provider, and what was done about it."""

    when: float
    turn: int
    status: int
    kind: str
    action: str


@dataclass(slots=True)
class Turn:
    """One request of a session and what became of it; all sizes in tokens."""

    number: int
    when: float
    arrived: int
    sent: int
    window: int
    trigger: int
    kept: int
    """Of what is sent: what stands as it came."""
    edits: int = 0
    new: int = 0
    repairs: int = 0
    status: int = 0
    sends: int = 1
    prompt: int = 0
    """As the provider counted it; 0 where it has not said."""
    cached: int = 0
    output: int = 0
    fit_ms: float = 0.0
    seconds: float = 0.0
    note: str = ""


@dataclass(slots=True)
class Session:
    """One conversation."""

    id: str
    tenant: str
    upstream: str
    format: str
    client: str
    hint: str
    began: float
    last: float
    model: str = ""
    turns: deque[Turn] = field(default_factory=lambda: deque(maxlen=TURNS))
    edits: OrderedDict[str, Edit] = field(default_factory=OrderedDict)
    refusals: deque[Refusal] = field(default_factory=lambda: deque(maxlen=200))
    count: int = 0
    saved: int = 0
    """Tokens that were not sent, over all turns: what stays cut is not sent again each turn."""

    @property
    def title(self) -> str:
        """What it is called in lists."""
        return self.hint or self.id

    def turn(self, report: Report, now: float) -> Turn:
        """A new turn with this report; its edits are kept."""
        self.count += 1
        self.last = now
        limits = report.limits
        turn = Turn(
            self.count, now, report.tokens_before, report.tokens_after,
            limits.get("capacity") or 0, limits.get("trigger_tokens") or 0,
            kept=max(report.tokens_after - sum(e.tokens_after for e in report.edits), 0),
            edits=len(report.edits), new=sum(e.new for e in report.edits),
            repairs=len(report.repairs),
        )  # fmt: skip
        self.turns.append(turn)
        self.note_edits(report, turn.number)
        return turn

    def note_edits(self, report: Report, number: int) -> None:
        """Keep the edits of a report that are not known yet."""
        for edit in report.edits:
            if edit.handle and edit.handle not in self.edits:
                self.edits[edit.handle] = Edit(
                    edit.handle, edit.kind, edit.op, edit.why, edit.tool or edit.role, number,
                    edit.tokens_before, edit.tokens_after, edit.loss, edit.refs,
                )  # fmt: skip
                while len(self.edits) > EDITS:
                    self.edits.popitem(last=False)


class Ledger:
    """All sessions, newest last, and totals."""

    def __init__(self) -> None:
        self.sessions: OrderedDict[str, Session] = OrderedDict()
        self.totals: Counter[str] = Counter()
        self.edit_kinds: Counter[str] = Counter()

    def session(
        self, id: str, *, tenant: str, upstream: str, format: str, client: str, hint: str,
        now: float,
    ) -> Session:  # fmt: skip
        """The session with this id, made if it is new."""
        found = self.sessions.pop(id, None)
        if found is None:
            found = Session(id, tenant, upstream, format, client, hint, now, now)
            self.totals["sessions"] += 1
        self.sessions[id] = found
        while len(self.sessions) > SESSIONS:
            self.sessions.popitem(last=False)
        return found

    def sent(self, session: Session, turn: Turn, new_kinds: Iterable[tuple[str, int]]) -> None:
        """Count a turn that was answered.  ``new_kinds``: kind and tokens saved of new edits."""
        saved = max(turn.arrived - turn.sent, 0)
        session.saved += saved
        self.totals["turns"] += 1
        self.totals["tokens_arrived"] += turn.arrived
        self.totals["tokens_sent"] += turn.sent
        self.totals["tokens_saved"] += saved
        self.totals["edits"] += turn.new
        self.totals["repairs"] += turn.repairs
        for kind, _ in new_kinds:
            self.edit_kinds[kind] += 1

    def billed(self, turn: Turn, prompt: int, cached: int, output: int) -> None:
        """What the provider said it counted."""
        turn.prompt, turn.cached, turn.output = prompt, cached, output
        self.totals["prompt_tokens"] += prompt
        self.totals["cached_tokens"] += cached
        self.totals["output_tokens"] += output

    def refused(self, session: Session, refusal: Refusal) -> None:
        """A refusal, and what was done: "recovered" ones are those that the client never saw."""
        session.refusals.append(refusal)
        self.totals["refusals"] += 1
        if refusal.action == "recovered":
            self.totals["refusals_survived"] += 1

    def line(self) -> str:
        """One line for the end of a run.

        ``trimtab: 12,400 of 81,000 tokens saved over 9 requests, 3 edits, 1 refusal survived``
        """
        t = self.totals
        if not t["turns"]:
            return "no request was fitted"
        parts = [f"{t['tokens_saved']:,} of {t['tokens_arrived']:,} tokens saved over "
                 f"{_many(t['turns'], 'request')}", _many(t["edits"], "edit")]  # fmt: skip
        if t["repairs"]:
            parts.append(_many(t["repairs"], "repair"))
        parts.append(f"{_many(t['refusals_survived'], 'refusal')} survived")
        return ", ".join(parts)


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
