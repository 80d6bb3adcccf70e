"""Edits written where messages are known to stand: the same bytes as after a walk of the text.

Knows JSON, not requests.  The oracle is ``paths.splice``.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd_json import SPACE, VALUES, every_path
from test_paths import WILD, ops_on

from trimtab import paths
from trimtab.paths import Delete, Insert, PathOp, Set
from trimtab.reading import grown
from trimtab.reading.source import Source


@pytest.fixture(autouse=True, scope="module")
def texts_of_any_size() -> Any:
    patch = pytest.MonkeyPatch()
    patch.setattr(grown, "_SMALL", 0)
    yield
    patch.undo()


def listed(items: list[str], spaces: list[str]) -> str:
    """Items with odd layout, the same for the same item."""
    return ",".join(
        f"{spaces[n % len(spaces)]}{item}{spaces[(n + 1) % len(spaces)]}"
        for n, item in enumerate(items)
    )


@st.composite
def growing(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """Two texts, of which one has the same beginning and more messages, and another end."""
    bom, key = draw(st.sampled_from(["", "\ufeff"])), draw(st.sampled_from(["messages", "input"]))
    spaces = draw(st.lists(SPACE, min_size=1, max_size=4))
    head = draw(st.sampled_from(["", '"model": "é" ,', '"a":[1, {"b":2}],\n"tools": [ ],']))
    items = draw(st.lists(VALUES, min_size=1, max_size=5))
    more = draw(st.lists(VALUES, max_size=3))
    tails = st.sampled_from(["", ', "stream" : true', ',"x": {"y": [1]}\n,"z":"é"'])
    text = [
        f'{bom}{{{head} "{key}" :{spaces[0]}[{listed(all_, spaces)}]{draw(tails)}}} '
        for all_ in (items, [*items, *more])
    ]
    return text[0].encode(), text[1].encode()


def known(data: bytes) -> Source | None:
    """A source whose messages are known to stand somewhere; None where the text is too odd."""
    source = grown.Grown().source(data)
    return source if source.rows else None


@given(growing(), st.data())
def test_edits_are_written_as_a_walk_of_the_whole_text_writes_them(
    texts: tuple[bytes, bytes], data: st.DataObject
) -> None:
    source = known(texts[0])
    if source is None:
        return
    ops = data.draw(ops_on(source.tree))
    assert source.text == texts[0].decode()
    got = source.after([ops])
    assert got.written == paths.splice(texts[0].decode(), ops).encode()
    assert repr(got.tree) == repr(paths.apply(source.tree, ops))
    if not isinstance(got.tree, dict):
        return
    again = data.draw(ops_on(got.tree))
    assert source.after([ops, again]).written == (
        paths.splice(paths.splice(texts[0].decode(), ops), again).encode()
    )


@given(growing())
def test_values_are_told_as_they_are_spelled(texts: tuple[bytes, bytes]) -> None:
    source = known(texts[1])
    if source is None:
        return
    text = texts[1].decode()
    everywhere = list(every_path(source.tree))
    spans = paths.spans(text, everywhere)
    assert source.spelled(everywhere) == [text[slice(*spans[path])] for path in everywhere]
    assert source.rows
    deep = [path for path in everywhere if path[:1] == (source.rows.key,) and len(path) > 1]
    assert source.rows.spelled(texts[1], deep) == [text[slice(*spans[path])] for path in deep]


@given(growing(), st.lists(st.builds(Set, WILD, st.none()) | st.builds(Delete, WILD)), WILD)
def test_places_that_do_not_exist_are_refused(
    texts: tuple[bytes, bytes], ops: list[PathOp], box: Any
) -> None:
    source = known(texts[0])
    if source is None:
        return
    assert source.rows
    key = source.rows.key
    wild: list[PathOp] = [type(op)((key, *op.path), *([None] * isinstance(op, Set))) for op in ops]
    wild.append(Insert((key, *box, 1), None))
    try:
        want = paths.splice(texts[0].decode(), wild).encode()
    except LookupError:
        with pytest.raises(LookupError):
            source.rows.spliced(texts[0], wild)
    else:
        assert source.rows.spliced(texts[0], wild) == want


@given(growing(), st.data())
def test_what_goes_on_is_written_as_if_its_edits_were_new(
    texts: tuple[bytes, bytes], data: st.DataObject
) -> None:
    parser = grown.Grown()
    before, after = (parser.source(text) for text in texts)
    ops = data.draw(ops_on(before.tree, "set delete insert"))
    sent = before.after([ops])
    found = after.after_as(before, sent, ops)
    if found is not None:
        wanted = after.after([ops])
        assert (found.written, repr(found.tree)) == (wanted.written, repr(wanted.tree))


def test_what_goes_on_is_written_from_what_was_sent() -> None:
    messages: list[Any] = [{"role": "user", "content": f"é {n}"} for n in range(5)]
    more = [*messages, {"role": "user", "content": "go"}]
    parser = grown.Grown()
    before = parser.source(json.dumps({"model": "m", "messages": messages}).encode())
    after = parser.source(json.dumps({"model": "m", "messages": more, "stream": True}).encode())
    ops = [Set(("messages", 1, "content"), "cut"), Delete(("messages", 4))]
    sent = before.after([ops])
    found = after.after_as(before, sent, ops)
    assert found is not None
    assert found.written == after.after([ops]).written
    assert found.tree["messages"][1] is sent.tree["messages"][1]


@pytest.mark.parametrize(
    "op",
    [Delete(("messages", 0)), Set(("model",), "n"), Set(("messages",), []), Delete(("stream",))],
    ids=repr,
)
def test_an_edit_whose_place_depends_on_the_end_is_written_anew(op: PathOp) -> None:
    parser = grown.Grown()
    data = b'{"model": "m", "messages": [1, 2], "stream": true}'
    before = parser.source(data)
    after = parser.source(data.replace(b"2]", b"2, 3]"))
    assert after.after_as(before, before.after([[op]]), [op]) is None


def test_another_beginning_is_no_going_on() -> None:
    parser = grown.Grown()
    before = parser.source(b'{"messages": [1, 2]}')
    after = parser.source(b'{"messages": [1,  2, 3]}')
    ops = [Set(("messages", 1), 5)]
    assert after.after_as(before, before.after([ops]), ops) is None


def test_a_number_that_got_longer_is_no_going_on() -> None:
    parser = grown.Grown()
    before, after = (parser.source(b'{"messages": [1, 2%s]}' % more) for more in (b"", b"5, 3"))
    ops = [Set(("messages", 0), 7)]
    assert after.after_as(before, before.after([ops]), ops) is None
