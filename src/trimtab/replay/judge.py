"""The metric: from a recording and what a policy sent on each turn to one row a turn.

A pure function of its arguments; no policy, clock or file is known here.  Every engine uses it.
What each column means is written at ``Row``; docs/benchmark.md says what it can't tell.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from trimtab.replay import atoms
from trimtab.replay.index import Index
from trimtab.replay.policies import Sent
from trimtab.replay.recording import Turn
from trimtab.replay.views import Unit, View, Views

METRIC = 1
"""Raised whenever rows of an earlier version can no longer stand beside new ones."""


SHOWN_CHARS, SHOWN_TURNS = 200, 500
"""How much is kept of a line that lost something, and for how many turns of a recording."""


class Row(NamedTuple):
    """One model call under one policy.  All but ``gap`` are whole numbers.

    Sizes in o200k tokens: ``full`` of the whole request, ``tokens`` of the one sent, ``prefix``
    of the blocks at its beginning that are those of the request sent before, ``broke`` 0 where
    the request sent before is wholly among them (no cache break).  ``gap``: seconds since the
    last model call, −1 unknown.  ``over``, ``invalid``, ``failed``: 0 or 1; invalid means that a
    rule is broken more often than in the recorded request.  Then pairs of "asked for" and "still
    there": identifiers the agent wrote in the turn (``need``), those of them older than the
    newest window/2 tokens (``old``), old ones by which plain words stood (``ground``, ``wide``
    with the context of g3), old lines written again (``line``), identifiers that stood only in
    the results just received (``fresh``), sentences with a demand of the user (``demand``);
    ``lost`` identifiers and how many of them a handle gives back.  ``asked_in``, ``asked_out``:
    tokens of the policy's own calls to a model.  ``cpu_us``: its time in microseconds.
    """

    turn: int
    full: int
    tokens: int
    prefix: int
    broke: int
    gap: float
    over: int
    invalid: int
    failed: int
    need: int
    need_kept: int
    old: int
    old_kept: int
    ground: int
    ground_kept: int
    wide: int
    wide_kept: int
    line: int
    line_kept: int
    fresh: int
    fresh_kept: int
    demand: int
    demand_kept: int
    lost: int
    recoverable: int
    asked_in: int
    asked_out: int
    cpu_us: int


class Loss(NamedTuple):
    """An identifier that no longer stands: where it stood last, and what stands there now ("" if
    nothing does)."""

    atom: str
    message: int
    kind: str
    tool: str
    line: str
    now: str = ""


@dataclass
class Judged:
    """Rows of one recording under one policy, and what they don't hold: what was lost where."""

    rows: list[Row] = field(default_factory=list)
    lost_by: Counter[str] = field(default_factory=Counter)
    """"tool kind" → identifiers lost, one count for each turn that needed one."""
    losses: dict[int, list[Loss]] = field(default_factory=dict)
    """Turn → what it needed and did not find."""
    errors: Counter[str] = field(default_factory=Counter)


class Answer(NamedTuple):
    """What a policy gave for one turn: None and an error where it raised."""

    sent: Sent | None
    seconds: float
    error: str = ""


class Judge:
    """Judges one policy at one window over one recording, turn by turn."""

    def __init__(self, index: Index, window: int) -> None:
        self.index, self.window = index, window
        self.done = Judged()
        self._store = Views(index.recording.reader, index.store)
        self._before: list[View] | None = None
        self._head_before: tuple[Unit, ...] = ()
        self._heads: dict[int, tuple[Any, tuple[Unit, ...]]] = {}
        self._recoverable: set[str] = set()
        self._tools: dict[str, str] = {
            call.id: call.tool for view in index.views for call in view.message.calls
        }

    def turn(self, number: int, answer: Answer) -> list[View]:
        """Judge one turn; returns what was sent as views."""
        index, turn = self.index, self.index.turns[number]
        full = index.views[: turn.sent]
        views, body, error = full, None, answer.error
        if answer.sent is not None:
            try:
                body = answer.sent.request
                listed = body[index.recording.reader.base(body)[0]]
                views = self._store.all(listed)
                if len(views) == len(full) and all(map(_same, views, full)):
                    views = full
            except Exception as problem:  # a body that is none counts like a policy that raised
                error = f"unreadable: {type(problem).__name__}"
                views, body = full, None
        if error:
            self.done.errors[error] += 1
        head = self._head(body)
        tokens = sum(unit.tokens for unit in head) + sum(view.tokens for view in views)
        prefix, broke = self._prefix(head, views)
        need, losses = self._need(number, turn, views)
        if losses:
            self.done.losses[number] = losses
            for loss in losses:
                role = index.views[loss.message].message.role
                self.done.lost_by[f"{loss.tool or role} {loss.kind}"] += 1
        if answer.sent is not None:
            self._remember(answer.sent.originals)
        calls = answer.sent.calls if answer.sent is not None else ()
        unchanged = views is full and (body is None or head == index.head)
        broken = (
            Counter[str]() if unchanged else index.violations(views, body) - index.broken[number]
        )
        row = [
            number, index.tokens(turn), tokens, prefix, int(broke), self._gap(number),
            int(tokens > self.window), int(bool(broken)), int(bool(error)),
            *need, *self._demands(turn, views), len(losses),
            sum(loss.atom in self._recoverable for loss in losses),
            sum(asked for asked, _ in calls), sum(said for _, said in calls),
            round(answer.seconds * 1e6),
        ]  # fmt: skip
        self.done.rows.append(Row._make(row))
        self._before, self._head_before = views, head
        return views

    # --- sizes and the prefix -----------------------------------------------------------------

    def _head(self, body: Any) -> tuple[Unit, ...]:
        if body is None:
            return self.index.head
        reader = self.index.recording.reader
        kept = [body.get(key) for key in reader.head_keys]
        own = self.index.recording.body(())
        if all(given is own.get(key) for given, key in zip(kept, reader.head_keys, strict=True)):
            return self.index.head
        blocks = reader.read_head(body)
        cost = self._store.usage.block_cost
        return tuple(Unit(f"head:{block.digest}", cost(block)) for block in blocks)

    def _prefix(self, head: tuple[Unit, ...], views: Sequence[View]) -> tuple[int, bool]:
        """Tokens that stand at the beginning of both requests; whether the older one goes on."""
        before = self._before
        if before is None:
            return 0, False
        if head != self._head_before:
            return _shared(head, self._head_before), True
        tokens = sum(unit.tokens for unit in head)
        for number, (new, old) in enumerate(zip(views, before, strict=False)):
            if new is not old:
                rest = [unit for view in before[number:] for unit in view.units]
                now = [unit for view in views[number : number + 2] for unit in view.units]
                shared = _shared(now, rest)
                return tokens + shared, shared < sum(unit.tokens for unit in rest)
            tokens += new.tokens
        return tokens, len(views) < len(before)

    def _gap(self, number: int) -> float:
        times, turns = self.index.recording.times, self.index.turns
        if not times or number == 0:
            return -1.0
        now, last = times[turns[number].sent], times[turns[number - 1].sent]
        return max(0.0, now - last) if now is not None and last is not None else -1.0

    # --- what still stands --------------------------------------------------------------------

    def _need(
        self, number: int, turn: Turn, views: Sequence[View]
    ) -> tuple[tuple[int, ...], list[Loss]]:
        index, need = self.index, self.index.needs[number]
        border = index.newest(turn, self.window // 2)
        head = index.head_atoms
        whole = len(views) == turn.sent and all(map(_same, views, index.views))
        shown = None if whole else {id(view): view for view in views}
        losses: list[Loss] = []
        old = old_kept = ground = ground_kept = wide = wide_kept = kept = 0
        for atom in need.atoms:
            stands = shown is None or atom in head or any(atom in v.spans for v in views)
            kept += stands
            if not stands:
                losses.append(self._loss(atom, turn, views))
            if atom in head or index.last(index.atoms[atom], turn) >= border:
                continue
            old, old_kept = old + 1, old_kept + stands
            asked, found = self._grounded(atom, turn, shown, wide=False)
            ground, ground_kept = ground + asked, ground_kept + (stands and found)
            asked, found = self._grounded(atom, turn, shown, wide=True)
            wide, wide_kept = wide + asked, wide_kept + (stands and found)
        old_lines = [x for x in need.lines if index.last(index.lines[x], turn) < border]
        lines_kept = sum(shown is None or any(x in v.lines for v in views) for x in old_lines)
        lost = {loss.atom for loss in losses}
        fresh_kept = sum(atom not in lost for atom in need.fresh)
        counts = (
            len(need.atoms), kept, old, old_kept, ground, ground_kept, wide, wide_kept,
            len(old_lines), lines_kept, len(need.fresh), fresh_kept,
        )  # fmt: skip
        return counts, losses

    def _grounded(
        self, atom: str, turn: Turn, shown: Mapping[int, View] | None, *, wide: bool
    ) -> tuple[bool, bool]:
        """(whether words stood by it at all, whether they still do somewhere)."""
        postings = self.index.atoms[atom]
        stood = [self.index.views[n] for n in postings[: bisect_left(postings, turn.sent)]]
        originals = [
            (view, context)
            for view in stood
            for context in view.contexts(atom, wide=wide)
            if atoms.can_ground(context)
        ]
        if not originals:
            return False, False
        if shown is None or any(id(view) in shown for view, _ in originals):
            return True, True
        match = atoms.surrounds if wide else atoms.grounds
        contexts = {context for _, context in originals}
        own = self.index.full_views
        for view in shown.values():
            # The recording's own messages were asked above: none grounds it.
            if id(view) not in own and atom in view.spans:
                for now in view.contexts(atom, wide=wide):
                    if any(match(then, now) for then in contexts):
                        return True, True
        return True, False

    def _loss(self, atom: str, turn: Turn, views: Sequence[View]) -> Loss:
        number = self.index.last(self.index.atoms[atom], turn)
        view = self.index.views[number]
        piece_number, span = view.spans[atom][-1]
        piece = view.pieces[piece_number]
        start = piece.text.rfind("\n", 0, span.start) + 1
        end = piece.text.find("\n", span.end)
        line = piece.text[start : end if end >= 0 else None]
        tool = piece.tool or self._tools.get(piece.call_id, "")
        now = self._now(view, piece.call_id, views) if len(self.done.losses) < SHOWN_TURNS else ""
        return Loss(atom, number, piece.kind, tool, line.strip()[:SHOWN_CHARS], now)

    def _now(self, view: View, call_id: str, views: Sequence[View]) -> str:
        """The beginning of what stands for a result or call in the request that was sent."""
        own = self.index.full_views
        kind = {piece.kind for piece in view.pieces if piece.call_id == call_id}
        for other in views if call_id else ():
            if id(other) not in own:
                for piece in other.pieces:
                    if piece.call_id == call_id and piece.kind in kind:
                        return piece.text[:SHOWN_CHARS]
        return ""

    def _demands(self, turn: Turn, views: Sequence[View]) -> tuple[int, int]:
        asked = [(n, text) for n, text in self.index.demands if n < turn.sent]
        if not asked:
            return 0, 0
        present = {id(view) for view in views}
        gone = [text for n, text in asked if id(self.index.views[n]) not in present]
        own = self.index.full_views
        rest = [view.squeezed for view in views if id(view) not in own] if gone else []
        lost = sum(not any(text in other for other in rest) for text in gone)
        return len(asked), len(asked) - lost

    def _remember(self, originals: Mapping[str, str]) -> None:
        for text in originals.values():
            self._recoverable.update(span.atom for span in atoms.spans(atoms.plain_text(text)))


def _same(one: object, other: object) -> bool:
    return one is other


def _shared(new: Sequence[Unit], old: Sequence[Unit]) -> int:
    """Tokens of the equal units at the beginning of both."""
    tokens = 0
    for one, other in zip(new, old, strict=False):
        if one.key != other.key:
            break
        tokens += other.tokens if one.tokens >= other.tokens else one.tokens
    return tokens
