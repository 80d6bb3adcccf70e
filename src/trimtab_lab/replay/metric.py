"""The metric: one row of numbers for each model call, from the recording and what a policy sent.

The result depends on the arguments alone.  ``CallMetrics`` documents each column;
docs/benchmark.md lists what the metric cannot measure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from trimtab.logs.recording import RecordedTurn
from trimtab_lab.replay import text_features
from trimtab_lab.replay.message_views import MessageView
from trimtab_lab.replay.policies import PolicyOutput
from trimtab_lab.replay.recording_index import RecordingIndex
from trimtab_lab.replay.searched_texts import SearchedTexts, plain_words
from trimtab_lab.replay.sent_sizes import SentSizes, same, seconds_before
from trimtab_lab.replay.truth import judge as truth

METRIC = 5
"""Incremented when rows of an earlier version can no longer be compared with new ones."""


SHOWN_CHARS, SHOWN_TURNS = 200, 500
"""Chars of the text around a loss that are kept; turns of a recording whose losses are shown."""


class CallMetrics(NamedTuple):
    """One model call under one policy.  All but ``gap`` are whole numbers.

    Sizes in o200k tokens: ``full`` of the whole request, ``tokens`` of the one sent, ``prefix`` of
    the blocks at its beginning that it shares with the previous request sent.  ``broke``: 0 if it
    begins with all blocks of the previous request sent (no cache break).  ``gap``: seconds since
    the last model call, −1 if unknown.  ``over``, ``invalid``, ``failed``: 0 or 1; invalid means
    that a rule is broken more often than in the recorded request.

    Pairs of counts, needed and still in the request (``…_kept``): ``need``, identifiers that the
    agent wrote in this turn; ``old``, those of them older than the newest window/2 tokens;
    ``ground`` (``wide``: with the context of g3), old ones with plain words beside them; ``line``,
    old lines written again; ``fresh``, identifiers that occurred only in the results just received;
    ``demand``, sentences in which the user demands something.

    ``lost``: missing identifiers; ``recoverable``: how many of them a handle gives back.  Missing
    identifiers and old lines are searched for with the plain words that the agent wrote next:
    ``sought`` counts them; ``found``: those in the first five passages found in what the policy
    removed; ``found_all``: in all originals.  ``asked_in``, ``asked_out``: tokens of the policy's
    own calls to a model.  ``goal``: the size in tokens that a batch was to reach; ``used``: how
    many of them it used.

    Of the notes first seen in this call: ``quoted``, lines whose source is known; ``quoted_true``,
    those that stand where they came from and still hold; ``edits``, recorded edits of files that
    the notes stand for; ``edits_shown``, those with a new line; ``edit_lines`` and
    ``edit_lines_placed``, new lines of edits, and those under their own file; ``stale``, lines that
    a later step of the note changed; ``call_like``, rows in the model's words that look like calls.
    ``cpu_us``: the policy's CPU time in microseconds.
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
    sought: int
    found: int
    found_all: int
    goal: int
    used: int
    quoted: int
    quoted_true: int
    edits: int
    edits_shown: int
    edit_lines: int
    edit_lines_placed: int
    stale: int
    call_like: int
    cpu_us: int


class LostIdentifier(NamedTuple):
    """A needed identifier that was not sent: where it occurred last, and the text that replaced it
    ("" if none)."""

    identifier: str
    message: int
    kind: str
    tool: str
    line: str
    now: str = ""


@dataclass
class JudgedRecording:
    """Rows of one recording under one policy, and what was lost where."""

    rows: list[CallMetrics] = field(default_factory=list)
    losses: dict[int, list[LostIdentifier]] = field(default_factory=dict)
    """Turn → needed identifiers that were not in its request."""
    errors: Counter[str] = field(default_factory=Counter)


_OF_NOTES = (
    truth.QUOTED, truth.TRUE, truth.EDITS, truth.SHOWN, truth.EDITED, truth.PLACED, truth.STALE,
    truth.CALLS,
)  # fmt: skip
"""The counts of notes, in the order of the columns."""


class PolicyAnswer(NamedTuple):
    """A policy's result for one turn; if it raised, ``sent`` is None and ``error`` the reason."""

    sent: PolicyOutput | None
    seconds: float
    error: str = ""


class Judge:
    """Judges one policy at one window over one recording, turn by turn."""

    def __init__(self, index: RecordingIndex, window: int) -> None:
        self.index, self.window = index, window
        self.done = JudgedRecording()
        self._sizes = SentSizes(index)
        self._recoverable: set[str] = set()
        self._notes = truth.NoteJudge(index.history)
        self._taken_out, self._all = SearchedTexts(), SearchedTexts()
        self._read = 0
        self._tools: dict[str, str] = {
            call.id: call.tool for view in index.views for call in view.message.calls
        }

    def turn(self, number: int, answer: PolicyAnswer) -> list[MessageView]:
        """Judge one turn; return the messages sent, as views."""
        index, turn = self.index, self.index.turns[number]
        full = index.views[: turn.sent]
        views, body, error = full, None, answer.error
        if answer.sent is not None:
            try:
                body = answer.sent.request
                views = self._sizes.views(body, full)
            except Exception as problem:  # counts as if the policy had raised
                error = f"unreadable: {type(problem).__name__}"
                views, body = full, None
        if error:
            self.done.errors[error] += 1
        head = self._sizes.head(body)
        tokens, prefix, broke = self._sizes.add(head, views)
        need, losses, lost_lines = self._need(number, turn, views)
        if losses:
            self.done.losses[number] = losses
        if answer.sent is not None:
            self._remember(answer.sent.originals)
        calls = answer.sent.calls if answer.sent is not None else ()
        after, goal = (answer.sent and answer.sent.room) or (0, 0)
        unchanged = views is full and (body is None or head == index.head)
        broken = (
            Counter[str]() if unchanged else index.violations(views, body) - index.broken[number]
        )
        row = [
            number, index.tokens(turn), tokens, prefix, int(broke),
            seconds_before(index.recording, number),
            int(tokens > self.window), int(bool(broken)), int(bool(error)),
            *need, *self._demands(turn, views), len(losses),
            sum(loss.identifier in self._recoverable for loss in losses),
            sum(asks for asks, _ in calls), sum(said for _, said in calls),
            *self._searched(turn, [*(loss.identifier for loss in losses), *lost_lines]),
            goal, min(after, goal), *self._truth(turn, views), round(answer.seconds * 1e6),
        ]  # fmt: skip
        self.done.rows.append(CallMetrics._make(row))
        return views

    # --- what still stands --------------------------------------------------------------------

    def _need(
        self, number: int, turn: RecordedTurn, views: Sequence[MessageView]
    ) -> tuple[tuple[int, ...], list[LostIdentifier], list[str]]:
        index, need = self.index, self.index.needs[number]
        border = index.newest(turn, self.window // 2)
        head = index.head_identifiers
        whole = len(views) == turn.sent and all(map(same, views, index.views))
        sent_views = None if whole else {id(view): view for view in views}
        losses: list[LostIdentifier] = []
        old = old_kept = ground = ground_kept = wide = wide_kept = kept = 0
        for identifier in need.identifiers:
            stands = (
                sent_views is None
                or identifier in head
                or any(identifier in v.spans for v in views)
            )
            kept += stands
            if not stands:
                losses.append(self._loss(identifier, turn, views))
            if identifier in head or index.last(index.identifiers[identifier], turn) >= border:
                continue
            old, old_kept = old + 1, old_kept + stands
            asked, is_there = self._grounded(identifier, turn, sent_views, wide=False)
            ground, ground_kept = ground + asked, ground_kept + (stands and is_there)
            asked, is_there = self._grounded(identifier, turn, sent_views, wide=True)
            wide, wide_kept = wide + asked, wide_kept + (stands and is_there)
        old_lines = [x for x in need.lines if index.last(index.lines[x], turn) < border]
        lost_lines = [
            x for x in old_lines if sent_views is not None and not any(x in v.lines for v in views)
        ]
        lines_kept = len(old_lines) - len(lost_lines)
        lost = {loss.identifier for loss in losses}
        fresh_kept = sum(identifier not in lost for identifier in need.fresh)
        counts = (
            len(need.identifiers), kept, old, old_kept, ground, ground_kept, wide, wide_kept,
            len(old_lines), lines_kept, len(need.fresh), fresh_kept,
        )  # fmt: skip
        return counts, losses, lost_lines

    def _searched(self, turn: RecordedTurn, lost: Sequence[str]) -> tuple[int, int, int]:
        """(strings lost, those that a search finds in what was removed, those that it finds in all
        earlier messages)."""
        views = self.index.views
        said = "\n".join(p.text for view in views[turn.sent : turn.end] for p in view.pieces)
        words = plain_words(said)
        if not lost or not words:
            return 0, 0, 0
        for number in range(self._read, turn.sent):
            self._all.add(str(number), "\n".join(piece.text for piece in views[number].pieces))
        self._read = max(self._read, turn.sent)
        hits = sum(self._taken_out.holds(one, words) for one in lost)
        return len(lost), hits, sum(self._all.holds(one, words) for one in lost)

    def _grounded(
        self,
        identifier: str,
        turn: RecordedTurn,
        sent_views: Mapping[int, MessageView] | None,
        *,
        wide: bool,
    ) -> tuple[bool, bool]:
        """(whether ``identifier`` had words beside it, whether it still has them somewhere)."""
        postings = self.index.identifiers[identifier]
        stood = [self.index.views[n] for n in postings[: bisect_left(postings, turn.sent)]]
        originals = [
            (view, context)
            for view in stood
            for context in view.contexts(identifier, wide=wide)
            if text_features.can_ground(context)
        ]
        if not originals:
            return False, False
        if sent_views is None or any(id(view) in sent_views for view, _ in originals):
            return True, True
        match = text_features.surrounds if wide else text_features.grounds
        contexts = {context for _, context in originals}
        recorded = self.index.full_views
        for view in sent_views.values():
            # The recording's own messages were checked above.
            if id(view) not in recorded and identifier in view.spans:
                for now in view.contexts(identifier, wide=wide):
                    if any(match(then, now) for then in contexts):
                        return True, True
        return True, False

    def _loss(
        self, identifier: str, turn: RecordedTurn, views: Sequence[MessageView]
    ) -> LostIdentifier:
        number = self.index.last(self.index.identifiers[identifier], turn)
        view = self.index.views[number]
        piece_number, span = view.spans[identifier][-1]
        piece = view.pieces[piece_number]
        start = piece.text.rfind("\n", 0, span.start) + 1
        end = piece.text.find("\n", span.end)
        line = piece.text[start : end if end >= 0 else None]
        tool = piece.tool or self._tools.get(piece.call_id, "")
        now = self._now(view, piece.call_id, views) if len(self.done.losses) < SHOWN_TURNS else ""
        return LostIdentifier(identifier, number, piece.kind, tool, line.strip()[:SHOWN_CHARS], now)

    def _now(self, view: MessageView, call_id: str, views: Sequence[MessageView]) -> str:
        """The beginning of the text that replaced a result or call in the request that was sent."""
        recorded = self.index.full_views
        kind = {piece.kind for piece in view.pieces if piece.call_id == call_id}
        for other in views if call_id else ():
            if id(other) not in recorded:
                for piece in other.pieces:
                    if piece.call_id == call_id and piece.kind in kind:
                        return piece.text[:SHOWN_CHARS]
        return ""

    def _demands(self, turn: RecordedTurn, views: Sequence[MessageView]) -> tuple[int, int]:
        demands = [(n, text) for n, text in self.index.demands if n < turn.sent]
        if not demands:
            return 0, 0
        present = {id(view) for view in views}
        missing = [text for n, text in demands if id(self.index.views[n]) not in present]
        recorded = self.index.full_views
        changed = [view for view in views if id(view) not in recorded]
        other_texts = [view.squeezed for view in changed] if missing else []
        lost = sum(not any(text in other for other in other_texts) for text in missing)
        return len(demands), len(demands) - lost

    def _truth(self, turn: RecordedTurn, views: Sequence[MessageView]) -> list[int]:
        """The counts of the notes in a request that were not in one before."""
        before = self._notes.tally.copy()
        if any(id(view) not in self.index.full_views for view in views):
            self._notes.read([view.message for view in views], turn.sent)
        return [self._notes.tally[name] - before[name] for name in _OF_NOTES]

    def _remember(self, originals: Mapping[str, str]) -> None:
        for handle, text in originals.items():
            plain = text_features.plain_text(text)
            self._taken_out.add(handle, plain)
            self._recoverable.update(span.identifier for span in text_features.spans(plain))
