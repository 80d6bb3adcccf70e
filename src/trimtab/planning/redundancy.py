"""What the rest of a transcript says about a block: duplicate, superseded, input of a failed call.

``CallHistory`` looks at calls, results and their order alone; ``Redundancy`` says what the settings
let count.  A *turn* is one step of the model: a group.  Age is counted over all calls and turns,
edited or not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NamedTuple

from trimtab.planning.holding import content, lacking, says_nothing_itself
from trimtab.reducers.base import BlockFacts
from trimtab.setting_kinds import COUNT, FLAG, TEXTS, setting
from trimtab.transcript.call_arguments import written_text
from trimtab.transcript.model import Place
from trimtab.transcript.protected import matches
from trimtab.transcript.tool_calls import CallReader, Key, ToolCall, calls_of
from trimtab.transcript.transcript import Transcript

STALE_SHARE = 0.5
"""Up to this share (by characters of lines) the later result of a call that only looks is the same
thing, seen anew; above it (a next page) it is another."""


@dataclass(frozen=True)
class Duplicates:
    """Whether results may give way to a later result that makes them dispensable."""

    enabled: bool = setting(True, FLAG, "older results may give way to a later equal one")
    superseded: bool = setting(
        True, FLAG, "and what was read or written to what was read or written later"
    )
    protected_tools: Sequence[str] = setting((), TEXTS, "globs: never of these tools")


@dataclass(frozen=True)
class FailedInputs:
    """Whether long inputs of failed calls may go."""

    enabled: bool = setting(True, FLAG, "long values that a failed call was given may go")
    min_calls: int = setting(5, COUNT, "so many calls must have come after; 0: none is too recent")
    min_turns: int = setting(4, COUNT, "and so many steps of the model")
    protected_tools: Sequence[str] = setting((), TEXTS, "globs: never of these tools")


class Redundancy:
    """One transcript, and what its settings let reducers know of it."""

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

    def facts(self, place: Place) -> BlockFacts:
        """What is known of a block, as far as the settings let reducers know it."""
        call = self._of(place)
        if call is None:
            return BlockFacts()
        if place.block.kind == "call":
            failed = call.failed if self._may_empty(call) else ""
            return BlockFacts(failed=failed, superseded=self._over_write(call))
        return self._of_result(call)

    def action(self, place: Place) -> str:
        """What the call did that this block belongs to: "read", "write", …; "" if there is none."""
        call = self._of(place)
        return call.arguments.action if call else ""

    def _of(self, place: Place) -> ToolCall | None:
        """The call a block belongs to."""
        return self.calls.at.get((place.message, place.index))

    def rests_on(self, place: Place) -> tuple[Key, ...]:
        """Where that stands which makes a block a duplicate or superseded; () for any other."""
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
        own = self.calls.content(call)
        only = [own[line] for line in own if line not in self.calls.content(later)]
        size = sum(map(len, own))
        if sum(map(len, only)) > STALE_SHARE * size or says_nothing_itself(later.texts):
            return facts
        stale = self.calls.changed(call, later)
        if options.superseded and stale and not facts.superseded:
            facts = replace(facts, superseded="call")
        if options.enabled and (lacks := lacking(own, self.calls.content(later))) is not None:
            facts = replace(facts, duplicate="near" if lacks else "call", unique=lacks)
        return facts

    def _over_write(self, call: ToolCall) -> Literal["", "read", "write", "edit"]:
        """What later came over a file that this call wrote."""
        if call.arguments.action != "write" or call.failed:
            return ""
        if matches([call.tool], self.duplicates.protected_tools):
            return ""
        return self._over(call).superseded  # type: ignore[return-value]

    def _over(self, call: ToolCall) -> BlockFacts:
        """What later came over the file that a call read or wrote, and what that lacks."""
        later = self.calls.over(call) if self.duplicates.superseded else None
        return BlockFacts(superseded=later.how, lacks=later.lacks) if later else BlockFacts()


SAME_TEXT_CHARS = 1_000
"""From this length on equal results of different calls count as duplicates: it is no chance."""
WHOLE_LINES, WHOLE_CHARS = 2_000, 50_000
"""Agents' read tools stop at about so much: a longer result shows what it shows, no more."""
SIZE_SHARE = 0.5
"""Where a file was written or edited in between, what came later stands for what came before even
if its lines are others, but not with less than this share of its characters."""
_MOST_LATER = 16


class Superseding(NamedTuple):
    """What later came over a file: the call that brought it, and the lines it lacks although
    nothing changed the file in between."""

    how: Literal["read", "write", "edit"]
    by: ToolCall
    lacks: tuple[str, ...] = ()


class CallHistory:
    """The calls of one transcript, oldest first."""

    def __init__(self, transcript: Transcript, reader: CallReader) -> None:
        self._transcript = transcript
        self.calls: list[ToolCall] = []
        self._content: dict[int, Mapping[str, str]] = {}
        self._acts: list[int] = []
        """Numbers of the calls that may have changed anything at all."""
        self.at: dict[Key, ToolCall] = {}
        """(message, index) of a block → the call it belongs to."""
        self._newest: dict[Hashable, ToolCall] = {}
        """What two calls may have in common → the newest that has it."""
        self._by_file: defaultdict[str, list[ToolCall]] = defaultdict(list)
        for turn, group in enumerate(transcript.groups):
            if group.has_calls:
                for call in calls_of(transcript, reader, group, turn):
                    self._add(call)

    def _add(self, call: ToolCall) -> None:
        call.number = len(self.calls)
        self.calls.append(call)
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
        """The lines that a call brought into the conversation: what came back, or was written."""
        held = self._content.get(call.number)
        if held is None:
            texts: Iterable[str] = call.texts
            if call.arguments.action == "write":
                blocks = (self._transcript.at(*key).block for key in call.inputs)
                texts = [written_text(block.text) for block in blocks]
            held = self._content[call.number] = content(texts)
        return held

    def changed(self, earlier: ToolCall, later: ToolCall) -> bool:
        """Whether a call after the one, up to the other, may have changed what they show."""
        number = bisect_left(self._acts, earlier.number + 1)
        return number < len(self._acts) and self._acts[number] <= later.number

    @cached_property
    def _over(self) -> dict[int, Superseding | None]:
        """Number of a call that read or changed a file → what later came over that file."""
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
        """Of one that only looked, the newest later one of the same call.

        A failed one never stands for one that succeeded.
        """
        if not call.answered or not _looks(call):
            return None
        good = self._later(call, _looked(call, failed=False))
        if good is None and call.failed:
            return self._later(call, _looked(call, failed=True))
        return good

    def over(self, call: ToolCall) -> Superseding | None:
        """What later came over the file that one read or wrote."""
        return self._over.get(call.number)

    def _later(self, call: ToolCall, key: Hashable) -> ToolCall | None:
        """The newest one that has this in common, if it came later."""
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
    """What came later over one file, while its events are walked backwards."""

    def __init__(self, history: CallHistory) -> None:
        self._history = history
        self.writes: list[ToolCall] = []
        self.reads: list[tuple[int, int | None, ToolCall]] = []
        self.edits: list[ToolCall] = []

    def add(self, call: ToolCall) -> None:
        """Take note of one that succeeded."""
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
        """What of this makes an earlier read or write of the same file stale; None for nothing."""
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
        read = later.arguments.action == "read"
        if read and says_nothing_itself(later.texts):
            return None
        own, now = self._history.content(call), self._history.content(later)
        if any(call.number < one.number <= later.number for one in (*self.writes, *self.edits)):
            size, then = (sum(map(len, lines)) for lines in (now, own))
            if size >= SIZE_SHARE * then:
                return ()
        return lacking(own, now)

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
