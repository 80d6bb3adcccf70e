"""Recent sessions, turns, edits and refusals, for the dashboard and the line at the end of a run.

Counts, sizes and handles only; never text of a request.  Bounded: the oldest is forgotten first.
Totals are kept for as long as the proxy runs.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from trimtab.fitted import Fitted
from trimtab.proxy.savings import RequestSizes, SavingsEstimator

SESSIONS = 300
TURNS = 1_000
EDITS = 2_000


@dataclass(slots=True)
class EditRecord:
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
class RefusalRecord:
    """One refusal by the provider, and what was done about it."""

    when: float
    turn: int
    status: int
    kind: str
    action: str


@dataclass(slots=True)
class TurnRecord:
    """One request of a session and what became of it; all sizes in tokens."""

    number: int
    when: float
    arrived: int = 0
    sent: int = 0
    window: int = 0
    """Tokens that a prompt may have; 0 where nobody knows."""
    trigger: int = 0
    kept: int = 0
    """Of what is sent: what stands as it came."""
    edits: int = 0
    new: int = 0
    rewritten: int = 0
    """Of what is sent: what stands behind the first new edit; 0 without a price table."""
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

    def in_their_tokens(self) -> float:
        """Sizes as the provider counts, once it has said what it counted of what was sent; how
        many of its tokens one of ours is, 0 where it did not say."""
        if not (self.prompt and self.sent) or self.status >= 400:
            return 0.0
        ratio = self.prompt / self.sent
        for name in ("arrived", "sent", "window", "trigger", "kept", "rewritten"):
            setattr(self, name, round(getattr(self, name) * ratio))
        return ratio


@dataclass(slots=True)
class SessionRecord:
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
    arm: str = ""
    """Of an experiment (the setting ``control``); "" without one."""
    turns: deque[TurnRecord] = field(default_factory=lambda: deque(maxlen=TURNS))
    edits: OrderedDict[str, EditRecord] = field(default_factory=OrderedDict)
    refusals: deque[RefusalRecord] = field(default_factory=lambda: deque(maxlen=200))
    count: int = 0
    ratio: float = 1.0
    """The provider's tokens per one of ours, as its last answer had it."""
    paid: RequestSizes | None = None
    """Its last request that was answered."""
    saved: int = 0
    """Tokens that were not sent, over all turns: what stays cut is not sent again each turn."""

    @property
    def title(self) -> str:
        """What it is called in lists."""
        return self.hint or self.id

    def turn(self, fitted: Fitted, now: float, room: int | None = None) -> TurnRecord:
        """A new turn with this result.  ``room``: tokens that a refusal taught are the most."""
        self.count += 1
        self.last = now
        turn = TurnRecord(self.count, now)
        self.turns.append(turn)
        self.sent(turn, fitted, room)
        return turn

    def sent(self, turn: TurnRecord, fitted: Fitted, room: int | None = None) -> None:
        """What is sent on this turn; edits that are not known yet are kept."""
        turn.sent = turn.kept = fitted.tokens_after
        turn.window, turn.trigger = fitted.capacity, fitted.trigger
        if room and (not turn.window or room < turn.window):
            share = turn.trigger / turn.window if turn.window else 1.0
            turn.window, turn.trigger = room, int(room * share)
        turn.arrived = fitted.tokens_before
        if not fitted.changed:
            return
        report = fitted.report
        turn.kept = max(turn.sent - sum(edit.tokens_after for edit in report.edits), 0)
        turn.edits, turn.repairs = len(report.edits), len(report.repairs)
        turn.new += sum(edit.new for edit in report.edits)
        turn.rewritten = report.money.get("rewritten", 0)
        number = turn.number
        for edit in report.edits:
            if edit.handle and edit.handle not in self.edits:
                self.edits[edit.handle] = EditRecord(
                    edit.handle, edit.kind, edit.op, edit.why, edit.tool or edit.role, number,
                    edit.tokens_before, edit.tokens_after, edit.loss, edit.refs,
                )  # fmt: skip
                while len(self.edits) > EDITS:
                    self.edits.popitem(last=False)


@dataclass(slots=True)
class WarmTotals:
    """What keeping caches warm came to, in US dollars at list prices: ``hits`` are conversations
    that went on after their cache would have expired, and read it."""

    pings: int = 0
    hits: int = 0
    spent: float = 0.0
    saved: float = 0.0

    def __str__(self) -> str:
        pings = "1 ping" if self.pings == 1 else f"{self.pings:,} pings"
        bought = "1 cache" if self.hits == 1 else f"{self.hits:,} caches"
        return f"{pings} kept {bought} warm: {self.saved:.2f} $ saved for {self.spent:.2f} $"


class ActivityLog:
    """All sessions, newest last, and totals."""

    def __init__(self) -> None:
        self.sessions: OrderedDict[str, SessionRecord] = OrderedDict()
        self.totals: Counter[str] = Counter()
        self.edit_kinds: Counter[str] = Counter()
        self.savings: SavingsEstimator | None = None
        self.dollars = 0.0
        """Saved, as far as the prices of models are known; 0 without a price table."""
        self.warm = WarmTotals()

    def session(
        self, id: str, *, tenant: str, upstream: str, format: str, client: str, hint: str,
        now: float,
    ) -> SessionRecord:  # fmt: skip
        """The session with this id, made if it is new."""
        found = self.sessions.pop(id, None)
        if found is None:
            found = SessionRecord(id, tenant, upstream, format, client, hint, now, now)
            self.totals["sessions"] += 1
        self.sessions[id] = found
        while len(self.sessions) > SESSIONS:
            self.sessions.popitem(last=False)
        return found

    def sent(self, session: SessionRecord, turn: TurnRecord, new_kinds: Iterable[str]) -> None:
        """Count a turn that has ended, in the provider's tokens where it said how many these were.

        ``new_kinds``: the kind of each new edit.
        """
        session.ratio = turn.in_their_tokens() or session.ratio
        saved = max(turn.arrived - turn.sent, 0)
        session.saved += saved
        if self.savings is not None and 0 < turn.status < 400:
            now = RequestSizes(turn.when, turn.arrived, turn.sent, turn.rewritten)
            self.dollars += self.savings.saved(session.model, session.paid, now)
            session.paid = now
        self.totals["turns"] += 1
        self.totals["tokens_arrived"] += turn.arrived
        self.totals["tokens_sent"] += turn.sent
        self.totals["tokens_saved"] += saved
        self.totals["edits"] += turn.new
        self.totals["repairs"] += turn.repairs
        self.edit_kinds.update(new_kinds)
        self.totals["prompt_tokens"] += turn.prompt
        self.totals["cached_tokens"] += turn.cached
        self.totals["output_tokens"] += turn.output

    def refused(self, session: SessionRecord, refusal: RefusalRecord) -> None:
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
        if self.savings is not None and self.dollars:
            parts.append(f"about {self.money} saved ({self.savings.prices.name})")
        if self.warm.pings:
            parts.append(str(self.warm))
        return ", ".join(parts)

    @property
    def money(self) -> str:
        """``1.25 US dollars``; "" where none was counted."""
        if self.savings is None or not self.dollars:
            return ""
        return f"{self.dollars:,.{2 if abs(self.dollars) >= 1 else 4}f} US dollars"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
