"""The branches of a session whose lines name their parents.

A line names the line before it.  So the order is that of the parents, not of the file: tools that
run in parallel or start while the answer still streams write their results before the answer's
last pieces.  And where the user goes back and writes something else, two lines have one parent::

    file:  u1  r1  a1  a2      u1 ← a1 ← a2 ← r1      one branch: u1 a1 a2 r1

    file:  u1  a1  u2  a2  u3  a3
           u1 ← a1 ← u2 ← a2                          what was taken back
                   ↖ u3 ← a3                          the newest leaf: the conversation

Clients that write an answer in pieces hang the result of each call below the piece with the call,
so a parallel call forks too, without a second conversation.  Those pieces and results are pulled
into the branch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Node:
    """One line: its id and its parent's ("": it names none).

    ``time``: where the file's order does not tell which line is newest; in seconds.
    ``is_item``: whether it is part of the conversation, or only a link between lines.  ``answer``:
    the id of the model's answer that it is a piece of, ``calls``: the ids of the calls in it,
    ``results``: of the calls that it answers.  ``is_model``: whether the model wrote it.
    ``begins``: a line without a parent that begins a conversation, as the user does who goes back
    to before the first message.
    """

    id: str
    parent: str = ""
    time: float | None = None
    is_item: bool = True
    is_model: bool = False
    answer: str = ""
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    begins: bool = False


class Branch(NamedTuple):
    """The numbers of a branch's items in their order, and those that no newer branch has."""

    items: list[int]
    own: frozenset[int]


class Chain(NamedTuple):
    """Lines of the user's conversation or of one subagent, and one branch of them."""

    lines: Sequence[Any]
    branch: Branch
    id: str
    task: str
    """``main``, ``branch`` (taken back by a rewind) or ``sidechain``."""


def chains(
    lines: Sequence[Mapping[str, Any]], id: str, nodes: Callable[[Sequence[Any]], Sequence[Node]]
) -> Iterator[Chain]:
    """Every branch of the conversation, then of each subagent, where lines say ``isSidechain``."""
    by_agent: dict[str, list[Any]] = {"": []}
    for line in lines:
        name = str(line.get("agentId") or "side") if line.get("isSidechain") else ""
        by_agent.setdefault(name, []).append(line)
    for name, own in by_agent.items():
        chain_id = f"{id}/{name}" if name else id
        for number, branch in enumerate(branches(nodes(own))):
            task = "sidechain" if name else "branch" if number else "main"
            yield Chain(own, branch, f"{chain_id}~{number}" if number else chain_id, task)


def branches(nodes: Sequence[Node]) -> list[Branch]:
    """The branch of the newest leaf, then those of other leaves that have an answer of their own,
    newest first."""
    tree = _Tree(nodes)
    seen: set[int] = set()
    found: list[Branch] = []
    for leaf in tree.leaves():
        if leaf in seen:
            continue
        items = tree.branch(leaf)
        own = frozenset(items) - seen
        seen |= own
        if not found or any(nodes[number].is_model for number in own):
            found.append(Branch(items, own))
    return found


class _Tree:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = nodes
        self.parents = _parents(nodes)
        self._pieces: dict[str, list[int]] = {}
        self._results: dict[str, list[int]] = {}
        for number, node in enumerate(nodes):
            if node.answer:
                self._pieces.setdefault(node.answer, []).append(number)
            for call in node.results:
                self._results.setdefault(call, []).append(number)

    def path(self, number: int) -> list[int]:
        """A node's ancestors and itself, from the root.  A cycle of a damaged log is cut."""
        path, seen = [number], {number}
        while (parent := self.parents[path[-1]]) is not None and parent not in seen:
            path.append(parent)
            seen.add(parent)
        return path[::-1]

    def leaves(self) -> list[int]:
        """Items below which no item stands, newest first."""
        inner, walked = set[int](), set[int]()
        for number, node in enumerate(self.nodes):
            if not node.is_item:
                continue
            parent = self.parents[number]
            while parent is not None and parent not in walked:
                walked.add(parent)
                if self.nodes[parent].is_item:
                    inner.add(parent)
                    break
                parent = self.parents[parent]
        items = [number for number, node in enumerate(self.nodes) if node.is_item]
        leaves = [number for number in items if number not in inner]
        leaves = leaves or items[-1:]  # all lines make a circle
        times: list[float] = []
        for node in self.nodes:
            last = times[-1] if times else 0.0
            times.append(last if node.time is None else node.time)
        return sorted(leaves, key=lambda number: (times[number], number), reverse=True)

    def branch(self, leaf: int) -> list[int]:
        """The items from the root to a leaf, each answer with all its pieces and results."""
        path = self.path(leaf)
        on_path, place = set(path), {number: n for n, number in enumerate(path)}
        items: list[int] = []
        block: list[int] = []
        """What is between one answer and the next."""
        pulled, joined = False, set[str]()
        for number in path:
            node = self.nodes[number]
            if not node.is_item:
                continue
            if not node.is_model:
                block.append(number)
                continue
            if node.answer and node.answer in joined:
                continue
            items += self._ordered(block) if pulled else block
            block, pulled = [], False
            if not node.answer:
                items.append(number)
                continue
            joined.add(node.answer)
            pieces = sorted(self._pieces[node.answer], key=lambda n: (place.get(n, n), n))
            if any(piece not in on_path for piece in pieces):
                pieces.sort(key=lambda n: (len(self.path(n)), n))
            items += pieces
            calls = [call for piece in pieces for call in self.nodes[piece].calls]
            block = self._results_beside(calls, on_path)
            pulled = bool(block)
        return items + (self._ordered(block) if pulled else block)

    def _results_beside(self, calls: Sequence[str], on_path: set[int]) -> list[int]:
        """Results of calls that hang beside the path."""
        beside: list[int] = []
        for call in calls:
            results = self._results.get(call, [])
            if not any(number in on_path for number in results):
                beside += [number for number in results[:1] if number not in beside]
        return beside

    def _ordered(self, block: Sequence[int]) -> list[int]:
        """Results in the order of the file, then the rest: a result follows its call at once."""
        results = sorted(number for number in block if self.nodes[number].results)
        return results + [number for number in block if not self.nodes[number].results]


def _parents(nodes: Sequence[Node]) -> list[int | None]:
    """The number of each node's parent.  A node whose parent is not in the log follows the line
    before it; where no line has a parent in it, all do."""
    numbers: dict[str, int] = {}
    for number, node in enumerate(nodes):
        numbers.setdefault(node.id, number)
    parents: list[int | None] = []
    lost: list[int] = []
    for number, node in enumerate(nodes):
        parent = numbers.get(node.parent) if node.parent else None
        parents.append(None if parent == number else parent)
        if parents[number] is None:
            lost.append(number)
    is_tree = len(lost) < len(nodes)
    for number in lost:
        if number and is_tree:
            stays = nodes[number].begins or number in _ancestors(number - 1, parents)
            parents[number] = None if stays else number - 1
        elif number:
            parents[number] = number - 1
    return parents


def _ancestors(number: int, parents: Sequence[int | None]) -> set[int]:
    seen = {number}
    at = parents[number]
    while at is not None and at not in seen:
        seen.add(at)
        at = parents[at]
    return seen
