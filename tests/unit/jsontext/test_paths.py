"""Paths: one meaning on a tree and on its source text, and nothing else moves.

Knows JSON's ugly sides, not requests.  The oracle ``expected`` is a second, naive implementation.
"""

from __future__ import annotations

from typing import Any

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from odd_json import SOURCES, every_path
from path_ops import WILD, ops_on

from trimtab.jsontext import paths, splicing
from trimtab.jsontext.paths import Delete, Insert, Path, PathOp, Set


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[PathOp]]:
    text = draw(SOURCES)
    return text, draw(ops_on(paths.parse(text)))


def expected(tree: Any, ops: list[PathOp], path: Path = ()) -> Any:
    """What ops mean, straight from their definition: no plan, no sharing, quadratic."""

    def at(place: Path) -> PathOp | None:
        return next(
            (op for op in ops[::-1] if op.path == place and not isinstance(op, Insert)), None
        )

    own = at(path)
    if isinstance(own, Set):
        return own.value
    if isinstance(tree, dict):
        keys = [*tree, *(op.path[-1] for op in ops if isinstance(op, Set) and op.path[:-1] == path)]
        live = [key for key in keys if not isinstance(at((*path, key)), Delete)]
        return {key: expected(tree.get(key), ops, (*path, key)) for key in live}
    if isinstance(tree, list):
        out = []
        for index in range(len(tree) + 1):
            place = (*path, index)
            out += [op.value for op in ops if isinstance(op, Insert) and op.path == place]
            if index < len(tree) and not isinstance(at(place), Delete):
                out.append(expected(tree[index], ops, place))
        return out
    return tree


def touched(path: Path, ops: list[PathOp]) -> bool:
    """Whether an op stands at, below or above this path (an insert: at its array)."""
    places = [op.path[:-1] if isinstance(op, Insert) else op.path for op in ops]
    new = [op.path[:-1] for op in ops if isinstance(op, Set)]
    return any(place[: len(path)] == path for place in places + new) or any(
        path[: len(op.path)] == op.path for op in ops if not isinstance(op, Insert)
    )


# --- the laws ------------------------------------------------------------------------------------


def text_and_tree_mean_the_same(text: str, ops: list[PathOp]) -> None:
    tree = paths.parse(text)
    want = repr(expected(tree, ops))  # repr: tells 1 from 1.0, minds key order, takes NaN for NaN
    assert repr(paths.apply(tree, ops)) == want
    assert repr(paths.parse(splicing.splice(text, ops))) == want


def the_original_stays_and_untouched_containers_are_shared(text: str, ops: list[PathOp]) -> None:
    tree = paths.parse(text)
    new = paths.apply(tree, ops)
    assert repr(tree) == repr(paths.parse(text))
    for path in every_path(new):
        before = paths.rebase(path, ops)
        if before is not None and not touched(before, ops):
            assert paths.get(new, path) is paths.get(tree, before)


def a_path_of_the_new_tree_leads_back_to_the_same_place(text: str, ops: list[PathOp]) -> None:
    tree = labelled(paths.parse(text))
    ops = [op if isinstance(op, Delete) else type(op)(op.path, NEW) for op in ops]
    new = paths.apply(tree, ops)
    back = {path: paths.rebase(path, ops) for path in every_path(new)}
    for path, before in back.items():
        value = paths.get(new, path)
        if not isinstance(value, (dict, list)):
            assert (before is None) == (value is NEW)
            assert before is None or value == f"at {paths.escape(before)}"
    gone = {path for path in every_path(tree) if path not in back.values()}
    assert all(
        any(path[: len(op.path)] == op.path for op in ops if not isinstance(op, Insert))
        for path in gone
    )


NEW = "something new"


def labelled(tree: Any, path: Path = ()) -> Any:
    """The same containers, each leaf replaced by the name of its path."""
    if isinstance(tree, dict):
        return {key: labelled(child, (*path, key)) for key, child in tree.items()}
    if isinstance(tree, list):
        return [labelled(child, (*path, index)) for index, child in enumerate(tree)]
    return f"at {paths.escape(path)}"


def everything_untouched_keeps_its_spelling(text: str, ops: list[PathOp]) -> None:
    spliced = splicing.splice(text, ops)
    here = list(every_path(paths.parse(spliced)))
    old, new = splicing.spans(text, every_path(paths.parse(text))), splicing.spans(spliced, here)
    for path in here:
        before = paths.rebase(path, ops)
        if before is not None and not touched(before, ops):
            assert spliced[slice(*new[path])] == text[slice(*old[before])]
    assert spliced[: old[()][0]] == text[: old[()][0]]
    assert spliced.endswith(text[old[()][1] :])


def setting_values_changes_their_spans_only(text: str, ops: list[PathOp]) -> None:
    there = set(every_path(paths.parse(text)))
    ops = [op for op in ops if isinstance(op, Set) and op.path in there]
    last = {op.path: op for op in ops}
    tops = [p for p in last if not any(p[:n] in last for n in range(len(p)))]
    want = text
    for path, (start, end) in sorted(
        splicing.spans(text, tops).items(), key=lambda item: -item[1][0]
    ):
        want = want[:start] + paths.dump(last[path].value) + want[end:]
    assert splicing.splice(text, ops) == want


def deleting_only_takes_characters_away(text: str, ops: list[PathOp]) -> None:
    left = iter(text)
    spliced = splicing.splice(text, [op for op in ops if isinstance(op, Delete)])
    assert all(char in left for char in spliced)


def inserting_takes_no_character_away(text: str, ops: list[PathOp]) -> None:
    there = set(every_path(paths.parse(text)))
    new = [op for op in ops if isinstance(op, Insert) or op.path not in there]
    left = iter(splicing.splice(text, new))
    assert all(char in left for char in text)


def spans_hold_exactly_the_values(text: str, ops: list[PathOp]) -> None:
    tree = paths.parse(text)
    everywhere = list(every_path(tree))
    found = splicing.spans(
        text, [*everywhere, ("nowhere",), (99,), (-1,), ("a", "b", "c", "d", "e", 0)]
    )
    for path in everywhere:
        start, end = found[path]
        assert text[start:end] == text[start:end].strip()
        assert repr(paths.parse(text[start:end])) == repr(paths.get(tree, path))
    assert not {("nowhere",), (99,), (-1,)} & found.keys()


def no_ops_give_back_the_very_same_object(text: str, ops: list[PathOp]) -> None:
    tree = paths.parse(text)
    assert splicing.splice(text, ()) is text
    assert paths.apply(tree, ()) is tree
    assert splicing.spans(text, ()) == {}


LAWS = (
    text_and_tree_mean_the_same, the_original_stays_and_untouched_containers_are_shared,
    a_path_of_the_new_tree_leads_back_to_the_same_place, everything_untouched_keeps_its_spelling,
    setting_values_changes_their_spans_only, deleting_only_takes_characters_away,
    inserting_takes_no_character_away, spans_hold_exactly_the_values,
    no_ops_give_back_the_very_same_object,
)  # fmt: skip


@examples(2)
@given(cases())
def test_edits_of_any_text_keep_each_law_of_paths(case: tuple[str, list[PathOp]]) -> None:
    for law in LAWS:
        law(*case)


@given(SOURCES, st.lists(st.builds(Set, WILD, st.none()) | st.builds(Delete, WILD)), WILD)
def test_text_and_tree_refuse_the_same_places(text: str, ops: list[PathOp], box: Path) -> None:
    ops = [op for op in ops if op.path] + [Insert((*box, 1), None)]
    try:
        want = repr(paths.apply(paths.parse(text), ops))
    except LookupError:
        with pytest.raises(LookupError):
            splicing.splice(text, ops)
    else:
        assert repr(paths.parse(splicing.splice(text, ops))) == want


# --- written out ---------------------------------------------------------------------------------

PRETTY = '{\n  "a": [\n    1.10,\n    2,\n    3\n  ],\n  "b": {}\n}\n'


@pytest.mark.parametrize(
    ("text", "ops", "want"),
    [
        ("[1, 2, 3]", [Delete((0,))], "[2, 3]"),
        ("[1, 2, 3]", [Delete((1,))], "[1, 3]"),
        ("[1, 2, 3]", [Delete((2,))], "[1, 2]"),
        ("[1, 2, 3]", [Delete((0,)), Delete((1,))], "[3]"),
        ("[1, 2, 3]", [Delete((2,)), Delete((1,))], "[1]"),
        ("[1, 2, 3]", [Delete((0,)), Delete((2,))], "[2]"),
        ("[ 1, 2, 3 ]", [Delete((0,)), Delete((1,)), Delete((2,))], "[  ]"),
        ("[1]", [Delete((0,)), Insert((0,), "x"), Insert((1,), "y")], '["x","y"]'),
        ("[1, 2]", [Insert((0,), "x"), Insert((0,), "y")], '["x","y",1, 2]'),
        ("[1, 2]", [Insert((2,), "x"), Insert((2,), "y")], '[1, 2,"x","y"]'),
        ("[1, 2]", [Insert((1,), "x"), Delete((1,)), Insert((2,), "y")], '[1,"x","y"]'),
        ("[1, 2]", [Insert((2,), "y"), Delete((0,)), Insert((0,), "x")], '["x",2,"y"]'),
        ("[1, 2]", [Delete((1,)), Insert((1,), "x"), Delete((0,))], '["x"]'),
        ("[1, 2]", [Set((0,), "x"), Insert((0,), "w"), Insert((1,), "y")], '["w","x","y", 2]'),
        ("[ ]", [Insert((0,), [])], "[[] ]"),
        ("{}", [Set(("a",), 1), Set(("b",), 2)], '{"a":1,"b":2}'),
        ('{"a": 1}', [Set(("b",), "\ud800")], '{"a": 1,"b":"\\ud800"}'),
        ('{"a": 1}', [Delete(("a",)), Set(("b",), 2)], '{"b":2}'),
        ('{"a": 1, "b": 2}', [Delete(("a",))], '{"b": 2}'),
        ('{"a": 1, "b": 2}', [Delete(("b",)), Set(("c",), 3)], '{"a": 1,"c":3}'),
        ('{"a":1, "b":2, "\\u0061":3}', [Delete(("a",))], '{"b":2}'),
        ('{"a":1, "b":2, "\\u0061":3}', [Set(("a",), 4)], '{"a":1, "b":2, "\\u0061":4}'),
        ('{"a":7,"a":{"b":1}}', [Set(("a", "b"), 2)], '{"a":7,"a":{"b":2}}'),
        ('{"a":1}', [Set(("a",), 2), Set(("a",), 3)], '{"a":3}'),
        ('{"a":1,"b":2}', [Set(("a",), 2), Delete(("a",))], '{"b":2}'),
        ('{"a":1}', [Delete(("a",)), Set(("a",), 2)], '{"a":2}'),
        ('{"a":[1]}', [Delete(("a", 0)), Insert(("a", 0), 5), Set(("a",), 2)], '{"a":2}'),
        ('{"a":[1]}', [Set(("a", 0, "deep"), 5), Delete(("a",))], "{}"),
        ('{"a":1}', [Set(("n",), {}), Set(("n", "x"), 5)], '{"a":1,"n":{}}'),
        ('\ufeff {"a":1E5} ', [Set((), None)], "\ufeff null "),
        (PRETTY, [Delete(("a", 1))], '{\n  "a": [\n    1.10,\n    3\n  ],\n  "b": {}\n}\n'),
        (PRETTY, [Delete(("a", 0))], '{\n  "a": [\n    2,\n    3\n  ],\n  "b": {}\n}\n'),
        (PRETTY, [Delete(("b",))], '{\n  "a": [\n    1.10,\n    2,\n    3\n  ]\n}\n'),
    ],
)
def test_splices_written_out(text: str, ops: list[PathOp], want: str) -> None:
    assert splicing.splice(text, ops) == want
    assert paths.apply(paths.parse(text), ops) == paths.parse(want)


@pytest.mark.parametrize(
    ("op", "place"),
    [
        (Set(("no", "x"), 1), "no"),
        (Set(("a", 2), 1), "a[2]"),
        (Set(("a", -1), 1), "a[-1]"),
        (Set(("a", "x"), 1), "a.x"),
        (Set(("s", "x"), 1), "s.x"),
        (Set(("s", 0), 1), "s[0]"),
        (Set((0,), 1), "[0]"),
        (Delete(("no",)), "no"),
        (Delete(("a", 2)), "a[2]"),
        (Delete(("a", "x y")), 'a["x y"]'),
        (Insert(("a", 3), 1), "a[3]"),
        (Insert(("a", -1), 1), "a[-1]"),
        (Insert((0,), 1), "[0]"),
        (Insert(("s", 0), 1), "s[0]"),
        (Insert(("no", 0), 1), "no"),
    ],
)
def test_a_place_that_does_not_exist_is_named(op: PathOp, place: str) -> None:
    text = '{"a": [1, 2], "s": "text"}'
    for run in (lambda: splicing.splice(text, [op]), lambda: paths.apply(paths.parse(text), [op])):
        with pytest.raises(LookupError) as caught:
            run()
        assert str(caught.value) == f"the request has no {place}"


@pytest.mark.parametrize("op", [Delete(()), Insert((), 1), Insert(("a",), 1)])
def test_an_op_without_meaning_is_refused(op: PathOp) -> None:
    with pytest.raises(ValueError, match=r"whole tree|index"):
        paths.apply({"a": 1}, [op])


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ((), "$"),
        (("messages", 3, "content", 0, "text"), "messages[3].content[0].text"),
        ((0, "content"), "[0].content"),
        (("a", "x.y", "0", "", "é"), 'a["x.y"]["0"][""]["é"]'),
        (("$",), '["$"]'),
    ],
)
def test_paths_are_shown_as_people_write_them(path: Path, want: str) -> None:
    assert paths.escape(path) == want


def test_get_reads_and_names_what_is_missing() -> None:
    tree = {"a": [{"b": None}]}
    assert paths.get(tree, ("a", 0, "b")) is None
    with pytest.raises(LookupError, match=r"the request has no a\[1\]"):
        paths.get(tree, ("a", 1, "b"))


def test_rebase_counts_several_edits_of_one_array_together() -> None:
    ops: list[PathOp] = [
        Delete((1,)),
        Insert((1,), "x"),
        Insert((3,), "y"),
        Insert((3,), "z"),
        Delete((4,)),
    ]
    new = paths.apply(["0", "1", "2", "3", "4", "5"], ops)
    assert new == ["0", "x", "2", "y", "z", "3", "5"]
    back = [paths.rebase((index,), ops) for index in range(len(new))]
    assert back == [(0,), None, (2,), None, None, (3,), (5,)]
    assert paths.rebase((1, "deep"), ops) is None
    assert paths.rebase((6, "deep"), ops) == (5, "deep")
