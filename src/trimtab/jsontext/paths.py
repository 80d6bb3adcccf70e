"""Paths in JSON, and operations on them: set, delete and insert, applied to a tree (copy on write).

``splicing.py`` applies them to source text.  All ops of one call refer to the ORIGINAL tree and
apply at once:

* ops below a path that another op sets or deletes are ignored; of several ``Set`` and ``Delete``
  on one path the last wins;
* an ``Insert`` goes before the original item at its index, whether or not that item survives;
* a path that does not exist raises ``LookupError``, except a new key in an existing object.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from trimtab.jsontext.parsing import decode, dump, parse
from trimtab.lazy import cached_property

__all__ = [
    "Delete", "Insert", "OpNode", "Ops", "Path", "PathOp", "Set", "apply", "check_inserts",
    "decode", "dump", "escape", "get", "parse", "plan", "raise_missing", "rebase", "rebaser",
]  # fmt: skip

Path = tuple[str | int, ...]
"""The keys and indices that lead to a value: ``("messages", 3, "content", 0, "text")``."""


@dataclass(frozen=True, slots=True)
class Set:
    """Replace the value at ``path``; a last key that its object lacks becomes a new last member.

    The path ``()`` is the whole tree.
    """

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object member (every one with that key) or an array item."""

    path: Path


@dataclass(frozen=True, slots=True)
class Insert:
    """Put ``value`` before the original item ``path[-1]``, or at the end if that is the length.

    Several inserts at one index keep their order.
    """

    path: Path
    value: Any


PathOp = Set | Delete | Insert


def get(tree: Any, path: Path) -> Any:
    """The value at ``path`` (``tree`` itself at ``()``); ``LookupError`` if there is none."""
    for depth, key in enumerate(path, 1):
        if not _has(tree, key):
            raise_missing(path[:depth])
        tree = tree[key]
    return tree


def escape(path: Path) -> str:
    """The path in readable form: ``messages[3].content[0].text``; ``$`` for the whole tree."""
    out = ""
    for key in path:
        if isinstance(key, int):
            out += f"[{key}]"
        elif _PLAIN_KEY(key):
            out += f".{key}" if out else key
        else:
            out += f"[{dump(key)}]"
    return out or "$"


_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*", re.ASCII).fullmatch


def _has(tree: Any, key: str | int) -> bool:
    if isinstance(key, str):
        return isinstance(tree, dict) and key in tree
    return isinstance(tree, list) and 0 <= key < len(tree)


def raise_missing(path: Path) -> NoReturn:
    """Raises the ``LookupError`` for a path that does not exist."""
    raise LookupError(f"the request has no {escape(path)}")


# --- ops as a tree of their own ------------------------------------------------------------------


class OpNode:
    """The ops of one path: on the value itself (``op``), below it, and between array items."""

    # A turn makes thousands; ``__dict__`` is made only for those with a cached property.
    __slots__ = ("__dict__", "below", "deletes", "inserts", "op")

    def __init__(self, op: Set | Delete | None = None) -> None:
        self.op = op
        self.below: dict[str | int, OpNode] = {}
        self.inserts = _NO_INSERTS
        self.deletes = False
        """Whether something below it may be deleted."""

    @property
    def opens(self) -> bool:
        """Whether anything is done to its elements."""
        return self.op is None and bool(self.below or self.inserts)

    @property
    def only_set(self) -> Set | None:
        """The ``Set`` that is all that is asked at it and below; None where there is more."""
        node = self
        while node.op is None and len(node.below) == 1 and not node.inserts:
            (node,) = node.below.values()
        return node.op if isinstance(node.op, Set) else None

    @property
    def deleted(self) -> AbstractSet[str | int]:
        """The keys of the elements that are deleted."""
        return self._deleted if self.deletes else _NOTHING

    @cached_property
    def _deleted(self) -> set[str | int]:
        return {key for key, child in self.below.items() if type(child.op) is Delete}

    @cached_property
    def reach(self) -> float:
        """The least length of an array that has all deleted items; infinite for a key that is no
        index."""
        own = (k + 1 if isinstance(k, int) and k >= 0 else float("inf") for k in self.deleted)
        return max(own, default=0)

    @property
    def changed(self) -> Iterable[tuple[str | int, OpNode]]:
        """The elements that stay, with the ops at and below each."""
        if not self.deletes:
            return self.below.items()
        gone = self.deleted
        return [(key, child) for key, child in self.below.items() if key not in gone]

    @cached_property
    def pieces(self) -> list[tuple[int, int]]:
        """Runs of array items that stay, as (start, end); each ends where an item is inserted or
        deleted.  The end of the last run is −1."""
        between, done = list[tuple[int, int]](), 0
        for mark in sorted({*self.inserts, *(key for key in self.deleted if isinstance(key, int))}):
            if mark > done or mark in self.inserts:
                between.append((done, mark))
            done = mark + (mark in self.deleted)
        return [*between, (done, -1)]

    @cached_property
    def segments(self) -> tuple[list[int], list[int | None]]:
        """The new start index of each run of items, and its old start index (None: inserted)."""
        starts, olds, new = list[int](), list[int | None](), 0  # items passed
        for done, mark in self.pieces[:-1]:
            for first, count in ((done, mark - done), (None, len(self.inserts.get(mark, ())))):
                if count:
                    starts.append(new)
                    olds.append(first)
                    new += count
        return [*starts, new], [*olds, self.pieces[-1][0]]

    def at(self, path: Path) -> OpNode:
        """The node of a path, created if needed."""
        node = self
        for key in path:
            child = node.below.get(key)
            if child is None or child is _GONE:
                child = node.below[key] = OpNode(child.op if child else None)
            node = child
        return node


_NOTHING = frozenset[str | int]()
_NO_INSERTS = dict[int, list[Any]]()  # stays empty
_GONE = OpNode(Delete(()))
"""Shared node for a plain deletion, the most common op."""


class Ops(tuple[PathOp, ...]):
    """Operations used on both a tree and its text; their plan is computed once."""

    @cached_property
    def root(self) -> OpNode:
        """The operations as a tree of nodes."""
        return plan(iter(self))


def plan(ops: Iterable[PathOp]) -> OpNode:
    """The operations as a tree of nodes."""
    if isinstance(ops, Ops):
        return ops.root
    at = cache((root := OpNode()).at)
    for op in ops:
        if isinstance(op, Insert):
            if not op.path or not isinstance(op.path[-1], int):
                raise ValueError(f"an Insert needs an index as its last step, not {op.path!r}")
            node = root.at(op.path[:-1])
            node.inserts = node.inserts or {}
            node.inserts.setdefault(op.path[-1], []).append(op.value)
        elif isinstance(op, Set):
            root.at(op.path).op = op
        elif not op.path:
            raise ValueError("the whole tree cannot be deleted, only set")
        else:
            node = at(op.path[:-1])
            node.deletes = True
            if node.below.setdefault(op.path[-1], _GONE) is not _GONE:
                root.at(op.path).op = op
    return root


# --- on a tree -----------------------------------------------------------------------------------


def apply(tree: Any, ops: Iterable[PathOp]) -> Any:
    """The tree after ``ops``; only containers along touched paths are new, the rest is shared.

    Without ops it is the same object.  New values are not copied.
    """
    root = plan(ops)
    return _applied(tree, root, ()) if root.op or root.opens else tree


def _applied(value: Any, node: OpNode, path: Path) -> Any:
    if isinstance(node.op, Set):
        return node.op.value
    if isinstance(value, dict):
        return _applied_to_object(value, node, path)
    if not isinstance(value, list):
        raise_missing((*path, next(iter(node.below or node.inserts))))
    new = list(value)
    for key, child in node.changed:
        if not isinstance(key, int) or not 0 <= key < len(new):
            raise_missing((*path, key))
        new[key] = _applied(new[key], child, (*path, key))
    if not (node.deletes or node.inserts):
        return new
    if node.reach > len(value):
        lost = (k for k in node.deleted if not isinstance(k, int) or not 0 <= k < len(value))
        raise_missing((*path, next(lost)))
    check_inserts(node, len(value), path)
    return _spaced(new, node)


def _applied_to_object(value: dict[str, Any], node: OpNode, path: Path) -> dict[str, Any]:
    if node.inserts:
        check_inserts(node, -1, path)
    new = dict(value)
    for key, child in node.below.items():
        op = child.op
        if not isinstance(key, str) or (key not in value and not isinstance(op, Set)):
            raise_missing((*path, key))
        if op is None:
            new[key] = _applied(value[key], child, (*path, key))
        elif isinstance(op, Set):
            new[key] = op.value
        else:
            del new[key]
    return new


def _spaced(items: list[Any], node: OpNode) -> list[Any]:
    """The array without its deleted items and with the inserted ones."""
    out = list[Any]()
    for done, mark in node.pieces[:-1]:
        out += [*items[done:mark], *node.inserts.get(mark, ())]
    return out + items[node.pieces[-1][0] :]


def check_inserts(node: OpNode, count: int, path: Path) -> None:
    """Raises ``LookupError`` for an insert outside ``0 … count``."""
    for index in node.inserts:
        if not 0 <= index <= count:
            raise_missing((*path, index))


def rebase(path: Path, ops: Iterable[PathOp]) -> Path | None:
    """Map a path in ``apply(tree, ops)`` to the path of the same value in ``tree``.

    None if the path is at or inside a value that was set or inserted, or a key was deleted.
    """
    return rebaser(ops)(path)


def rebaser(ops: Iterable[PathOp], *, replaced: bool = False) -> Callable[[Path], Path | None]:
    """``rebase`` for many paths and the same operations; ``replaced``: a value that was set maps
    to the path of the value that it replaced."""
    root = plan(ops)
    return lambda path: _before(path, root, replaced)


def _before(path: Path, root: OpNode, replaced: bool) -> Path | None:
    node: OpNode | None = root
    before: list[str | int] = []
    for key in path:
        if node is not None and node.op is not None:
            return None
        old = key if node is None or isinstance(key, str) else _index_before(key, node)
        if old is None:
            return None
        before.append(old)
        node = None if node is None else node.below.get(old)
    there = node is None or node.op is None or (replaced and isinstance(node.op, Set))
    return tuple(before) if there else None


def _index_before(index: int, node: OpNode) -> int | None:
    """The old index of an array item; None if it is new."""
    starts, olds = node.segments
    at = bisect_right(starts, index) - 1
    old = olds[at]
    return None if old is None else old + index - starts[at]
