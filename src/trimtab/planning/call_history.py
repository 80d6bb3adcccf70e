"""Which later call repeats or replaces what an earlier one showed: by calls, results, order alone.


A later text stands for an earlier one by its content, never by the number of lines: a stub
("unchanged since last read"), an error or a truncated text contains little of it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Literal, NamedTuple

from trimtab.lazy import cached_property
from trimtab.reducers.content.base import unnumbered
from trimtab.transcript.call_arguments import written_text
from trimtab.transcript.tool_calls import CallReader, Key, ToolCall, calls_of
from trimtab.transcript.transcript import Transcript

SAME_TEXT_CHARS = 1_000
"""Equal results of different calls count as duplicates from this length on, as equality is then not
accidental."""
WHOLE_LINES, WHOLE_CHARS = 2_000, 50_000
"""Agents' read tools truncate at about these sizes, so a result of this size may not show all that
was requested."""
SIZE_SHARE = 0.5
"""If a file was changed in between, a later read or write replaces an earlier one even with other
lines, but only if it has at least this share of its chars."""
_MAX_LATER = 16


class Superseding(NamedTuple):
    """The later call that supersedes a read or write of a file, and the lines it lacks although
    nothing changed the file in between."""

    how: Literal["read", "write", "edit"]
    by: ToolCall
    lacks: tuple[str, ...] = ()


class CallHistory:
    """The calls of one transcript, oldest first."""

    def __init__(self, transcript: Transcript, reader: CallReader) -> None:
        self._transcript = transcript
        self.calls: list[ToolCall] = []
        self.by_turn: defaultdict[int, list[ToolCall]] = defaultdict(list)
        """Number of a group → its calls."""
        self._content: dict[int, Mapping[str, str]] = {}
        self._says_nothing: dict[int, bool] = {}
        self._acts: list[int] = []
        """Numbers of the calls that may have changed anything at all."""
        self.at: dict[Key, ToolCall] = {}
        """(message, index) of a block → the call it belongs to."""
        self._newest: dict[Hashable, ToolCall] = {}
        """A property that calls may share → the newest call with it."""
        self._by_file: defaultdict[str, list[ToolCall]] = defaultdict(list)
        for turn, group in enumerate(transcript.groups):
            if group.has_calls:
                for call in calls_of(transcript, reader, group, turn):
                    self._add(call)

    def _add(self, call: ToolCall) -> None:
        call.number = len(self.calls)
        self.calls.append(call)
        self.by_turn[call.turn].append(call)
        if call.arguments.action in ("other", "write", "edit"):
            self._acts.append(call.number)
        for place in (*call.inputs, *call.outputs):
            self.at.setdefault(place, call)
        self._newest.update(dict.fromkeys(_in_common(call), call))
        if file := _file(call):
            self._by_file[file].append(call)

    def after(self, call: ToolCall) -> int:
        """How many calls came after this one."""
        return len(self.calls) - 1 - call.number

    def content(self, call: ToolCall) -> Mapping[str, str]:
        """The lines of a call's result, or those that it wrote."""
        held = self._content.get(call.number)
        if held is None:
            texts: Iterable[str] = call.texts
            if call.arguments.action == "write":
                blocks = (self._transcript.at(*key).block for key in call.inputs)
                texts = [written_text(block.text) for block in blocks]
            held = self._content[call.number] = content(texts)
        return held

    def says_nothing(self, call: ToolCall) -> bool:
        """Whether a call's result is empty, an error, or only points elsewhere.

        Each earlier call like it asks, so its text is searched once.
        """
        known = self._says_nothing.get(call.number)
        if known is None:
            known = self._says_nothing[call.number] = says_nothing_itself(call.texts)
        return known

    def changed(self, earlier: ToolCall, later: ToolCall) -> bool:
        """Whether a call after ``earlier``, up to ``later``, may have changed what they show."""
        number = bisect_left(self._acts, earlier.number + 1)
        return number < len(self._acts) and self._acts[number] <= later.number

    @cached_property
    def _over(self) -> dict[int, Superseding | None]:
        """Number of a call that read or changed a file → what superseded it."""
        superseding: dict[int, Superseding | None] = {}
        for calls in self._by_file.values():
            later = _Later(self)
            for call in reversed(calls):
                superseding[call.number] = later.over(call)
                later.add(call)
        return superseding

    # --- what came later ---

    def again(self, call: ToolCall) -> tuple[Literal["call", "text"], ToolCall] | None:
        """The newest later one with the same call and result, or with the same long result."""
        if not call.answered or not call.chars:
            return None
        if later := self._later(call, _equal(call)):
            return "call", later
        later = self._later(call, _texts(call))
        return ("text", later) if later and call.chars >= SAME_TEXT_CHARS else None

    def repeat(self, call: ToolCall) -> ToolCall | None:
        """The newest later repetition of a read-only call.

        A failed call never replaces one that succeeded.
        """
        if not call.answered or not _looks(call):
            return None
        good = self._later(call, _looked(call, failed=False))
        if good is None and call.failed:
            return self._later(call, _looked(call, failed=True))
        return good

    def over(self, call: ToolCall) -> Superseding | None:
        """What superseded the file that the call read or wrote; None if nothing did."""
        return self._over.get(call.number)

    def _later(self, call: ToolCall, key: Hashable) -> ToolCall | None:
        """The newest call with this property, if it is later than ``call``."""
        newest = self._newest.get(key)
        return newest if newest is not None and newest.number > call.number else None


def _in_common(call: ToolCall) -> list[Hashable]:
    if not call.answered:
        return []
    keys: list[Hashable] = [_equal(call), _texts(call)] if call.chars else []
    return [*keys, _looked(call, bool(call.failed))] if _looks(call) else keys


def _equal(call: ToolCall) -> Hashable:
    return call.arguments.signature, call.texts, bool(call.failed)


def _texts(call: ToolCall) -> Hashable:
    return call.texts, bool(call.failed)


def _looks(call: ToolCall) -> bool:
    return call.arguments.action in ("read", "look")


def _looked(call: ToolCall, failed: bool) -> Hashable:
    return call.arguments.signature, failed


def _file(call: ToolCall) -> str:
    """The one file that was read or changed; "" for none, or several."""
    files, action = call.arguments.files, call.arguments.action
    one = call.answered and len(files) == 1 and action in ("read", "write", "edit")
    return files[0] if one else ""


class _Later:
    """The later calls on one file, collected while walking backwards."""

    def __init__(self, history: CallHistory) -> None:
        self._history = history
        self.writes: list[ToolCall] = []
        self.reads: list[tuple[int, int | None, ToolCall]] = []
        self.edits: list[ToolCall] = []

    def add(self, call: ToolCall) -> None:
        """Add a call, unless it failed."""
        if call.failed:
            return
        action = call.arguments.action
        if action == "write":
            self.writes = [*self.writes, call][:_MAX_LATER]
        elif action == "edit":
            self.edits = [*self.edits, call][-_MAX_LATER:]
        elif action == "read" and len(self.reads) < _MAX_LATER:
            self.reads.append((*_shown(call), call))

    def over(self, call: ToolCall) -> Superseding | None:
        """The later call that makes an earlier read or write of the file stale; None if none."""
        action = call.arguments.action
        if action == "edit" or not (self.writes or self.reads or self.edits):
            return None
        for later in self.writes:
            if (lacks := self._lacks(call, later)) is not None:
                return Superseding("write", later, lacks)
        first, last = (1, None) if action == "write" else _asked(call)
        for start, end, later in self.reads:
            covers = start <= first and (end is None or (last is not None and end >= last))
            lacks = self._lacks(call, later) if covers else None
            if lacks is not None and not (lacks and action == "write"):
                return Superseding("read", later, lacks)
        for later in self.edits if action == "read" else ():
            if (lacks := self._lost(call, later)) is not None:
                return Superseding("edit", later, lacks)
        return None

    def _lacks(self, call: ToolCall, later: ToolCall) -> tuple[str, ...] | None:
        """The lines that a later read or write of the same part lacks although nothing is known to
        have changed the file in between; None where it does not stand for the earlier one."""
        own, now = self._history.content(call), self._history.content(later)
        lacks = lacking(own, now)
        if any(call.number < one.number <= later.number for one in (*self.writes, *self.edits)):
            size, then = (sum(map(len, lines)) for lines in (now, own))
            if size >= SIZE_SHARE * then:
                lacks = ()
        if lacks is None:  # mostly; so the text is searched for the few that are left
            return None
        is_read = later.arguments.action == "read"
        return None if is_read and self._history.says_nothing(later) else lacks

    def _lost(self, call: ToolCall, later: ToolCall) -> tuple[str, ...] | None:
        """The lines of a read that an edit did not replace; None where that is too much."""
        old = content([later.arguments.old])
        return lacking(self._history.content(call), old) if old else None


def _asked(call: ToolCall) -> tuple[int, int | None]:
    """The lines a read was about: what it asked for, but no more than it showed."""
    first, last = call.arguments.first, call.arguments.last
    shown = first + call.lines - 1
    return first, shown if last is None else min(last, shown)


def _shown(call: ToolCall) -> tuple[int, int | None]:
    """The lines that a read is sure to show; None: to the end of the file."""
    first, last = call.arguments.first, call.arguments.last
    end = first + call.lines - 1
    if call.lines >= WHOLE_LINES or call.chars >= WHOLE_CHARS:
        return first, end if last is None else min(last, end)
    return first, last


# --- whether a later text contains an earlier one ---

HELD_SHARE = 0.8
"""A later text replaces an earlier one only if it has at least this share of it (by chars of
distinct lines); the lines that it lacks are kept in the marker."""
POINTER_CHARS = 2_000
"""A longer text is not taken for a mere pointer to another text, because a file may quote such
words."""
_BREAK = re.compile(r"\n|\\n")
_POINTER = re.compile(
    r"unchanged|(?:has|have|was|were) not (?:been )?(?:changed|modified)|no changes? since"
    r"|still current|refer to|(?:see|shown|given|provided|returned|as) (?:the )?(?:above|earlier"
    r"|before|previous(?:ly)?)|same as|already (?:read|seen|shown|provided|in (?:the )?context)"
    r"|(?:output|content|result|text|file)s? (?:was |were |is |are )?(?:\w+ )?(?:removed|omitted"
    r"|cleared|elided|left out|truncated|hidden|cached|superseded)"
    r"|\[(?:old tool result|omitted|cleared|removed|truncated|superseded|duplicate)",
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"\s*(?:<?\w*error|exception|traceback|fail(?:ed|ure)|cannot|could not|unable)\b", re.IGNORECASE
)


def content(texts: Iterable[str]) -> Mapping[str, str]:
    """Distinct lines, without line numbers of read tools and outer spaces → the original lines.

    Lines of a JSON string count as lines too.
    """
    line_by_text: dict[str, str] = {}
    for text in texts:
        for line in _BREAK.split(text):
            if bare := unnumbered(line).strip():
                line_by_text.setdefault(bare, line)
    return line_by_text


def lacking(older: Mapping[str, str], newer: Mapping[str, str]) -> tuple[str, ...] | None:
    """The original lines of ``older`` that ``newer`` lacks; None if they are too many for ``newer``
    to replace it, or if ``older`` is empty."""
    only = [line for line in older if line not in newer]
    if not older or sum(map(len, only)) > (1.0 - HELD_SHARE) * sum(map(len, older)):
        return None
    return tuple(older[line] for line in only)


def says_nothing_itself(texts: Iterable[str]) -> bool:
    """Whether a result is empty, an error, or only points to content elsewhere.

    >>> says_nothing_itself(["File unchanged since last read. Refer to that result."])
    True
    """
    text = "\n".join(texts)
    if not text.strip():
        return True
    if len(text) > POINTER_CHARS:
        return False
    return bool(_FAILS.match(text) or _POINTER.search(text))
