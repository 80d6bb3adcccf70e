"""A text that extends an earlier one is parsed to what parsing it whole gives.

Knows JSON and how clients change their requests from turn to turn.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trimtab import paths
from trimtab.errors import InvalidRequest
from trimtab.growing import Growing

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    LEAVES | st.sampled_from(['"messages":[', "]", "],", '\\"', "\ud83d"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
MEMBERS = st.dictionaries(st.text(max_size=4), VALUES, max_size=3)
TURNS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "change last", "cut", "tail", "head"]),
        VALUES,
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=300, deadline=None)
@given(MEMBERS, st.lists(VALUES, min_size=1, max_size=4), MEMBERS, TURNS,
       st.sampled_from([None, 1]), st.booleans())  # fmt: skip
def test_it_gives_what_parsing_the_whole_gives(head, rows, tail, turns, indent, ascii):
    growing = Growing()
    for kind, value in [("append", 0), *turns]:
        if kind == "append":
            rows = [*rows, value]
        elif kind == "change last":
            rows = [*rows[:-1], {"was": rows[-1], "is": value}]
        elif kind == "cut":
            rows = rows[: max(1, len(rows) // 2)]
        elif kind == "tail":
            tail = {**tail, "t": value}
        else:
            head = {**head, "h": value}
        tree = {**head, "messages": rows, **tail}
        text = json.dumps(tree, indent=indent, ensure_ascii=ascii)
        data = text.encode("utf-8", "surrogatepass" if ascii else "replace")
        found = growing.source(data)
        whole = paths.parse(paths.decode(data))
        assert repr(found.tree) == repr(whole)
        assert list(found.tree) == list(whole)
        assert found.given is data


def test_what_was_there_before_is_the_same_object():
    growing, rows = Growing(), [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]
    first = growing.source(json.dumps({"model": "m", "messages": rows, "stream": True}).encode())
    rows = [*rows, {"role": "user", "content": "z"}]
    second = growing.source(json.dumps({"model": "m", "messages": rows, "stream": True}).encode())
    assert second.tree["messages"][0] is first.tree["messages"][0]
    assert second.tree["messages"][1] is first.tree["messages"][1]


BROKEN = (
    b'{"messages":[{"a":1},{"b":2}', b'{"messages":[{"a":1},]}', b'{"messages":[{"a":1},{"b":2}]',
    b'{"messages":[{"a":1},{"b":2}]}x', b'{"messages":[{"a":1}{"b":2}]}', b'{"messages":[{"a":1},',
    b'{"messages":[{"a":1},{"b":2}],"c"}', b'{"messages":[{"a":1},' + b"[" * 5_000 + b"]}",
)  # fmt: skip


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_text_is_refused_as_when_it_is_read_whole(broken):
    growing = Growing()
    growing.source(b'{"messages":[{"a":1}]}')
    with pytest.raises(InvalidRequest):
        growing.source(broken)
    assert growing.source(b'{"messages":[{"a":1},{"b":2}]}').tree["messages"] == [
        {"a": 1},
        {"b": 2},
    ]


@pytest.mark.parametrize(
    "text",
    [b'{"messages":[1,2],"messages":[3]}', b'{"messages":[1,2],"n":1,"n":2}',
     b'{"n":1,"messages":[1,2],"n":3}', b'{"messages":[1,2],"input":[3]}', b'{"messages":[]}'],
)  # fmt: skip
def test_doubled_keys_mean_what_they_mean_to_json(text):
    growing = Growing()
    for _ in range(3):
        assert growing.source(text).tree == json.loads(text)
        text = text.replace(b"1,2]", b"1,2,5]")
