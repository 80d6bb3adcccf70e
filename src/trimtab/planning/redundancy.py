"""Finds redundant blocks: duplicates, superseded reads and writes, inputs of failed calls.

``CallHistory`` uses calls, results and their order alone; ``Redundancy`` applies the settings.  A
*turn* is one step of the model: a group.  Age is counted over all calls and turns, edited or not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from trimtab.lazy import cached_property
from trimtab.planning.holding import content, lacking, says_nothing_itself
from trimtab.reducers.base import BlockFacts
from trimtab.setting_kinds import COUNT, FLAG, TEXTS, setting
from trimtab.transcript.call_arguments import written_text
from trimtab.transcript.model import Place
from trimtab.transcript.protected import matches
from trimtab.transcript.tool_calls import CallReader, Key, ToolCall, calls_of
from trimtab.transcript.transcript import Transcript

STALE_SHARE = 0.5
"""If a later result of the same read-only call differs by at most this share (by chars of lines),
it is a newer version of the same content; above it (a next page) it is different content."""


@dataclass(frozen=True)
class Duplicates:
    """Whether results may be replaced by a pointer to a later result that makes them redundant."""

    enabled: bool = setting(True, FLAG, "older results may give way to a later equal one")
    superseded: bool = setting(
        True, FLAG, "and what was read or written to what was read or written later"
    )
    protected_tools: Sequence[str] = setting((), TEXTS, "globs: never of these tools")


@dataclass(frozen=True)
class FailedInputs:
    """Whether long inputs of failed calls may be removed."""

    enabled: bool = setting(True, FLAG, "long values that a failed call was given may go")
    min_calls: int = setting(5, COUNT, "so many calls must have come after; 0: none is too recent")
    min_turns: int = setting(4, COUNT, "and so many steps of the model")
    protected_tools: Sequence[str] = setting((), TEXTS, "globs: never of these tools")


class Redundancy:
    """The redundancy of one transcript's blocks, as far as the settings allow to use it."""

    def __init__(
        self,
        transcript: Transcript,
        calls: CallHistory,
        duplicates: Duplicates | None = None,
        failed_inputs: FailedInputs | None = None,
    ) -> None:
        self.transcript, self.calls = transcript, calls
        self.duplicates = duplicates or Duplicates()
        self.failed_inputs = failed_inputs or FailedInputs()
        self._facts: dict[Key, BlockFacts] = {}

    def facts(self, place: Place) -> BlockFacts:
        """The facts about a block that reducers may use by the settings."""
        key = (place.message, place.index)
        known = self._facts.get(key)
        if known is None:
            known = self._facts[key] = self._facts_of(place)
        return known

    def _facts_of(self, place: Place) -> BlockFacts:
        call = self._of(place)
        if call is None:
            return BlockFacts()
        if place.block.kind == "call":
            failed = call.failed if self._may_empty(call) else ""
            flagged = bool(failed) and call.flagged
            return BlockFacts(failed=failed, flagged=flagged, superseded=self._over_write(call))
        return self._of_result(call)

    def action(self, place: Place) -> str:
        """The action of the block's call: "read", "write", …; "" if it has no call."""
        call = self._of(place)
        return call.arguments.action if call else ""

    def _of(self, place: Place) -> ToolCall | None:
        """The call a block belongs to."""
        return self.calls.at.get((place.message, place.index))

    def rests_on(self, place: Place) -> tuple[Key, ...]:
        """The keys of the later blocks that make this block a duplicate or superseded; () if it is
        neither."""
        call = self._of(place)
        if call is None:
            return ()
        calls, facts = self.calls, self.facts(place)
        again, repeat, over = calls.again(call), calls.repeat(call), calls.over(call)
        later = [repeat] if facts.superseded == "call" else []
        if facts.duplicate:
            later.append(again[1] if again else repeat)
        if facts.superseded and self.duplicates.superseded and over:
            later.append(over.by)
        by_number = {one.number: one for one in later if one is not None}
        in_order = (by_number[number] for number in sorted(by_number))
        return tuple(key for one in in_order for key in (*one.inputs, *one.outputs))

    # --- inputs of failed calls ---

    def _may_empty(self, call: ToolCall) -> bool:
        options = self.failed_inputs
        return (
            options.enabled
            and call.answered
            and self.calls.after(call) >= options.min_calls
            and len(self.transcript.groups) - 1 - call.turn >= options.min_turns
            and not matches([call.tool], options.protected_tools)
        )

    # --- duplicates and superseded results ---

    def _of_result(self, call: ToolCall) -> BlockFacts:
        options = self.duplicates
        if not call.answered or matches([call.tool], options.protected_tools):
            return BlockFacts()
        facts = BlockFacts()
        if call.arguments.action == "read":  # what a write answered is not what it wrote
            facts = self._over(call)
        if options.enabled and (again := self.calls.again(call)):
            return replace(facts, duplicate=again[0])
        later = self.calls.repeat(call)
        if later is None or len(call.texts) != 1:
            return facts
        own, now = self.calls.content(call), self.calls.content(later)
        only = sum(len(own[line]) for line in own if line not in now)
        if only > STALE_SHARE * sum(map(len, own)) or self.calls.says_nothing(later):
            return facts
        stale = self.calls.changed(call, later)
        if options.superseded and stale and not facts.superseded:
            facts = replace(facts, superseded="call")
        if options.enabled and (lacks := lacking(own, now)) is not None:
            facts = replace(facts, duplicate="near" if lacks else "call", unique=lacks)
        return facts

    def _over_write(self, call: ToolCall) -> Literal["", "read", "write", "edit"]:
        """How a file that this call wrote was later superseded; "" if it was not."""
        if call.arguments.action != "write" or call.failed:
            return ""
        if matches([call.tool], self.duplicates.protected_tools):
            return ""
        return self._over(call).superseded  # type: ignore[return-value]

    def _over(self, call: ToolCall) -> BlockFacts:
        """How the file that a call read or wrote was superseded, and the lines missing later."""
        later = self.calls.over(call) if self.duplicates.superseded else None
        return BlockFacts(superseded=later.how, lacks=later.lacks) if later else BlockFacts()


SAME_TEXT_CHARS = 1_000
"""Equal results of different calls count as duplicates from this length on, as equality is then not
accidental."""
WHOLE_LINES, WHOLE_CHARS = 2_000, 50_000
"""Agents' read tools truncate at about these sizes, so a result of this size may not show all that
was requested."""
SIZE_SHARE = 0.5
"""If a file was changed in between, a later read or write replaces an earlier one even with other
lines, but only if it has at least this share of its chars."""
_MOST_LATER = 16


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
            self.writes = [*self.writes, call][:_MOST_LATER]
        elif action == "edit":
            self.edits = [*self.edits, call][-_MOST_LATER:]
        elif action == "read" and len(self.reads) < _MOST_LATER:
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
