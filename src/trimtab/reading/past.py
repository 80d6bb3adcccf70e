"""Every call of a conversation with its result, and what came later over the same thing.

Knows calls, results and their order.  Does not know which of it strategies may be told, nor what
anything costs.  Goes on where it ended, so that a turn reads what is new.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Literal

from trimtab.index import shared
from trimtab.model import Group, Transcript
from trimtab.reading.exchanges import Exchange, Key, Reader, of_group

SAME_TEXT_CHARS = 1_000
"""From this length on equal results of different calls count as duplicates: it is no chance."""
WHOLE_LINES, WHOLE_CHARS = 2_000, 50_000
"""Agents' read tools stop at about so much: a longer result shows what it shows, no more."""
COVER_SHARE = 0.5
"""A later read with less than this share of the earlier's lines does not stand for it: it may be a
stub ("file unchanged"), or the file may have shrunk."""
_MOST_RANGES = 16

Over = tuple[Literal["read", "write", "edit"], Exchange]
"""What later came over a file, and the call that brought it."""


class Past:
    """The calls of one transcript, oldest first; a memo of what begins it."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.transcript: Transcript | None = None
        self.calls: list[Exchange] = []
        self.at: dict[Key, Exchange] = {}
        self._groups: tuple[Group, ...] = ()
        self._same: defaultdict[Hashable, list[int]] = defaultdict(list)
        """What two calls may have in common → the numbers of those that have it."""
        self._files: defaultdict[str, _File] = defaultdict(_File)
        self._lent_to: int | None = None

    @contextmanager
    def lent(self) -> Iterator[None]:
        """For one turn to this thread: a report may be asked in another, while the next runs."""
        self._lent_to = get_ident()
        try:
            yield
        finally:
            self._lent_to = None

    @property
    def ours(self) -> bool:
        """Whether it is lent to this thread."""
        return self._lent_to == get_ident()

    def go_on(self, transcript: Transcript) -> None:
        """Read what is new in this one."""
        self.reader.keep(transcript.messages)
        groups, known = transcript.groups, shared(self._groups, transcript.groups)
        while self.calls and self.calls[-1].turn >= known:
            self._forget(self.calls[-1])
        for turn in range(known, len(groups)):
            if groups[turn].has_calls:
                for exchange in of_group(transcript, self.reader, groups[turn], turn):
                    self._add(exchange)
        self.transcript, self._groups = transcript, groups

    def after(self, exchange: Exchange) -> int:
        """How many calls came after this one."""
        return len(self.calls) - 1 - exchange.number

    def _add(self, exchange: Exchange) -> None:
        exchange.number = len(self.calls)
        self.calls.append(exchange)
        for place in (*exchange.inputs, *exchange.outputs):
            self.at.setdefault(place, exchange)
        for key in _in_common(exchange):
            self._same[key].append(exchange.number)
        if file := _file(exchange):
            self._files[file].add(exchange)

    def _forget(self, last: Exchange) -> None:
        """Take the newest call back."""
        self.calls.pop()
        for place in (*last.inputs, *last.outputs):
            if self.at.get(place) is last:
                del self.at[place]
        for common in _in_common(last):
            self._same[common].pop()
        if file := _file(last):
            self._files[file].take_back()

    # --- what came later ---

    def again(self, exchange: Exchange) -> tuple[Literal["call", "text"], Exchange] | None:
        """The newest later one with the same call and result, or with the same long result."""
        if not exchange.told or not exchange.chars:
            return None
        if later := self._later(exchange, _equal(exchange)):
            return "call", later
        later = self._later(exchange, _texts(exchange))
        return ("text", later) if later and exchange.chars >= SAME_TEXT_CHARS else None

    def repeat(self, exchange: Exchange) -> Exchange | None:
        """Of one that only looked, the newest later one of the same call.

        A failed one never stands for one that succeeded.
        """
        if not exchange.told or not _looks(exchange):
            return None
        good = self._later(exchange, _looked(exchange, failed=False))
        if good is None and exchange.failed:
            return self._later(exchange, _looked(exchange, failed=True))
        return good

    def over(self, exchange: Exchange) -> Over | None:
        """What later came over the file that one read or wrote."""
        file = _file(exchange)
        return self._files[file].over(exchange) if file else None

    def _later(self, exchange: Exchange, key: Hashable) -> Exchange | None:
        """The newest one that has this in common, if it came later."""
        numbers = self._same.get(key)
        if not numbers or numbers[-1] <= exchange.number:
            return None
        return self.calls[numbers[-1]]


def _in_common(exchange: Exchange) -> list[Hashable]:
    if not exchange.told:
        return []
    keys: list[Hashable] = [_equal(exchange), _texts(exchange)] if exchange.chars else []
    return [*keys, _looked(exchange, bool(exchange.failed))] if _looks(exchange) else keys


def _equal(exchange: Exchange) -> Hashable:
    return exchange.call.signature, exchange.texts, bool(exchange.failed)


def _texts(exchange: Exchange) -> Hashable:
    return exchange.texts, bool(exchange.failed)


def _looks(exchange: Exchange) -> bool:
    return exchange.call.action in ("read", "look")


def _looked(exchange: Exchange, failed: bool) -> Hashable:
    return exchange.call.signature, failed


def _file(exchange: Exchange) -> str:
    """The one file that was read or changed; "" for none, or several."""
    call = exchange.call
    one = exchange.told and len(call.files) == 1 and call.action in ("read", "write", "edit")
    return call.files[0] if one else ""


class _File:
    """What was read, written and edited of one file, oldest first."""

    def __init__(self) -> None:
        self._events: list[Exchange] = []
        self._forget()

    def _forget(self) -> None:
        """Look back from the newest event again."""
        self._later, self._seen = _Later(), len(self._events)
        self._over: dict[int, Over | None] = {}

    def add(self, exchange: Exchange) -> None:
        """Go on with the next one."""
        self._events.append(exchange)
        self._forget()

    def take_back(self) -> None:
        """Without the newest one."""
        self._events.pop()
        self._forget()

    def over(self, exchange: Exchange) -> Over | None:
        """What later came over what one of the events read or wrote."""
        at = bisect_left(self._events, exchange.number, key=lambda event: event.number)
        while self._seen > at:
            self._seen -= 1
            event = self._events[self._seen]
            self._over[event.number] = self._later.over(event)
            self._later.add(event)
        return self._over[exchange.number]


class _Later:
    """What came later over one file, while its events are walked backwards."""

    def __init__(self) -> None:
        self.written: Exchange | None = None
        self.whole: Exchange | None = None
        self.ranges: list[tuple[int, int | None, Exchange]] = []
        self.edits: list[Exchange] = []

    def add(self, exchange: Exchange) -> None:
        """Take note of one that succeeded."""
        call = exchange.call
        if exchange.failed:
            return
        if call.action == "write":
            self.written = self.written or exchange
        elif call.action == "edit":
            self.edits = [*self.edits[-_MOST_RANGES:], exchange]
        elif call.action == "read" and len(self.ranges) < _MOST_RANGES:
            first, last = _shown(exchange)
            self.ranges.append((first, last, exchange))
            if first == 1 and last is None and exchange.lines and self.whole is None:
                self.whole = exchange

    def over(self, exchange: Exchange) -> Over | None:
        """What of this makes an earlier read or write of the same file stale; None for nothing."""
        call = exchange.call
        if call.action == "edit":
            return None
        if self.written is not None:
            return "write", self.written
        if call.action == "write":
            return None if self.whole is None else ("read", self.whole)
        first, last = _asked(exchange)
        for start, end, later in self.ranges:
            covers = start <= first and (end is None or (last is not None and end >= last))
            if covers and later.lines >= COVER_SHARE * exchange.lines:
                return "read", later
        for later in self.edits:
            if _replaces(later.call.old, exchange):
                return "edit", later
        return None


def _asked(exchange: Exchange) -> tuple[int, int | None]:
    """The lines a read was about: what it asked for, but no more than it showed."""
    call = exchange.call
    shown = call.first + exchange.lines - 1
    return call.first, shown if call.last is None else min(call.last, shown)


def _shown(exchange: Exchange) -> tuple[int, int | None]:
    """The lines that a read is sure to show; None: to the end of the file."""
    call, end = exchange.call, exchange.call.first + exchange.lines - 1
    if exchange.lines >= WHOLE_LINES or exchange.chars >= WHOLE_CHARS:
        return call.first, end if call.last is None else min(call.last, end)
    return call.first, call.last


def _replaces(old: str, exchange: Exchange) -> bool:
    """Whether an edit replaced most of what was read."""
    lines = old.split("\n")
    if len(lines) < COVER_SHARE * exchange.lines:
        return False
    line = next(filter(str.strip, lines), "")
    return bool(line) and any(line in text for text in exchange.texts)
