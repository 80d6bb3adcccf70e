"""Lines that name their parents: the order, the newest branch, and what was taken back.

Does not know any agent's log.
"""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.logs.branches import Node, branches


def line(id_: str, parent: str = "", **more: object) -> Node:
    is_model = id_.startswith("a")
    results = (f"c{id_[1:]}",) if id_.startswith("r") else ()
    return Node(id_, parent, is_model=is_model, results=results, **more)  # type: ignore[arg-type]


def piece(id_: str, parent: str, answer: str, *calls: str) -> Node:
    return Node(id_, parent, is_model=True, answer=answer, calls=calls)


CASES: list[tuple[str, list[Node], list[str]]] = [
    ("a chain", [line("u1"), line("a1", "u1"), line("u2", "a1")], ["u1 a1 u2"]),
    (
        "a result before its call",
        [line("u1"), line("r1", "a2"), line("a1", "u1"), line("a2", "a1"), line("u2", "r1")],
        ["u1 a1 a2 r1 u2"],
    ),
    (
        "parallel calls in pieces, the results beside the path are pulled in behind all pieces",
        [line("u1"), piece("p1", "u1", "m", "c1"), line("r1", "p1"), piece("p2", "p1", "m", "c2"),
         piece("p3", "p2", "m", "c3"), line("r3", "p3"), line("r2", "p2"), line("a9", "r2")],
        ["u1 p1 p2 p3 r1 r3 r2 a9"],
    ),
    (
        "a rewind",
        [line("u1"), line("a1", "u1"), line("u2", "a1"), line("a2", "u2"), line("u3", "a1"),
         line("a3", "u3")],
        ["u1 a1 u3 a3", "u1 a1 u2 a2"],
    ),
    (
        "a rewind that nobody answered is no conversation",
        [line("u1"), line("a1", "u1"), line("u2", "a1"), line("u3", "a1"), line("a3", "u3")],
        ["u1 a1 u3 a3"],
    ),
    (
        "a rewind to before the first message",
        [line("u1", begins=True), line("a1", "u1"), line("u2", begins=True), line("a2", "u2")],
        ["u2 a2", "u1 a1"],
    ),
    ("no parents at all", [line("u1", begins=True), line("a1"), line("u2", begins=True)],
     ["u1 a1 u2"]),
    ("a parent that the log lacks", [line("u1"), line("a1", "u1"), line("u2", "gone")],
     ["u1 a1 u2"]),
    ("links that are no items",
     [line("u1"), Node("x", "u1", is_item=False), line("a1", "x")], ["u1 a1"]),
    ("a circle", [line("u1", "a1"), line("a1", "u1")], ["u1 a1"]),
    ("its own parent", [line("u1", "u1"), line("a1", "u1")], ["u1 a1"]),
    ("nothing", [], []),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_a_log_has_these_branches_newest_first(nodes, wanted):
    found = [" ".join(nodes[n].id for n in branch.items) for branch in branches(nodes)]
    assert found == wanted


def test_the_newest_line_by_its_time_is_the_leaf_where_the_file_is_out_of_order():
    nodes = [
        line("u1", time=1.0), line("u3", "u1", time=5.0), line("a3", "u3", time=6.0),
        line("u2", "u1", time=2.0), line("a2", "u2", time=3.0),
    ]  # fmt: skip
    newest, other = branches(nodes)
    assert [nodes[n].id for n in newest.items] == ["u1", "u3", "a3"]
    assert {nodes[n].id for n in other.own} == {"u2", "a2"}


@given(st.data(), st.integers(2, 12))
def test_in_whatever_order_a_tree_is_written_its_branches_are_the_same(data, size):
    parents = [data.draw(st.integers(0, n - 1)) for n in range(1, size)]
    nodes = [line("a0", time=0.0)]
    nodes += [line(f"a{n}", f"a{p}", time=float(n)) for n, p in enumerate(parents, 1)]
    wanted = [[nodes[n].id for n in branch.items] for branch in branches(nodes)]
    shuffled = nodes[:]
    random.Random(data.draw(st.integers(0, 99))).shuffle(shuffled)
    assert [[shuffled[n].id for n in b.items] for b in branches(shuffled)] == wanted
    ids = {node.id for node in nodes}
    assert {id_ for items in wanted for id_ in items} == ids
    for items in wanted:  # each is a path: every item stands behind its parent
        assert items[0] == "a0"
        by_id = {node.id: node.parent for node in nodes}
        assert all(by_id[child] == parent for parent, child in itertools.pairwise(items))
