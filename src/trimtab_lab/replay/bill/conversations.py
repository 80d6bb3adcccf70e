"""Conversations read from logs, with the billed usage of each model call.

A conversation that its client compacted is logged in parts.  A resumed session is logged twice; its
calls are counted once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from trimtab.lazy import cached_property
from trimtab.logs.recording import Recording
from trimtab.pricing.call_usage import CallUsage
from trimtab_lab.replay.recording_index import RecordingIndex

MIN_VISIBLE = 40
SHORT_OUTPUT = 0.5
"""Some clients log the usage before the answer has ended.  If our count of the visible answer is at
least MIN_VISIBLE tokens and the logged output is below this share of it, the output counts as not
measured."""


@dataclass(frozen=True)
class BilledCall:
    """One model call: the number of its part and of the answer's first message in it.

    ``again``: the call was already counted in another log; ``output_measured``: whether the logged
    output covers the whole answer.
    """

    part: int
    answer: int
    when: float | None
    usage: CallUsage
    again: bool = False
    output_measured: bool = True

    @property
    def day(self) -> str:
        """``2026-01-28`` (UTC); "" if the log has no times."""
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
        """The calls that were not already counted in another log."""
        return [call for call in self.calls if not call.again]

    @property
    def model(self) -> str:
        """The model that most of the calls went to."""
        names = [call.usage.model for call in self.calls]
        return max(names, key=names.count) if names else ""

    def joined(self) -> tuple[Recording, list[int]]:
        """(all parts as one recording, without the messages that compactions inserted; the index in
        it at which each part's own messages begin)."""
        first, messages, times, starts = self.parts[0], list[object](), list[float | None](), []
        for part in self.parts:
            starts.append(len(messages))
            messages += part.messages[part.carried :]
            part_times = part.times or (None,) * len(part.messages)
            times += part_times[part.carried :]
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
    billed.sort(key=lambda conversation: (_began(conversation.parts), conversation.id))
    seen: set[str] = set()
    for conversation in billed:
        conversation.calls = list(_calls(conversation, seen))
    return billed


def _began(parts: Sequence[Recording]) -> float:
    return next((time for part in parts for time in part.times if time is not None), 0.0)


def _calls(conversation: BilledConversation, seen: set[str]) -> Iterator[BilledCall]:
    for number, part in enumerate(conversation.parts):
        for turn in part.turns:
            if turn.sent < part.carried:
                continue
            usage = part.usage(turn)
            if usage is None:
                conversation.unmeasured += 1
                continue
            again = bool(usage.id) and usage.id in seen
            seen.add(usage.id)
            visible = sum(
                view.written().tokens
                for view in conversation.indexes[number].views[turn.sent : turn.end]
                if view.message.role == "assistant"
            )
            whole = visible < MIN_VISIBLE or usage.output >= SHORT_OUTPUT * visible
            when = part.times[turn.sent] if part.times else None
            yield BilledCall(number, turn.sent, when, usage, again, whole)
