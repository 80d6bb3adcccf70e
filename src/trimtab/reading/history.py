"""What the rest of a transcript tells about a block: duplicate, superseded, input of a failed call.

Knows what came later.  Does not know offers or what anything costs.  A *turn* is one step of the
model: a group.  Age is counted over all calls and turns, edited or not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import Literal

from trimtab.model import Place, Transcript
from trimtab.protect import matches
from trimtab.reading.exchanges import Exchange, Key
from trimtab.reading.past import Past
from trimtab.strategies.base import BlockFacts

NEAR_SHARE = 0.2
"""Share of lines that may stand in the older result alone for the two to be near-identical."""
STALE_SHARE = 0.5
"""Up to this share the later result of a call that only looks is the same thing, seen anew; above
it (a next page) it is another."""


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
        past: Past,
        duplicates: Duplicates | None = None,
        failed_inputs: FailedInputs | None = None,
    ) -> None:
        self.transcript, self._past = transcript, past
        self.duplicates = duplicates or Duplicates()
        self.failed_inputs = failed_inputs or FailedInputs()
        self._lock = Lock()
        self._own: Past | None = None

    @property
    def past(self) -> Past:
        """The calls of this transcript: the memo's in its own turn, else read once more."""
        memo = self._past
        if memo.ours:
            if memo.transcript is not self.transcript:
                memo.go_on(self.transcript)
            return memo
        with self._lock:
            if self._own is None:
                own = Past(memo.reader)
                own.go_on(self.transcript)
                self._own = own
            return self._own

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
        return self.past.at.get((place.message, place.index))

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All calls in order, each with its result."""
        return tuple(self.past.calls)

    def rests_on(self, place: Place) -> tuple[Key, ...]:
        """Where that stands which makes a block a duplicate or superseded; () for any other."""
        exchange = self._of(place)
        if exchange is None:
            return ()
        past, facts = self.past, self.facts(place)
        again, repeat, over = past.again(exchange), past.repeat(exchange), past.over(exchange)
        later = [repeat] if facts.superseded == "call" else []
        if facts.duplicate:
            later.append(again[1] if again else repeat)
        if facts.superseded and self.duplicates.superseded and over:
            later.append(over[1])
        found = {one.number: one for one in later if one is not None}
        return tuple(key for _, one in sorted(found.items()) for key in (*one.inputs, *one.outputs))

    # --- inputs of failed calls ---

    def _may_empty(self, exchange: Exchange) -> bool:
        options = self.failed_inputs
        return (
            options.enabled
            and exchange.told
            and self.past.after(exchange) >= options.min_calls
            and len(self.transcript.groups) - 1 - exchange.turn >= options.min_turns
            and not matches([exchange.tool], options.protected_tools)
        )

    # --- duplicates and superseded results ---

    def _of_result(self, exchange: Exchange) -> BlockFacts:
        options = self.duplicates
        if not exchange.told or matches([exchange.tool], options.protected_tools):
            return BlockFacts()
        read = exchange.call.action == "read"  # what a write answered is not what it wrote
        facts = BlockFacts(superseded=self._over(exchange) if read else "")
        if options.enabled and (again := self.past.again(exchange)):
            return replace(facts, duplicate=again[0])
        later = self.past.repeat(exchange)
        if later is None or len(exchange.texts) != 1:
            return facts
        unique = _only_in(exchange, later)
        if options.superseded and len(unique) <= STALE_SHARE * exchange.lines:
            facts = replace(facts, superseded=facts.superseded or "call")
        if options.enabled and len(unique) <= NEAR_SHARE * exchange.lines:
            facts = replace(facts, duplicate="near" if unique else "call", unique=unique)
        return facts

    def _over_write(self, exchange: Exchange) -> Literal["", "read", "write", "edit"]:
        """What later came over a file that this call wrote."""
        if exchange.call.action != "write" or exchange.failed:
            return ""
        if matches([exchange.tool], self.duplicates.protected_tools):
            return ""
        return self._over(exchange)

    def _over(self, exchange: Exchange) -> Literal["", "read", "write", "edit"]:
        """What later came over the file that an exchange read or wrote; "" for nothing."""
        found = self.past.over(exchange) if self.duplicates.superseded else None
        return found[0] if found else ""


def _only_in(older: Exchange, newer: Exchange) -> tuple[str, ...]:
    """Lines of the older result that the newer lacks."""
    known = frozenset(line for text in newer.texts for line in text.split("\n"))
    return tuple([line for line in older.texts[0].split("\n") if line not in known])
