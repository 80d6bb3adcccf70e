"""A repair that holds for what goes on: a conversation that was mended once, far enough from its
end, is mended there again, and read only where it is new.

A memo: it changes no answer, only time.  Knows when nothing that follows can change how known
messages were mended.  Knows no rule: which scans may begin behind known messages is said where they
stand (``rules.base.resumes``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from trimtab import paths, rules
from trimtab.index import Line, begins
from trimtab.model import Transcript
from trimtab.paths import Delete, Insert, Ops, PathOp
from trimtab.reading.sound import Sound
from trimtab.reading.source import Source
from trimtab.rules import Repaired
from trimtab.rules.runs import last_run


@dataclass(frozen=True)
class _Last:
    """A request as it came, and its repair: ``repaired`` has operations of its own."""

    given: Transcript
    repaired: Repaired
    open_tail: bool


class Mended:
    """The newest repair of one conversation."""

    def __init__(self) -> None:
        self._last: _Last | None = None
        self._sound = Sound()

    def keep(self, given: Transcript, tree: Any, repaired: Repaired, *, open_tail: bool) -> bool:
        """Remember a repair that left nothing wrong; whether it holds whatever follows."""
        self._last = None
        table = rules.TABLES[given.format.name]
        if not (table.by_turn and repaired.passes and _far(given, repaired.passes)):
            return False
        if not _containers(paths.get(tree, given.base)).isdisjoint(_values(repaired.passes)):
            return False  # what was moved is found again by what it is
        # A caller may change theirs.
        own: list[tuple[PathOp, ...]] = [Ops(deepcopy(list(ops))) for ops in repaired.passes]
        line = Line(repaired.transcript.messages)
        kept = replace(repaired.transcript, messages=line)
        self._last = _Last(given, replace(repaired, passes=own, transcript=kept), open_tail)
        return True

    def again(self, source: Source, given: Transcript, *, open_tail: bool) -> Repaired | None:
        """The same repair of what goes on from there; None where more is wrong, or it is another
        conversation."""
        last = self._last
        if last is None or last.open_tail is not open_tail or not begins(last.given, given):
            return None
        failures, count = list[str](), len(last.given.messages)
        found = rules.check(given, open_tail=open_tail, failures=failures, known=count)
        if found or failures:
            return None
        old = last.repaired.transcript
        assert isinstance(old.messages, Line)
        new = given.messages[count:]
        before = old.index.settled() if "index" in vars(old) else old.before
        whole = replace(old, messages=old.messages.on(new), before=before) if new else old
        if self._sound.check(whole, open_tail=open_tail, failures=failures) or failures:
            return None
        repaired = replace(
            last.repaired, tree=source.after(last.repaired.passes).tree, transcript=whole
        )
        self._last = _Last(given, repaired, open_tail)
        return repaired


def _far(given: Transcript, passes: Sequence[Sequence[PathOp]]) -> bool:
    """Whether all operations are on messages before the last turn of the model: what stands there
    is over, whatever follows."""
    base, count = given.base, len(given.messages)
    tail = count - last_run(given, count)
    for ops in passes:
        more = 0
        for op in ops:
            path = op.path
            number = path[len(base)] if path[: len(base)] == base and len(path) > len(base) else -1
            whole = len(path) == len(base) + 1
            between = whole and isinstance(op, Insert)
            if not isinstance(number, int) or not 0 <= number < count - tail + between:
                return False
            more += between - (whole and isinstance(op, Delete))
        count += more
    return True


def _containers(tree: Any) -> set[int]:
    """Every object and array in a tree, by identity."""
    return {id(value) for value in _walk(tree) if isinstance(value, (dict, list))}


def _values(passes: Sequence[Sequence[PathOp]]) -> Iterator[int]:
    """The same in what is put in."""
    for op in (op for ops in passes for op in ops):
        if not isinstance(op, Delete):
            yield from _containers([op.value])


def _walk(tree: Any) -> Iterator[Any]:
    stack = [tree]
    while stack:
        value = stack.pop()
        yield value
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
