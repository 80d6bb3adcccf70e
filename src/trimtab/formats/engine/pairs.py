"""Matches Gemini's function responses to calls: by id, then by name, equal ones in order.

Ids are optional and may be given on one side only; every call has a name, and its response the
same one (Gemini API reference, FunctionResponse.name).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Sequence
from typing import NamedTuple


class PairKey(NamedTuple):
    """What identifies a call or a response: its given id and its name, "" if there is none."""

    id: str
    name: str


def paired(calls: Sequence[PairKey], responses: Sequence[PairKey]) -> list[int | None]:
    """For each response the index of the call it answers, or None.

    Ids must agree if both sides have one.  If one side has none, the names must agree, with or
    without their namespace (``default_api:read``); if one side has no name either, the response
    answers the oldest remaining call.
    """
    waiting, pairs = _WaitingCalls(calls), list[int | None]([None] * len(responses))
    for tie in (_by_id, _by_name, _by_bare_name, _by_order):
        for number, response in enumerate(responses):
            if pairs[number] is None:
                pairs[number] = waiting.pop_oldest(tie(response))
    return pairs


def _by_id(response: PairKey) -> list[Hashable]:
    return [("id", response.id)] if response.id else []


def _by_name(response: PairKey) -> list[Hashable]:
    return [("name", response.name, has_id) for has_id in _may_have_id(response)]


def _by_bare_name(response: PairKey) -> list[Hashable]:
    return [("bare name", _bare(response.name), has_id) for has_id in _may_have_id(response)]


def _bare(name: str) -> str:
    """A name without its namespace; some clients leave it out."""
    return name.rpartition(":")[2]


def _by_order(response: PairKey) -> list[Hashable]:
    """Any call for a response without a name; a call without one for any other."""
    if not response.name:
        return [("any", has_id) for has_id in _may_have_id(response)]
    return [("name", "", has_id) for has_id in _may_have_id(response)]


def _may_have_id(response: PairKey) -> tuple[bool, ...]:
    """Whether a call that is not answered by id may have one."""
    return (False,) if response.id else (False, True)


class _WaitingCalls:
    """Calls without a response, in queues by the keys that they can match, oldest first."""

    def __init__(self, calls: Sequence[PairKey]) -> None:
        self._answered: set[int] = set()
        self._queues: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for index, (id, name) in enumerate(calls):
            if id:
                self._queues["id", id].append(index)
            self._queues["name", name, bool(id)].append(index)
            self._queues["bare name", _bare(name), bool(id)].append(index)
            self._queues["any", bool(id)].append(index)

    def pop_oldest(self, keys: Sequence[Hashable]) -> int | None:
        """Remove and return the oldest call in these queues."""
        heads = [head for key in keys if (head := self._head(key)) is not None]
        if not heads:
            return None
        self._answered.add(oldest := min(heads))
        return oldest

    def _head(self, key: Hashable) -> int | None:
        queue = self._queues.get(key)
        while queue and queue[0] in self._answered:
            queue.popleft()
        return queue[0] if queue else None
