"""What the user wants left alone: pins, protected tools and paths (globs)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from trimtab.errors import InvalidSetting
from trimtab.transcript.call_arguments import files_in_text
from trimtab.transcript.model import Block
from trimtab.transcript.transcript import Transcript

Key = tuple[int, int]
"""(message, index) of a block."""
Pin = str | Callable[[Block], bool]
"""A ref (from a report or from ``measure``), or a predicate over blocks."""


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
        raise InvalidSetting(
            f"a pin raised {error!r} on a {block.kind} block: correct it"
        ) from error


def protected(
    transcript: Transcript,
    tools: Sequence[str],
    files: Sequence[str],
    turns: int = 0,
    said_turns: int = 0,
) -> frozenset[Key]:
    """The blocks that belong to a protected tool, to a call that names a protected path, or to
    one of the newest ``turns`` (of ``said_turns``: what the model said and called there).  A turn
    is one step of the model with its results."""
    tools = (tools,) if isinstance(tools, str) else tools
    files = (files,) if isinstance(files, str) else files
    if not tools and not files and not turns and not said_turns:
        return frozenset()
    keys: set[Key] = set()
    for age, group in enumerate(reversed(transcript.groups)):
        if age >= max(turns, said_turns):
            break
        keys.update(
            (place.message, place.index)
            for place in group.places
            if age < turns or place.block.kind in ("text", "call")
        )
    for group in transcript.groups if tools or files else ():
        calls = {
            (place.block.call_id, "" if place.block.call_id else place.block.tool)
            for place in group.places
            if place.block.kind == "call"
            and (
                matches([place.block.tool or ""], tools)
                or (files and _names(place.block, compiled(tuple(files))))
            )
        }
        keys.update(
            (place.message, place.index)
            for place in group.places
            if (place.block.call_id, "" if place.block.call_id else place.block.tool) in calls
        )
    return frozenset(keys)


def matches(names: Iterable[str], globs: Sequence[str]) -> bool:
    """Whether one of the names (of tools) matches one of the globs, whatever the case."""
    if not globs:
        return False
    globs = (globs,) if isinstance(globs, str) else globs
    return any(fnmatchcase(name.lower(), glob.lower()) for name in names for glob in globs if name)


def _names(block: Block, patterns: Sequence[re.Pattern[str]]) -> bool:
    paths = files_in_text(block.text, free=block.spelling == "string")
    return any(pattern.fullmatch(path) for path in paths for pattern in patterns)


@lru_cache(maxsize=64)
def compiled(globs: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Path globs as patterns, case ignored.

    ``*`` and ``?`` stay within a folder, ``**`` does not, ``**/`` is any folders or none.  A glob
    without a slash is of file names, wherever they are; one that does not begin with a slash is
    of the end of a path.
    """
    return tuple(re.compile(_pattern(glob), re.IGNORECASE | re.DOTALL) for glob in globs)


_GLOB = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|[^*?\[]+|\[")
_AS_PATTERN = {"**/": "(?:[^/]*/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _pattern(glob: str) -> str:
    slashed = glob.replace("\\", "/").removeprefix("./")
    begin = (
        "" if slashed.startswith(("/", "**")) or re.match(r"[A-Za-z]:/", slashed) else "(?:.*/)?"
    )
    return begin + "".join(
        _AS_PATTERN.get(piece) or _piece(piece) for piece in _GLOB.findall(slashed)
    )


def _piece(piece: str) -> str:
    if not piece.startswith("[") or len(piece) < 3:
        return re.escape(piece)
    inner = piece[1:-1].replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]")
    return f"[{'^' + inner[1:] if inner.startswith('!') else inner}]"
