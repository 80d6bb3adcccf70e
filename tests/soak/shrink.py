"""Makes a failing case small: takes out what the failure does not need, greedily.

Knows JSON and that a request is a list of messages of parts.  Does not know any format's keys.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from soak.trial import Case, messages_of

Change = Callable[[Case], bool]
"""Makes a case smaller in place; False where there was nothing to do."""
SHORTEST = 12
"""Strings up to this many characters (names, ids, roles) are left alone."""


def shrunk(case: Case, still: Callable[[Case], bool], seconds: float = 30.0) -> Case:
    """The smallest case found for which ``still`` holds; the case itself where nothing can go."""
    until = time.monotonic() + seconds
    smaller = True
    while smaller and time.monotonic() < until:
        smaller = False
        for change in _changes(case):
            if time.monotonic() >= until:
                break
            trial = {**case, "request": copy.deepcopy(case["request"])}
            if change(trial) and still(trial):
                case, smaller = trial, True
                break
    return case


def _changes(case: Case) -> Iterator[Change]:
    """Ways to make it smaller, the boldest first."""
    messages = messages_of(case["request"])
    size = len(messages) // 2
    while size:
        for start in range(0, len(messages), size):
            yield partial(_cut, path=(), start=start, end=start + size)
        size //= 2
    for number, message in enumerate(messages):
        for path in _lists(message):
            for index in range(len(_at(message, path))):
                yield partial(_cut, path=(number, *path), start=index, end=index + 1)
    if isinstance(case["request"], dict):
        for key, value in case["request"].items():
            if value is not messages:
                yield partial(_without, key=key)
    for number, message in enumerate(messages):
        for path in _strings(message):
            yield partial(_shorten, path=(number, *path))


def _without(case: Case, key: str) -> bool:
    return case["request"].pop(key, None) is not None


def _cut(case: Case, path: tuple[Any, ...], start: int, end: int) -> bool:
    del _at(messages_of(case["request"]), path)[start:end]
    return True


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _lists(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of the lists inside."""
    if isinstance(value, list) and path:
        yield path
    for key, item in _inside(value):
        yield from _lists(item, (*path, key))


def _strings(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of the strings that can be shorter."""
    if isinstance(value, str) and len(value) > SHORTEST:
        yield path
    for key, item in _inside(value):
        yield from _strings(item, (*path, key))


def _inside(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _shorten(case: Case, path: tuple[Any, ...]) -> bool:
    *before, last = path
    holder = _at(messages_of(case["request"]), tuple(before))
    holder[last] = holder[last][: max(SHORTEST, len(holder[last]) // 2)]
    return True
