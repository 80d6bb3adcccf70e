"""Which blocks the user forbids to reduce: pins, protected tools and paths (globs)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache

from trimtab.errors import InvalidSetting
from trimtab.transcript.call_arguments import files_in_text, read_call
from trimtab.transcript.model import Block
from trimtab.transcript.transcript import Transcript

Key = tuple[int, int]
"""(message, index) of a block."""
Pin = str | Callable[[Block], bool]
"""A ref (from a report or from ``measure``), or a predicate over blocks."""


TEXT_PIN, FILE_PIN = "text:", "file:"


def pinned(
    transcript: Transcript, pins: Sequence[Pin], warnings: list[str] | None = None
) -> frozenset[str]:
    """Refs of all blocks that a pin matches; a pin that matches nothing is no error.

    A function that raises does not match the block, and the first error of each goes to
    ``warnings``, once; without ``warnings`` it raises InvalidSetting.
    """
    pins = (pins,) if isinstance(pins, str) else pins
    if not pins:
        return frozenset()
    if odd := [pin for pin in pins if not isinstance(pin, str) and not callable(pin)]:
        raise InvalidSetting(f"pin {odd[0]!r}: give a ref or a function from block to bool")
    refs = {pin for pin in pins if isinstance(pin, str)}
    tests = [pin for pin in pins if not isinstance(pin, str)]
    return pinned_by_words(transcript, refs) | frozenset(
        ref
        for ref, place in transcript.refs.items()
        if ref in refs or any(_holds(test, place.block, warnings) for test in tests)
    )


def pinned_by_words(transcript: Transcript, pins: Iterable[str]) -> frozenset[str]:
    """Refs of what pins such as ``text:Never push`` and ``file:src/a.py`` name: the newest block
    that has the text; the newest read of the file, and all calls about it since then."""
    refs = set[str]()
    for pin in pins:
        if pin.startswith(TEXT_PIN):
            refs |= _newest_with(transcript, pin.removeprefix(TEXT_PIN))
        elif pin.startswith(FILE_PIN):
            refs |= _about_file(transcript, pin.removeprefix(FILE_PIN))
    return frozenset(refs)


def _newest_with(transcript: Transcript, text: str) -> set[str]:
    for number in reversed(range(-1, len(transcript.messages))):
        for place in transcript.places_in(number):
            if text in place.block.text and not place.block.sealed:
                return {transcript.ref(place)}
    return set()


def _about_file(transcript: Transcript, path: str) -> set[str]:
    patterns, refs = compiled((path,)), set[str]()
    for group in reversed(transcript.groups):
        calls = [place.block for place in group.places if place.block.kind == "call"]
        named = [call for call in calls if _names(call, patterns)]
        own = {(call.call_id, "" if call.call_id else call.tool) for call in named}
        refs |= {
            transcript.ref(place)
            for place in group.places
            if (place.block.call_id, "" if place.block.call_id else place.block.tool) in own
        }
        if any(read_call(call.tool or "", call.text).action == "read" for call in named):
            break
    return refs


def _holds(test: Callable[[Block], bool], block: Block, warnings: list[str] | None) -> bool:
    try:
        return bool(test(block))
    except Exception as error:
        name = getattr(test, "__name__", type(test).__name__)
        problem = f"the pin {name} raised {type(error).__name__}"
        if warnings is None:
            raise InvalidSetting(f"{problem} on a {block.kind} block: correct it") from error
        if not any(text.startswith(problem) for text in warnings):
            warnings.append(f"{problem}, and does not pin what it raises for: {error}")
        return False


def protected(
    transcript: Transcript,
    tools: Sequence[str],
    files: Sequence[str],
    turns: int = 0,
    said_turns: int = 0,
) -> frozenset[Key]:
    """Keys of the blocks that belong to a tool matching ``tools``, to a call that names a path
    matching ``files``, or to one of the newest ``turns``; of the newest ``said_turns``, only the
    model's texts and calls.  A turn is one step of the model with its results."""
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
    """Whether one of the tool names matches one of the globs; case is ignored."""
    if not globs:
        return False
    globs = (globs,) if isinstance(globs, str) else globs
    return any(fnmatchcase(name.lower(), glob.lower()) for name in names for glob in globs if name)


def _names(block: Block, patterns: Sequence[re.Pattern[str]]) -> bool:
    paths = files_in_text(block.text, free=block.spelling == "string")
    return any(pattern.fullmatch(path) for path in paths for pattern in patterns)


@lru_cache(maxsize=64)
def compiled(globs: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """Path globs as regular expressions that ignore case.

    ``*`` and ``?`` do not match a slash, ``**`` does, ``**/`` matches zero or more folders.  A glob
    that does not begin with a slash matches the end of a path; one without any slash therefore
    matches a file name in any folder.
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
