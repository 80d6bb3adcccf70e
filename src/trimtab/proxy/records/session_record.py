"""What the dashboard knows of one session: its turns, edits, refusals and sums.

Counts, sizes and handles; of a request's text only the beginning of the first prompt, if the
settings allow it.  Bounded: the oldest are dropped first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeVar

from trimtab.proxy.records.savings import RequestSizes
from trimtab.report import ReportEdit
from trimtab.request.fitted import Fitted

TURNS = 1_000
EDITS = 2_000
Row = TypeVar("Row")


def as_row(record: Any) -> dict[str, Any]:
    """A record as JSON-able data, without fields that have their default."""
    row = {}
    for attribute in fields(record):
        value = getattr(record, attribute.name)
        if isinstance(value, (str, int, float, tuple)) and (
            attribute.default is MISSING or value != attribute.default
        ):
            row[attribute.name] = value
    return row


def from_row(kind: type[Row], row: Mapping[str, Any]) -> Row:
    """The record that ``as_row`` wrote.  Raises TypeError if a field is missing."""
    names = {attribute.name for attribute in fields(kind) if attribute.init}  # type: ignore[arg-type]
    read = {name: tuple(v) if isinstance(v, list) else v for name, v in row.items()}
    return kind(**{name: value for name, value in read.items() if name in names})


@dataclass(slots=True)
class EditRecord:
    """One edit of a session: its kind, when it was made, and what it saves on each turn."""

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
    undone: int = 0
    """The turn from which on the original is sent again; 0 if it was not undone."""
    pinned: bool = False

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


_MEANINGS = {
    "too_long": "too many tokens", "too_large": "too large", "rate": "too many requests",
    "invalid_pairing": "tool calls and results do not match", "invalid_other": "an invalid request",
}  # fmt: skip


def meaning(kind: str) -> str:
    """A refusal's kind in words."""
    return _MEANINGS.get(kind, kind.replace("_", " "))


@dataclass(slots=True)
class TurnRecord:
    """One request of a session and its outcome; all sizes in tokens."""

    number: int
    when: float
    arrived: int = 0
    sent: int = 0
    window: int = 0
    """Tokens that a prompt may have; 0 if unknown."""
    trigger: int = 0
    kept: int = 0
    """Of what is sent: the part that is unchanged."""
    edits: int = 0
    new: int = 0
    rewritten: int = 0
    """Of what is sent: the part behind the first new edit; 0 without a price table."""
    repairs: int = 0
    status: int = 0
    sends: int = 1
    prompt: int = 0
    """The prompt as the provider counted it; 0 if it reported nothing."""
    cached: int = 0
    written: int = 0
    output: int = 0
    fit_ms: float = 0.0
    seconds: float = 0.0
    note: str = ""
    lost: int = 0
    """Tokens that had been in the provider's cache and were not read from it."""
    cause: str = ""
    """Why they were not (``prefix_breaks``)."""
    diagnosis: str = ""
    """What the provider itself reports on its cache (``tools_changed``); "" if it does not."""
    look_up: bool = False
    """Whether it is a further round of one answer: the model reads what it looked up."""
    request: int = 0
    """Its number among the recent requests of this run; 0 for an earlier run."""

    @property
    def answered(self) -> bool:
        """Whether the provider answered."""
        return 0 < self.status < 400

    def in_their_tokens(self, before: float = 1.0) -> float:
        """Convert the sizes to the provider's tokens.  Returns the provider's tokens per one of
        ours. ``before``: the ratio of the turn before, used if the provider reported no prompt
        size."""
        if not self.answered:
            return before
        ratio = self.prompt / self.sent if self.prompt and self.sent else before
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
    """The arm of an experiment (the setting ``control``); "" without one."""
    prompt: str = ""
    """The first line of its first prompt, if the settings allow it."""
    project: str = ""
    """The folder that its agent works in, if its first request names it."""
    problem: str = ""
    """Why its last request failed; "" if it was answered."""
    turns: deque[TurnRecord] = field(default_factory=lambda: deque(maxlen=TURNS))
    edits: OrderedDict[str, EditRecord] = field(default_factory=OrderedDict)
    refusals: deque[RefusalRecord] = field(default_factory=lambda: deque(maxlen=200))
    count: int = 0
    now: int = 0
    """Tokens of its last answered request."""
    ratio: float = 1.0
    """The provider's tokens per one of ours, by its last answer."""
    paid: RequestSizes | None = None
    """The sizes of its last answered request."""
    sums: Counter[str] = field(default_factory=Counter)
    """Over all turns: ``turns`` that were answered, ``failed``, ``arrived``, ``sent``, ``saved``,
    ``edits``, ``survived``, ``prompt``, ``cached``, ``lost``, ``output``."""
    in_force: tuple[str, ...] = ()
    """Handles of the edits that the last request had."""
    beginning: tuple[tuple[str, int], ...] = ()
    """Hashes of its last request (``prefix_breaks.beginning``)."""
    conversation: str = ""
    """Its id in the tenant's store; "" until its first request of this run."""
    loaded: bool = True
    """Whether its turns and edits are in memory; else they are in the store only."""

    @property
    def title(self) -> str:
        """The title shown in lists."""
        return self.prompt or self.hint or self.id

    @property
    def saved(self) -> int:
        """Tokens that were not sent, over all turns: what stays cut is not sent again each turn."""
        return self.sums["saved"]

    def turn(self, fitted: Fitted, now: float, room: int | None = None) -> TurnRecord:
        """Add a turn with this result.  ``room``: prompt tokens that learned limits allow."""
        self.count += 1
        self.last = now
        turn = TurnRecord(self.count, now)
        self.turns.append(turn)
        self.sent(turn, fitted, room)
        return turn

    def sent(self, turn: TurnRecord, fitted: Fitted, room: int | None = None) -> None:
        """Set what is sent on this turn, and record its new edits."""
        turn.sent = turn.kept = fitted.tokens_after
        turn.window, turn.trigger = fitted.capacity, fitted.trigger
        if room and (not turn.window or room < turn.window):
            share = turn.trigger / turn.window if turn.window else 1.0
            turn.window, turn.trigger = room, int(room * share)
        turn.arrived = fitted.tokens_before
        self.conversation = fitted.conversation or self.conversation
        self.in_force = tuple(filter(None, fitted.handles))
        turn.edits, turn.repairs = len(fitted.handles), fitted.repairs
        edits: Iterable[EditRecord | ReportEdit]
        if fitted.made_edits or not all(handle in self.edits for handle in fitted.handles):
            report = fitted.report
            turn.new += sum(edit.new for edit in report.edits)
            turn.rewritten = report.money.get("rewritten", 0)
            self._add_edits(turn.number, report.edits)
            edits = report.edits
        else:
            edits = (self.edits[handle] for handle in fitted.handles)
        turn.kept = max(turn.sent - sum(edit.tokens_after for edit in edits), 0)

    def _add_edits(self, number: int, edits: Iterable[ReportEdit]) -> None:
        """Record the edits that are new or unknown; ``number``: their turn."""
        for edit in edits:
            if edit.handle and (edit.new or edit.handle not in self.edits):
                self.edits[edit.handle] = EditRecord(
                    edit.handle, edit.kind, edit.op, edit.why, edit.tool or edit.role, number,
                    edit.tokens_before, edit.tokens_after, edit.loss, edit.refs,
                )  # fmt: skip
                while len(self.edits) > EDITS:
                    self.edits.popitem(last=False)

    def state(self, edit: EditRecord) -> str:
        """ "in force", "replaced" by another edit, "to be undone" on the next turn, or "undone"."""
        if edit.undone > self.count:
            return "to be undone"
        if edit.handle in self.in_force:
            return "in force"
        return "undone" if edit.undone else "replaced"
