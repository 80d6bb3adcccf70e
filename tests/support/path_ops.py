"""Generated operations on paths: with a place in a tree, and with none."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from odd_json import VALUES, every_path

from trimtab.jsontext import paths
from trimtab.jsontext.paths import Delete, Insert, PathOp, Set


@st.composite
def ops_on(draw: st.DrawFn, tree: Any, kinds: str = "set delete insert new") -> list[PathOp]:
    """Up to eight ops, each of which has a place in the tree."""
    everywhere = list(every_path(tree))
    boxes = [path for path in everywhere if isinstance(paths.get(tree, path), (dict, list))]
    ops: list[PathOp] = []
    for _ in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from(kinds.split()))
        value = paths.parse(draw(VALUES))
        path = draw(st.sampled_from(everywhere))
        box = draw(st.sampled_from(boxes))
        inside = paths.get(tree, box)
        if kind == "insert" and isinstance(inside, list):
            ops.append(Insert((*box, draw(st.integers(0, len(inside)))), value))
        elif kind == "new" and isinstance(inside, dict):
            ops.append(Set((*box, draw(st.sampled_from(["x", "y", "é\ud800"]))), value))
        elif kind == "delete" and path:
            ops.append(Delete(path))
        elif kind == "set" and (path or draw(st.integers(0, 9)) == 0):
            ops.append(Set(path, value))
    return ops


WILD = st.lists(st.sampled_from([0, 1, 2, -1, "a", "b", "no"]), max_size=3).map(tuple)
