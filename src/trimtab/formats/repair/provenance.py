"""Maps places in a repaired request to places in the request as it was given.

Repairs move parts between messages, change ids and remove parts; a recalled original must be what
was given, not the repaired form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from trimtab.jsontext import paths
from trimtab.jsontext.paths import Path, PathOp
from trimtab.lazy import cached_property


class Provenance:
    """``trees``: the request before each pass of repair, and after the last; ``base``: the path of
    its messages."""

    def __init__(
        self, trees: Sequence[Any], passes: Sequence[Sequence[PathOp]], base: Path
    ) -> None:
        self._trees, self._base = trees, base
        self._kept = [paths.rebaser(ops) for ops in passes]
        self._replaced = [paths.rebaser(ops, replaced=True) for ops in passes]
        self._stood: dict[int, dict[int, Path]] = {}

    def given(self, path: Path, passes: int | None = None) -> Path | None:
        """The place of a value in the request as it was given; None for a value that repair made.

        ``passes``: the number of passes after which ``path`` is valid; None: all.
        """
        for number in reversed(range(len(self._kept) if passes is None else passes)):
            before = self._before(path, number)
            if before is None:
                return None
            path = before
        return path

    def _before(self, path: Path, number: int) -> Path | None:
        """A path after one pass, before it."""
        if (before := self._kept[number](path)) is not None:
            return before
        for end in range(len(path), len(self._base), -1):  # moved, or within what was moved
            try:
                value = paths.get(self._trees[number + 1], path[:end])
            except LookupError:
                continue
            stood = None if isinstance(value, str) else self._index(number).get(id(value))
            if stood is not None:
                return (*stood, *path[end:])
        before = self._replaced[number](path)
        return before if before is not None and _there(self._trees[number], before) else None

    def _index(self, number: int) -> dict[int, Path]:
        """Object → where it stood among the messages before a pass; of one that stands twice,
        the first place."""
        paths_by_id = self._stood.get(number)
        if paths_by_id is None:
            paths_by_id = self._stood[number] = {}
            for path, value in _walk(paths.get(self._trees[number], self._base), self._base):
                paths_by_id.setdefault(id(value), path)
        return paths_by_id

    # --- what whole messages were made of ---

    def messages(self, items: Iterable[Path]) -> list[Path]:
        """The given places of these messages and parts, in order: a whole message if nothing else
        was made of it, else its parts.  Values that repair made are left out."""
        covered = {
            path for item in items for path in self._within.get(item, (item,))
            if path in self._origins
        }  # fmt: skip
        paths: set[Path] = set()
        for path in covered:
            origin = self._origins[path]
            message = origin[: self._deep]
            paths.add(message if self._holders[message] <= covered else origin)
        whole = {path for path in paths if len(path) == self._deep}
        paths.update(lost for message in whole for lost in self._lost.get(message, ()))
        return sorted(path for path in paths if path in whole or path[: self._deep] not in whole)

    @cached_property
    def _deep(self) -> int:
        """The number of steps in the path of a message."""
        return len(self._base) + 1

    @cached_property
    def _origins(self) -> dict[Path, Path]:
        """Each message and each part after repair → what was given there."""
        origins: dict[Path, Path] = {}
        for path in _messages_and_parts(paths.get(self._trees[-1], self._base), self._base):
            if (origin := self.given(path)) is not None:
                origins[path] = origin
        return origins

    @cached_property
    def _within(self) -> dict[Path, list[Path]]:
        """Message after repair → itself and its parts, as far as they were given."""
        within: dict[Path, list[Path]] = {}
        for path in self._origins:
            within.setdefault(path[: self._deep], []).append(path)
        return within

    @cached_property
    def _holders(self) -> dict[Path, set[Path]]:
        """Message as given → the messages and parts that were made of it."""
        holders: dict[Path, set[Path]] = {}
        for path, origin in self._origins.items():
            holders.setdefault(origin[: self._deep], set()).add(path)
        return holders

    @cached_property
    def _lost(self) -> dict[Path, list[Path]]:
        """Given message of which something is left → those behind it of which nothing is."""
        lost: dict[Path, list[Path]] = {}
        behind: list[Path] = []
        for number in range(len(paths.get(self._trees[0], self._base))):
            path = (*self._base, number)
            if path in self._holders:
                behind = lost[path] = []
            else:
                behind.append(path)
        return lost


def _there(tree: Any, path: Path) -> bool:
    try:
        paths.get(tree, path)
    except LookupError:
        return False
    return True


def _walk(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Every object and array below a place, the outer ones first."""
    stack = [(path, value)]
    while stack:
        at, value = stack.pop()
        yield at, value
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        new = [((*at, key), one) for key, one in inner if isinstance(one, (dict, list))]
        stack += reversed(new)


def _messages_and_parts(messages: Sequence[Any], base: Path) -> Iterator[Path]:
    """The places of messages, and of the items of each list in one."""
    for number, message in enumerate(messages):
        yield (*base, number)
        for key, value in message.items() if isinstance(message, dict) else ():
            for index in range(len(value) if isinstance(value, list) else 0):
                yield (*base, number, key, index)
