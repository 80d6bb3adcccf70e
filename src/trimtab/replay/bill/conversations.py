"""Conversations out of logs, with what each model call of theirs was billed.

A conversation that its client compacted is logged in parts; a session that is taken up again is
logged twice, and its calls are counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property

from trimtab.pricing.call_usage import CallUsage
from trimtab.replay.recording import Recording
from trimtab.replay.recording_index import RecordingIndex

LEAST_VISIBLE = 40
SHORT_OUTPUT = 0.5
"""Some clients log a usage before the answer has ended.  An output that is less than this share of
our own count of the visible answer (of more than so many tokens) was not measured."""


@dataclass(frozen=True)
class BilledCall:
    """One model call: the number of its part and of the answer's first message in it.

    ``again``: it was counted in another log; ``output_measured``: whether the output is that of
    the whole answer.
    """

    part: int
    answer: int
    when: float | None
    usage: CallUsage
    again: bool = False
    output_measured: bool = True

    @property
    def day(self) -> str:
        """``2026-01-28`` (UTC); "" where the log has no times."""
        return "" if self.when is None else f"{datetime.fromtimestamp(self.when, UTC):%Y-%m-%d}"


@dataclass
class BilledConversation:
    """One conversation: its parts in order, and its calls in order."""

    id: str
    agent: str
    source: str
    parts: list[Recording]
    calls: list[BilledCall] = field(default_factory=list)
    unmeasured: int = 0
    """Model calls for which the log has no usage."""

    @cached_property
    def indexes(self) -> tuple[RecordingIndex, ...]:
        """The parts with their sizes."""
        return tuple(RecordingIndex(part) for part in self.parts)

    @property
    def counted(self) -> list[BilledCall]:
        """Its calls without those that were counted in another log."""
        return [call for call in self.calls if not call.again]

    @property
    def model(self) -> str:
        """The model most of its calls went to."""
        names = [call.usage.model for call in self.calls]
        return max(names, key=names.count) if names else ""

    def joined(self) -> tuple[Recording, list[int]]:
        """All parts as one recording without what compactions put in place of earlier messages,
        and where each part's own messages begin in it."""
        first, messages, times, starts = self.parts[0], list[object](), list[float | None](), []
        for part in self.parts:
            starts.append(len(messages))
            messages += part.messages[part.carried :]
            own = part.times or (None,) * len(part.messages)
            times += own[part.carried :]
        return first.renamed(
            id=self.id, messages=messages, times=tuple(times) if any(times) else (), usages=()
        ), starts


def conversations(recordings: Iterable[Recording]) -> list[BilledConversation]:
    """Every conversation with at least one billed call, oldest first."""
    by_id: dict[tuple[str, str], list[Recording]] = {}
    for recording in recordings:
        key = recording.origin, recording.session or recording.id
        by_id.setdefault(key, []).append(recording)
    billed = [
        BilledConversation(id, parts[0].agent or "other", parts[0].source, parts)
        for (_, id), parts in by_id.items()
    ]
    billed.sort(key=lambda one: (_began(one.parts), one.id))
    seen: set[str] = set()
    for one in billed:
        one.calls = list(_calls(one, seen))
    return billed


def _began(parts: Sequence[Recording]) -> float:
    return next((time for part in parts for time in part.times if time is not None), 0.0)


def _calls(one: BilledConversation, seen: set[str]) -> Iterator[BilledCall]:
    for number, part in enumerate(one.parts):
        for turn in part.turns:
            if turn.sent < part.carried:
                continue
            usage = part.usage(turn)
            if usage is None:
                one.unmeasured += 1
                continue
            again = bool(usage.id) and usage.id in seen
            seen.add(usage.id)
            said = sum(
                view.written().tokens
                for view in one.indexes[number].views[turn.sent : turn.end]
                if view.message.role == "assistant"
            )
            whole = said < LEAST_VISIBLE or usage.output >= SHORT_OUTPUT * said
            when = part.times[turn.sent] if part.times else None
            yield BilledCall(number, turn.sent, when, usage, again, whole)
