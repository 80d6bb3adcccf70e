"""What the rest of a transcript tells about a block: duplicate, superseded, input of a failed call.

Knows what came later.  Does not know offers or what anything costs.  A *turn* is one step of the
model: a group.  Age is counted over all calls and turns, edited or not.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from threading import Lock
from typing import Literal

from trimtab.model import Place, Transcript
from trimtab.protect import matches
from trimtab.reading.exchanges import Exchange, Key, Reader, of_group
from trimtab.strategies.base import BlockFacts

NEAR_SHARE = 0.2
"""Share of lines that may stand in the older result alone for the two to be near-identical."""
STALE_SHARE = 0.5
"""Up to this share the later result of a call that only looks is the same thing, seen anew; above
it (a next page) it is another."""
SAME_TEXT_CHARS = 1_000
"""From this length on equal results of different calls count as duplicates: it is no chance."""
WHOLE_LINES, WHOLE_CHARS = 2_000, 50_000
"""Agents' read tools stop at about so much: a longer result shows what it shows, no more."""
COVER_SHARE = 0.5
"""A later read with less than this share of the earlier's lines does not stand for it: it may be a
stub ("file unchanged"), or the file may have shrunk."""
_MOST_RANGES = 16


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Whether older results may give way to a later equal one (``enabled``), and what was read or
    written to what was read or written later (``superseded``); never of ``protected_tools``."""

    enabled: bool = True
    superseded: bool = True
    protected_tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedInputs:
    """Whether long inputs of failed calls may go: only where at least ``min_calls`` calls and
    ``min_turns`` turns came after (0: none is too recent), never of ``protected_tools``."""

    enabled: bool = True
    min_calls: int = 5
    min_turns: int = 4
    protected_tools: tuple[str, ...] = ()


class History:
    """One transcript, and what may be told of it to strategies."""

    def __init__(
        self,
        transcript: Transcript,
        reader: Reader,
        duplicates: Duplicates | None = None,
        failed_inputs: FailedInputs | None = None,
    ) -> None:
        self.transcript, self.reader = transcript, reader
        self.duplicates = duplicates or Duplicates()
        self.failed_inputs = failed_inputs or FailedInputs()
        reader.keep(transcript.messages)
        self.later: list[Exchange] = []
        """Calls with their results, the newest first: those behind ``_first``, a group."""
        self._first = len(transcript.groups)
        self._lock = Lock()
        self._at: dict[Key, Exchange] = {}
        self._again: dict[int, tuple[Literal["call", "text"], int]] = {}
        self._repeats: dict[int, int] = {}
        self._superseded: dict[int, tuple[Literal["read", "write", "edit"], int]] = {}
        # what they are found by
        self._calls: dict[tuple[str, tuple[str, ...], bool], int] = {}
        self._texts: dict[tuple[tuple[str, ...], bool], int] = {}
        self._newest: dict[tuple[str, bool], int] = {}
        self._files: dict[str, _Later] = {}

    def facts(self, place: Place) -> BlockFacts:
        """What is known of a block, as far as the settings let strategies know it."""
        exchange = self._of(place)
        if exchange is None:
            return BlockFacts()
        if place.block.kind == "call":
            failed = exchange.failed if self._may_empty(exchange) else ""
            return BlockFacts(failed=failed, superseded=self._over_write(exchange))
        return self._of_result(exchange)

    def action(self, place: Place) -> str:
        """What the call did that this block belongs to: "read", "write", …; "" if there is none."""
        exchange = self._of(place)
        return exchange.call.action if exchange else ""

    def _of(self, place: Place) -> Exchange | None:
        """The exchange a block belongs to."""
        groups = self.transcript.groups
        self._look_back(bisect_right(groups, place.message, key=lambda group: group.first) - 1)
        return self._at.get((place.message, place.index))

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All calls in order, each with its result."""
        self._look_back(0)
        return tuple(reversed(self.later))

    def _look_back(self, number: int) -> None:
        """Read what came behind the beginning of a group: what stands before it tells nothing."""
        if not 0 <= number < self._first:
            return
        with self._lock:  # a report may be read in several threads
            for turn in range(self._first - 1, number - 1, -1):
                group = self.transcript.groups[turn]
                if group.has_calls:
                    found = of_group(self.transcript, self.reader, group, turn)
                    for exchange in reversed(found):
                        self._add(exchange)
                self._first = turn

    def _add(self, exchange: Exchange) -> None:
        """Go one further back."""
        exchange.number = len(self.later)
        self.later.append(exchange)
        self._at |= dict.fromkeys((*exchange.inputs, *exchange.outputs), exchange)
        if exchange.told:
            self._find_again(exchange)
            self._find_repeats(exchange)
            self._find_superseded(exchange)

    def rests_on(self, place: Place) -> tuple[Key, ...]:
        """Where that stands which makes a block a duplicate or superseded; () for any other."""
        exchange = self._of(place)
        if exchange is None:
            return ()
        number, facts = exchange.number, self.facts(place)
        later = {self._repeats.get(number)} if facts.superseded == "call" else set()
        if facts.duplicate:
            later.add(self._again[number][1] if number in self._again else self._repeats[number])
        if facts.superseded and number in self._superseded:
            later.add(self._superseded[number][1])
        found = [self.later[n] for n in sorted((n for n in later if n is not None), reverse=True)]
        return tuple(key for one in found for key in (*one.inputs, *one.outputs))

    # --- inputs of failed calls ---

    def _may_empty(self, exchange: Exchange) -> bool:
        options = self.failed_inputs
        return (
            options.enabled
            and exchange.told
            and exchange.number >= options.min_calls
            and len(self.transcript.groups) - 1 - exchange.turn >= options.min_turns
            and not matches([exchange.tool], options.protected_tools)
        )

    # --- duplicates and superseded results ---

    def _of_result(self, exchange: Exchange) -> BlockFacts:
        options = self.duplicates
        if not exchange.told or matches([exchange.tool], options.protected_tools):
            return BlockFacts()
        number = exchange.number
        read = exchange.call.action == "read"  # what a write answered is not what it wrote
        facts = BlockFacts(superseded=self._over(number) if read else "")
        if options.enabled and number in self._again:
            return replace(facts, duplicate=self._again[number][0])
        later = self._repeats.get(number)
        if later is None or len(exchange.texts) != 1:
            return facts
        unique = _only_in(exchange, self.later[later])
        if options.superseded and len(unique) <= STALE_SHARE * exchange.lines:
            facts = replace(facts, superseded=facts.superseded or "call")
        if options.enabled and len(unique) <= NEAR_SHARE * exchange.lines:
            facts = replace(facts, duplicate="near" if unique else "call", unique=unique)
        return facts

    def _find_again(self, exchange: Exchange) -> None:
        """Whether a later one is equal, or its text is, and the number of the newest such."""
        if not exchange.chars:
            return
        failed, number = bool(exchange.failed), exchange.number
        call, text = (exchange.call.signature, exchange.texts, failed), (exchange.texts, failed)
        if call in self._calls:
            self._again[number] = "call", self._calls[call]
        elif text in self._texts and exchange.chars >= SAME_TEXT_CHARS:
            self._again[number] = "text", self._texts[text]
        self._calls.setdefault(call, number)
        self._texts.setdefault(text, number)

    def _find_repeats(self, exchange: Exchange) -> None:
        """Of one that only looked, the newest later one of the same call.

        A failed one never stands for one that succeeded.
        """
        if exchange.call.action not in ("read", "look"):
            return
        newest, signature, failed = self._newest, exchange.call.signature, bool(exchange.failed)
        good, bad = newest.get((signature, False)), newest.get((signature, True))
        later = good if good is not None else bad if failed else None
        if later is not None:
            self._repeats[exchange.number] = later
        newest.setdefault((signature, failed), exchange.number)

    def _over_write(self, exchange: Exchange) -> Literal["", "read", "write", "edit"]:
        """What later came over a file that this call wrote."""
        if exchange.call.action != "write" or exchange.failed:
            return ""
        if matches([exchange.tool], self.duplicates.protected_tools):
            return ""
        return self._over(exchange.number)

    def _over(self, number: int) -> Literal["", "read", "write", "edit"]:
        """What later came over the file that an exchange read or wrote; "" for nothing."""
        return self._superseded[number][0] if number in self._superseded else ""

    def _find_superseded(self, exchange: Exchange) -> None:
        """What came later over the file that it read or wrote, and which."""
        call = exchange.call
        if not self.duplicates.superseded or len(call.files) != 1:
            return
        if call.action in ("read", "write", "edit"):
            later = self._files.setdefault(call.files[0], _Later())
            if why := later.over(exchange):
                self._superseded[exchange.number] = why
            later.add(exchange)


def _only_in(older: Exchange, newer: Exchange) -> tuple[str, ...]:
    """Lines of the older result that the newer lacks."""
    known = frozenset(line for text in newer.texts for line in text.split("\n"))
    return tuple([line for line in older.texts[0].split("\n") if line not in known])


class _Later:
    """What came later over one file, while a transcript is walked backwards."""

    def __init__(self) -> None:
        self.written: int | None = None
        self.whole: int | None = None
        self.ranges: list[tuple[int, int | None, int, int]] = []
        self.edits: list[tuple[str, int]] = []

    def add(self, exchange: Exchange) -> None:
        """Take note of one that succeeded."""
        call, number = exchange.call, exchange.number
        if exchange.failed:
            return
        if call.action == "write":
            self.written = number if self.written is None else self.written
        elif call.action == "edit":
            self.edits = [*self.edits[-_MOST_RANGES:], (call.old, number)]
        elif call.action == "read" and len(self.ranges) < _MOST_RANGES:
            first, last = _shown(exchange)
            self.ranges.append((first, last, exchange.lines, number))
            if first == 1 and last is None and exchange.lines and self.whole is None:
                self.whole = number

    def over(self, exchange: Exchange) -> tuple[Literal["read", "write", "edit"], int] | None:
        """What of this makes an earlier read or write of the same file stale; None for nothing."""
        call = exchange.call
        if call.action == "edit":
            return None
        if self.written is not None:
            return "write", self.written
        if call.action == "write":
            return None if self.whole is None else ("read", self.whole)
        first, last = _asked(exchange)
        for start, end, lines, number in self.ranges:
            covers = start <= first and (end is None or (last is not None and end >= last))
            if covers and lines >= COVER_SHARE * exchange.lines:
                return "read", number
        for old, number in self.edits:
            if _replaces(old, exchange):
                return "edit", number
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
