"""What the user wants left alone: pins, protected tools, protected paths.

Knows globs and which argument keys name files.  Does not know sizes or formats.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from trimtab.errors import InvalidSetting
from trimtab.model import Block, Place, Transcript

Pin = str | Callable[[Block], bool]
"""A ref (from a report or from ``measure``), or a predicate over blocks."""

_PATH_KEYS = {"path", "file_path", "filepath", "absolute_path", "notebook_path", "filename", "file"}


def pinned(transcript: Transcript, pins: Sequence[Pin]) -> frozenset[str]:
    """Refs of all blocks that a pin names; a pin that matches nothing is no error."""
    pins = (pins,) if isinstance(pins, str) else pins
    if not pins:
        return frozenset()
    if odd := [pin for pin in pins if not isinstance(pin, str) and not callable(pin)]:
        raise InvalidSetting(f"pin {odd[0]!r}: give a ref or a function from block to bool")
    refs = {pin for pin in pins if isinstance(pin, str)}
    tests = [pin for pin in pins if not isinstance(pin, str)]
    return frozenset(
        ref
        for ref, place in transcript.refs.items()
        if ref in refs or any(_holds(test, place.block) for test in tests)
    )


def _holds(test: Callable[[Block], bool], block: Block) -> bool:
    try:
        return bool(test(block))
    except Exception as error:
        raise InvalidSetting(f"a pin raised {error!r} on a {block.kind} block: mend it") from error


def spared(
    transcript: Transcript, tools: Sequence[str], files: Sequence[str]
) -> Callable[[Place], bool]:
    """Whether a block belongs to a protected tool, or to a call that names a protected path."""
    tools = (tools,) if isinstance(tools, str) else tools
    files = (files,) if isinstance(files, str) else files
    if not tools and not files:
        return lambda place: False
    keys: set[tuple[int, int]] = set()
    for group in transcript.groups:
        calls = {
            place.block.call_id
            for place in group.places
            if place.block.kind == "call"
            and (
                _matches([place.block.tool or ""], tools)
                or (files and _matches(_paths_in(place.block.text), files))
            )
        }
        keys.update((p.message, p.index) for p in group.places if p.block.call_id in calls)
    return lambda place: (place.message, place.index) in keys


def _matches(names: Iterable[str], globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name.lower(), glob.lower()) for name in names for glob in globs if name)


def _paths_in(arguments: str) -> list[str]:
    """Values of argument keys that name files, with forward slashes; also the bare file name."""
    try:
        found = list(_walk(json.loads(arguments)))
    except ValueError:
        return []
    slashed = [path.replace("\\", "/") for path in found]
    return slashed + [path.rsplit("/", 1)[-1] for path in slashed if "/" in path]


def _walk(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _walk(inner, str(name).lower().replace("-", "_"))
    elif isinstance(value, list):
        for inner in value:
            yield from _walk(inner, key)
    elif isinstance(value, str) and key.removesuffix("s") in _PATH_KEYS:
        yield value
