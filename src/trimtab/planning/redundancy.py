"""Finds redundant blocks: duplicates, superseded reads and writes, inputs of failed calls.

``call_history.py`` tells what came later; here the settings say what of it counts.  A *turn* is one
step of the model: a group.  Age is counted over all calls and turns, edited or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from trimtab.lazy import cached_property
from trimtab.planning.call_history import CallHistory, lacking
from trimtab.reducers.base import BlockFacts
from trimtab.setting_kinds import COUNT, FLAG, TEXTS, setting
from trimtab.transcript.model import Place
from trimtab.transcript.protected import matches
from trimtab.transcript.tool_calls import CallReader, Key, ToolCall
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
        reader: CallReader,
        duplicates: Duplicates | None = None,
        failed_inputs: FailedInputs | None = None,
    ) -> None:
        self.transcript, self._reader = transcript, reader
        self.duplicates = duplicates or Duplicates()
        self.failed_inputs = failed_inputs or FailedInputs()
        self._facts: dict[Key, BlockFacts] = {}

    @cached_property
    def calls(self) -> CallHistory:
        """All calls; collected on first use, as many a plan asks for none."""
        return CallHistory(self.transcript, self._reader)

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

    def _of(self, place: Place) -> ToolCall | None:
        """The call a block belongs to."""
        return self.calls.at.get((place.message, place.index))

    def depends_on(self, place: Place) -> tuple[Key, ...]:
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
