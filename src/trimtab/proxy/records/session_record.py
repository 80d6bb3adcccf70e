"""What the dashboard knows of one session: its turns, edits, refusals and sums.

Counts, sizes and handles; of a request's text only the beginning of the first prompt, if the
settings allow it.  Bounded: the oldest are dropped first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trimtab.journal.archive import Archived
from trimtab.proxy.records.edit_words import of_call
from trimtab.proxy.records.request_record import RequestRecord
from trimtab.report import ReportEdit
from trimtab.request.fitted import Fitted, facts_of

TURNS = 1_000
TREND = 40
PROBLEM_SECONDS = 24 * 3_600.0
EDITS = 2_000


@dataclass(slots=True)
class EditRecord:
    """One edit of a session: its kind, when it was made, and what it saves on each turn."""

    handle: str
    kind: str
    why: str
    tool: str
    turn: int
    tokens_before: int
    tokens_after: int
    undone: int = 0
    """The turn from which on the original is sent again; 0 if it was not undone."""
    pinned: bool = False
    op: str = ""
    """Empty where a release wrote it that did not keep it."""
    steps: int = 0
    role: str = ""
    at: float = 0.0
    """When it was made, in seconds since 1970."""
    about: str = ""
    """The call whose result it shortens, in words, if the settings allow it."""

    @property
    def saved(self) -> int:
        """Tokens on each turn."""
        return self.tokens_before - self.tokens_after

    def as_edit(self) -> ReportEdit:
        """The edit as reports and histories have it."""
        op = self.op or (self.kind if self.kind in ("fold", "drop") else "replace")
        return ReportEdit(
            handle=self.handle, kind=self.kind, op=op, why=self.why, steps=self.steps,
            tokens_before=self.tokens_before, tokens_after=self.tokens_after,
            tool=self.tool or None, role=self.role, at=self.at or None, undone=self.undone > 0,
            new=False,
        )  # fmt: skip


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
    turns: deque[RequestRecord] = field(default_factory=lambda: deque(maxlen=TURNS))
    edits: OrderedDict[str, EditRecord] = field(default_factory=OrderedDict)
    count: int = 0
    stored: int = 0
    """Turns up to this number are in the store."""
    changed: set[str] = field(default_factory=set)
    """Handles of edits that were undone, pinned or unpinned since they were stored."""
    now: int = 0
    """Tokens of its last answered request."""
    window: int = 0
    """Tokens that the prompt of that request could have; 0 if unknown."""
    trend: tuple[int, ...] = ()
    """Tokens of its last answered requests, oldest first."""
    ratio: float = 1.0
    """The provider's tokens per one of ours, by its last answer."""
    paid: RequestRecord | None = None
    """Its last answered request of this run."""
    sums: Counter[str] = field(default_factory=Counter)
    """Over all turns: ``turns`` that were answered, ``failed``, ``arrived``, ``sent``, ``saved``,
    ``edits``, ``outgrown`` (larger than the provider takes), ``budgeted`` (larger than a window
    that is smaller), ``refused`` to the client, ``survived``, ``prompt``, ``cached``, ``lost``,
    ``output``.  In millionths of a dollar:
    ``paid``, by the usage that was reported; ``estimated`` and ``whole``, by a price table: the
    prompts as they were sent, and with everything sent."""
    in_force: tuple[str, ...] = ()
    """Handles of the edits that the last request had."""
    beginning: tuple[tuple[str, int], ...] = ()
    """Hashes of its last request (``prefix_breaks.beginning``)."""
    conversation: str = ""
    """Its id in the tenant's store; "" until its first request of this run."""
    steps: dict[str, str] = field(default_factory=dict)
    """What folds were about, in words, by handle; read from their originals, and never stored."""
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

    def failing(self, now: float) -> str:
        """Why its last request failed, within a day; "" if it was answered."""
        return self.problem if now - self.last < PROBLEM_SECONDS else ""

    @property
    def refusals(self) -> list[dict[str, Any]]:
        """The refusals of its turns, and what was done about each, oldest first."""
        return [
            {"when": turn.when, "turn": turn.number, "status": status, "kind": kind,
             "action": turn.refusal_outcome}
            for turn in self.turns
            for status, kind in turn.refusals
        ]  # fmt: skip

    def add(
        self,
        turn: RequestRecord,
        fits: Sequence[Fitted],
        learned_room: int | None = None,
        *,
        names_calls: bool = False,
    ) -> None:
        """Add a request made by these fits: more than one if it was refused in between.

        ``learned_room``: prompt tokens, in the provider's count, that learned limits allowed the
        first one.  ``names_calls``: whether calls may be named in what is kept of edits.
        """
        self.count += 1
        turn.number, self.last = self.count, turn.when
        self.turns.append(turn)
        first = facts_of(fits[0])  # those that follow a refusal have a window in our tokens
        turn.learned = learned_room or 0
        turn.window = min(filter(None, (first.room, learned_room)), default=0)
        turn.trigger = first.trigger * turn.window // max(first.room, turn.window, 1)
        for fitted in fits:
            self._take(turn, fitted, names_calls)

    def _take(self, turn: RequestRecord, fitted: Fitted, names_calls: bool) -> None:
        """Set what was sent on this turn, and record its new edits."""
        facts = facts_of(fitted)
        turn.sent = turn.kept = fitted.tokens_after
        turn.arrived = fitted.tokens_before
        self.conversation = fitted.conversation or self.conversation
        self.arm = fitted.arm or self.arm
        self.in_force = tuple(filter(None, facts.handles))
        turn.edits, turn.repairs = len(facts.handles), facts.repairs
        edits: Iterable[EditRecord | ReportEdit]
        if facts.made_edits or not all(handle in self.edits for handle in facts.handles):
            report = fitted.report
            turn.new += sum(edit.new for edit in report.edits)
            turn.rewritten = report.money.get("rewritten", 0)
            self._add_edits(turn, report.edits, fitted.archive if names_calls else ())
            edits = report.edits
        else:
            edits = (self.edits[handle] for handle in facts.handles)
        turn.kept = max(turn.sent - sum(edit.tokens_after for edit in edits), 0)

    def _add_edits(
        self, turn: RequestRecord, edits: Iterable[ReportEdit], archive: Iterable[Archived]
    ) -> None:
        """Record the edits that are new or unknown."""
        calls = {one.handle: one for one in archive}
        for edit in edits:
            if edit.handle and (edit.new or edit.handle not in self.edits):
                self.edits[edit.handle] = EditRecord(
                    edit.handle, edit.kind, edit.why, edit.tool or "", turn.number,
                    edit.tokens_before, edit.tokens_after, op=edit.op, steps=edit.steps,
                    role=edit.role, at=turn.when,
                    about=of_call(calls[edit.handle]) if edit.handle in calls else "",
                )  # fmt: skip
                while len(self.edits) > EDITS:
                    self.edits.popitem(last=False)

    def title_of(self, edit: EditRecord) -> str:
        """What was done, and to what: ``result of bash shortened: pytest -q``."""
        words = edit.as_edit().title
        about = self.steps.get(edit.handle) or edit.about
        if about and edit.steps:
            return about
        return f"{words}: {about}" if about else words

    def state(self, edit: EditRecord) -> str:
        """ "in force", "replaced" by another edit, "to be undone" on the next turn, or "undone"."""
        if edit.undone > self.count:
            return "to be undone"
        if edit.handle in self.in_force:
            return "in force"
        return "undone" if edit.undone else "replaced"
