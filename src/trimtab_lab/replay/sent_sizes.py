"""The size of each request of a recording as sent, and of the prefix it shares with the previous.

A prefix cache compares blocks from the beginning; sizes are in o200k tokens, as in the metric.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from trimtab.logs.recording import Recording
from trimtab_lab.replay.message_views import CacheUnit, MessageView, MessageViews
from trimtab_lab.replay.recording_index import RecordingIndex


class SentSize(NamedTuple):
    """Tokens of a request; of the prefix that the previous request had too; ``broke``: whether that
    prefix is not the whole previous request (a cache break)."""

    tokens: int
    prefix: int
    broke: bool


class SentSizes:
    """The requests of one recording under one policy, in order."""

    def __init__(self, index: RecordingIndex) -> None:
        self.index = index
        self._store = MessageViews(index.recording.reader, index.store)
        self._before: Sequence[MessageView] | None = None
        self._head_before: tuple[CacheUnit, ...] = ()

    def views(self, body: Any, full: list[MessageView]) -> list[MessageView]:
        """Views of the messages of ``body``; ``full`` itself if they are the same."""
        listed = body[self.index.recording.reader.base(body)[0]]
        views = self._store.all(listed)
        return full if len(views) == len(full) and all(map(same, views, full)) else views

    def head(self, body: Any) -> tuple[CacheUnit, ...]:
        """Units of the system text and tools of ``body``; the recording's own if unchanged."""
        if body is None:
            return self.index.head
        reader = self.index.recording.reader
        recorded = self.index.recording.body(())
        if all(body.get(key) is recorded.get(key) for key in reader.head_keys):
            return self.index.head
        blocks = reader.read_head(body)
        cost = self._store.usage.block_cost
        return tuple(CacheUnit(f"head:{block.digest}", cost(block)) for block in blocks)

    def add(self, head: tuple[CacheUnit, ...], views: Sequence[MessageView]) -> SentSize:
        """Add the next request; return its size."""
        tokens = sum(unit.tokens for unit in head) + sum(view.tokens for view in views)
        prefix, broke = self._prefix(head, views)
        self._before, self._head_before = views, head
        return SentSize(tokens, prefix, broke)

    def _prefix(
        self, head: tuple[CacheUnit, ...], views: Sequence[MessageView]
    ) -> tuple[int, bool]:
        before = self._before
        if before is None:
            return 0, False
        if head != self._head_before:
            return _shared(head, self._head_before), True
        tokens = sum(unit.tokens for unit in head)
        for number, (new, old) in enumerate(zip(views, before, strict=False)):
            if new is not old:
                old_units = [unit for view in before[number:] for unit in view.units]
                now = [unit for view in views[number : number + 2] for unit in view.units]
                shared = _shared(now, old_units)
                return tokens + shared, shared < sum(unit.tokens for unit in old_units)
            tokens += new.tokens
        return tokens, len(views) < len(before)


def seconds_before(recording: Recording, number: int) -> float:
    """Seconds between a model call and the previous one; −1 if unknown."""
    times, turns = recording.times, recording.turns
    if not times or number == 0:
        return -1.0
    now, last = times[turns[number].sent], times[turns[number - 1].sent]
    return max(0.0, now - last) if now is not None and last is not None else -1.0


def same(first: object, second: object) -> bool:
    """Whether both are the same object."""
    return first is second


def _shared(new: Sequence[CacheUnit], old: Sequence[CacheUnit]) -> int:
    """Tokens of the equal units at the beginning of both."""
    tokens = 0
    for new_unit, old_unit in zip(new, old, strict=False):
        if new_unit.key != old_unit.key:
            break
        tokens += old_unit.tokens if new_unit.tokens >= old_unit.tokens else new_unit.tokens
    return tokens
