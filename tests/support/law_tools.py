"""What the law tests share: how to fit so that the judge can count, and how to read a report.

Knows the public API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import judge
from hypothesis import strategies as st
from settings_words import as_keywords
from sizes import messages_of
from smallest import assert_due

import trimtab
from trimtab import CannotFit

Story = tuple[Any, str]
SHARES = st.sampled_from([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 1.0, 1.2, 2.0])
"""The window as a share of the request: two thirds of the draws make something happen."""


def fit(request: Any, format: str, window: int | None, **more: Any) -> Any:
    """Fit with sizes that the judge can count again."""
    more = {"reserve": 0, "counter": "o200k", **more}
    return trimtab.fit(request, **as_keywords(format=format, window=window, **more))


def attempt(request: Any, format: str, window: int | None, **more: Any) -> Any:
    """The same, or the CannotFit it raised, which has to be due."""
    try:
        return fit(request, format, window, **as_keywords(**more))
    except CannotFit as error:
        if "pins" not in more:
            tree = json.loads(request) if isinstance(request, bytes) else request
            assert_due(error, tree, format)
        return error


def tried(request: Any, format: str, window: int | None, **more: Any) -> Any:
    """The same, or None where it cannot fit."""
    result = attempt(request, format, window, **more)
    return None if isinstance(result, CannotFit) else result


def window_of(request: Any, format: str, share: float) -> int:
    """A window of that share of the request's size."""
    return max(1, int(judge.tokens(request, format) * share))


def path_of(path: Any) -> tuple[str | int, ...]:
    """A report's path as keys and indices: "messages[3].content" -> ("messages", 3, "content")."""
    if not isinstance(path, str):
        return tuple(path)
    if path == "$":
        return ()
    steps = re.findall(r'"((?:[^"\\]|\\.)*)"|(\d+)|([^.\[\]"/]+)', path)
    return tuple(quoted or name or int(number) for quoted, number, name in steps)


def named(report: Any) -> list[tuple[str | int, ...]]:
    """Every path that the report names, in the request's own coordinates."""
    changes = [*report.edits, *report.repairs]
    paths = [path for change in changes for path in (change.path, *getattr(change, "paths", ()))]
    return [path_of(path) for path in paths if path not in (None, "")]


def at(tree: Any, path: tuple[str | int, ...]) -> Any:
    """The value at a path; None where there is none (an insertion behind the end)."""
    for step in path:
        try:
            tree = tree[step]
        except (LookupError, TypeError):
            return None
    return tree


def differences(old: Any, new: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of the smallest values that differ, types and key order included."""
    if isinstance(old, dict) and isinstance(new, dict) and list(old) == list(new):
        for key in old:
            yield from differences(old[key], new[key], (*here, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from differences(one, other, (*here, index))
    elif type(old) is not type(new) or old != new:
        yield here


def base_of(request: Any) -> tuple[str, ...]:
    """Where the messages stand in a request."""
    return ("messages",) if isinstance(request, dict) else ()


def assert_legal(original: Any, fitted: Any, format: str) -> None:
    """Acceptable to the judge and to the library itself, and no thinking block sent broken."""
    assert judge.problems(fitted.request, format) == []
    assert trimtab.check(fitted.request, format=format) == ()
    if format == "anthropic":
        assert judge.thinking_problems(original, fitted.request) == []


def prefixes(request: Any, format: str) -> Iterator[Any]:
    """The requests that led here: one for each message of the user or tool that was answered."""
    messages = messages_of(request)
    for end in range(1, len(messages) + 1):
        part = messages[:end]
        grown = {**request, "messages": part} if isinstance(request, dict) else part
        if part[-1]["role"] != "assistant" and not judge.problems(grown, format):
            yield grown
