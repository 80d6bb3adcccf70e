"""An index of a recording: where identifiers and lines occur, which ones each model call needed.

Computed once for all policies and windows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

from trimtab.formats import rules
from trimtab.lazy import cached_property
from trimtab.logs.recording import RecordedTurn, Recording
from trimtab.transcript.model import Message
from trimtab_lab.replay.bill_estimate import TokenLine, fitted_line
from trimtab_lab.replay.message_views import CacheUnit, MessageView, MessageViews, transcript_of
from trimtab_lab.replay.truth.history import RecordedHistory


class Need(NamedTuple):
    """Identifiers and whole lines that the agent wrote in one turn and that occurred in the
    request.

    ``fresh``: the identifiers that occurred only in the results just received.
    """

    identifiers: tuple[str, ...]
    lines: tuple[str, ...]
    fresh: tuple[str, ...]


class RecordingIndex:
    """A recording with its views, postings and needs."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.store = MessageViews(recording.reader)
        self.views: list[MessageView] = self.store.all(recording.messages)
        self.turns: tuple[RecordedTurn, ...] = recording.turns
        self._sums = [0]
        for view in self.views:
            self._sums.append(self._sums[-1] + view.tokens)
        self.full_views = frozenset(map(id, self.views))

    @cached_property
    def head(self) -> tuple[CacheUnit, ...]:
        """System text and tool definitions, for sizes and the prefix cache."""
        blocks = self.recording.reader.read_head(self.recording.body(()))
        cost = self.store.usage.block_cost
        return tuple(CacheUnit(f"head:{block.digest}", cost(block)) for block in blocks)

    @cached_property
    def head_identifiers(self) -> Set[str]:
        """Identifiers of the system text, which no policy here removes."""
        return self._head_view.spans.keys() if self._head_view else frozenset()

    @cached_property
    def _head_view(self) -> MessageView | None:
        blocks = self.recording.reader.read_head(self.recording.body(()))
        texts = tuple(block for block in blocks if block.kind == "system")
        return MessageView(Message("system", texts), self.store.usage) if texts else None

    @cached_property
    def line(self) -> TokenLine | None:
        """From our tokens to the provider's, learned from the billed usage in the log; None where
        that has too few calls."""
        usages = ((turn, self.recording.usage(turn)) for turn in self.turns)
        return fitted_line([(self.tokens(turn), usage.prompt) for turn, usage in usages if usage])

    def room(self, window: int) -> int:
        """A window in the provider's tokens as one in ours, without the system text and tools that
        the log does not hold; 0 if those fill it.  Without a usage the window itself."""
        line = self.line
        return window if line is None else max(0, int((window - max(0.0, line.head)) / line.slope))

    @cached_property
    def history(self) -> RecordedHistory:
        """The steps and lines of the recording, for the judge of notes."""
        return RecordedHistory([view.message for view in self.views])

    @cached_property
    def identifiers(self) -> Mapping[str, list[int]]:
        """Identifier → numbers of the messages that contain it, ascending."""
        return _postings(view.spans for view in self.views)

    @cached_property
    def lines(self) -> Mapping[str, list[int]]:
        """Line → numbers of the messages that contain it, ascending."""
        return _postings(view.lines for view in self.views)

    @cached_property
    def needs(self) -> tuple[Need, ...]:
        """The needs of each turn, in the order of turns."""
        ends = [0, *(turn.end for turn in self.turns)]
        return tuple(self._need(turn, ends[n]) for n, turn in enumerate(self.turns))

    def _need(self, turn: RecordedTurn, answered: int) -> Need:
        identifiers: dict[str, None] = {}
        lines: dict[str, None] = {}
        for view in self.views[turn.sent : turn.end]:
            if view.message.role == "assistant":
                written = view.written()
                identifiers.update(dict.fromkeys(written.spans))
                lines.update(dict.fromkeys(written.lines))
        head = self.head_identifiers
        stood = tuple(
            a
            for a in identifiers
            if a in head or self.identifiers.get(a, [turn.sent])[0] < turn.sent
        )
        results = any(view.message.results for view in self.views[answered : turn.sent])
        fresh = (a for a in stood if a not in head and self.identifiers[a][0] >= answered > 0)
        return Need(
            stood,
            tuple(line for line in lines if self.lines.get(line, [turn.sent])[0] < turn.sent),
            tuple(fresh) if results else (),
        )

    def tokens(self, turn: RecordedTurn) -> int:
        """Size of the whole request of a turn."""
        return self._sums[turn.sent] + sum(unit.tokens for unit in self.head)

    def billed_tokens(self, turn: RecordedTurn) -> int:
        """The same in the provider's tokens, where the log says how it counts."""
        own = self.tokens(turn)
        return own if self.line is None else round(self.line.tokens(own))

    def newest(self, turn: RecordedTurn, tokens: int) -> int:
        """The index of the first of the newest messages that have ``tokens`` together.

        The message that crosses the border is included.
        """
        start = self._sums[turn.sent] - tokens
        return max(0, bisect_left(self._sums, start) - 1) if start > 0 else 0

    def last(self, postings: Sequence[int], turn: RecordedTurn) -> int:
        """The last message before a turn in a list of postings."""
        return postings[bisect_left(postings, turn.sent) - 1]

    @cached_property
    def broken(self) -> tuple[Counter[str], ...]:
        """For each turn, the rules that the recorded request itself breaks, and how often.

        Client logs are not always exactly what the client sent.
        """
        return tuple(self.violations(self.views[: turn.sent]) for turn in self.turns)

    def violations(self, views: Sequence[MessageView], body: Any = None) -> Counter[str]:
        """The rules that a request of these messages breaks, and how often."""
        body = self.recording.body(()) if body is None else body
        violations = rules.check(transcript_of(self.recording, body, views))
        return Counter(violation.rule for violation in violations)

    @cached_property
    def demands(self) -> tuple[tuple[int, str], ...]:
        """(message, sentence) of everything the user demanded."""
        return tuple((n, text) for n, view in enumerate(self.views) for text in view.demands)


def _postings(texts_by_message: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Text → numbers of the messages that contain it, ascending."""
    postings: dict[str, list[int]] = {}
    for number, texts in enumerate(texts_by_message):
        for text in texts:
            postings.setdefault(text, []).append(number)
    return postings
