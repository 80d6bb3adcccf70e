"""A body that goes on where an earlier one went is read as if it had come alone.

Knows JSON.  The oracle is ``RequestBody.of``: same tree, same order of keys, same text.
"""

from __future__ import annotations

import json

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from trimtab.errors import InvalidRequest
from trimtab.formats import incremental_json
from trimtab.formats.body import RequestBody
from trimtab.formats.incremental_json import IncrementalParser
from trimtab.jsontext import parsing

LONG = "é" * 9_000
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)
MESSAGES = st.lists(VALUES, max_size=5)
HEADS = st.dictionaries(st.sampled_from(["model", "a", "tools", "messages"]), VALUES, max_size=3)


def body(head, key, messages, tail, indent=None):
    return json.dumps({**head, key: messages, **tail}, ensure_ascii=False, indent=indent).encode()


def same(found, data):
    wanted = RequestBody.of(data)
    assert json.dumps(found.tree) == json.dumps(wanted.tree)  # keys in order
    assert (found.text, found.given) == (wanted.text, data)


@examples(1.5)
@given(
    HEADS, st.sampled_from(["messages", "input", "contents"]), MESSAGES, MESSAGES, HEADS,
    st.sampled_from([None, 1]), st.integers(0, 3),
)  # fmt: skip
def test_whatever_is_appended_changed_or_taken_away_it_reads_as_if_it_came_alone(
    head, key, first, more, tail, indent, cut
):
    grown = IncrementalParser()
    old = [LONG, *first]
    for messages in (old, [*old, *more], [*old[: len(old) - cut], *more], old):
        data = body(head, key, messages, tail, indent)
        same(grown.parse(data), data)


@pytest.mark.parametrize("char", ["x", "é", "€", "😀"])
@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 1_000])
def test_wherever_a_text_is_cut_for_reading_it_is_read_whole(monkeypatch, char, size):
    monkeypatch.setattr(incremental_json, "_WINDOW", size)
    messages = [LONG, 12_345, -1.5e10, char * 3, {"role": char, "content": [char * 7, None]}, True]
    data = body({"model": char}, "messages", messages, {"stream": True, "x": char}, indent=1)
    found = incremental_json.IncrementalParser().parse(data)
    same(found, data)
    assert found.rows
    spans = zip(found.rows.starts, found.rows.ends, strict=True)
    assert [json.loads(data[start:end]) for start, end in spans] == messages


def test_known_messages_are_the_very_same_objects():
    grown, messages = (
        IncrementalParser(),
        [{"role": "user", "content": LONG}, {"role": "assistant"}],
    )
    first = grown.parse(body({"model": "m"}, "messages", messages, {}))
    more = [*messages, {"role": "user", "content": "go"}]
    second = grown.parse(body({"model": "m"}, "messages", more, {"stream": True}))
    assert all(
        old is new
        for old, new in zip(first.tree["messages"], second.tree["messages"][:2], strict=True)
    )


ODD = [
    '{"messages": [1, "%s"], "messages": [2]}',
    '{"messages": ["%s"], "\\u006dessages": [2]}',
    '{"messages": ["%s"], "model": "x", "tools": {"messages": [1]}}',
    '{"tools": [{"messages": [1]}], "messages": ["%s"]}',
    '{"metadata": "\\"messages\\": [", "messages": ["%s"]}',
    '\ufeff{"messages": ["%s"]}',
    '[{"messages": ["%s"]}]',
    '{"messages": ["%s", NaN, 1e999, -0, 1.10]}',
    '{"messages": ["%s"], "": 5, "a": {}}',
    '{"messages": [1, 2]\t, "a": ["%s"]} ',
]


@pytest.mark.parametrize("text", ODD)
def test_odd_json_is_read_as_ever(text):
    grown = IncrementalParser()
    for _ in range(2):
        data = (text % LONG).encode()
        assert repr(grown.parse(data).tree) == repr(RequestBody.of(data).tree)


@pytest.mark.parametrize(
    "end",
    [
        "",
        "]",
        ",]}",
        "1],}",
        "1],,}",
        '1] "a":1}',
        "1 2]}",
        "]} x",
        '], "a"}',
        "[" * 300 + "]" * 300 + "]}",
        "\udcff]}",
    ],
)
def test_what_is_no_json_is_refused_as_ever(end):
    grown = IncrementalParser()
    start = '{"messages": ["' + LONG + '",'
    grown.parse((start + "1]}").encode())
    with pytest.raises(InvalidRequest):
        grown.parse((start + end).encode("utf-8", "surrogateescape"))


@pytest.mark.parametrize("depth", [parsing.MAX_DEPTH - 2, parsing.MAX_DEPTH - 1])
def test_a_message_is_refused_at_the_same_depth_wherever_it_is_read(depth):
    data = ('{"messages": ["' + LONG + '",' + "[" * depth + "]" * depth + "]}").encode()
    outcomes = []
    for read in (IncrementalParser().parse, RequestBody.of):
        try:
            outcomes.append(repr(read(data).tree))
        except InvalidRequest as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
