"""Edits written where messages are known to stand: the same bytes as after a walk of the text.

Knows JSON, not requests.  The oracle is ``splicing.splice``.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from odd_json import SPACE, VALUES, every_path
from path_ops import WILD, ops_on

from trimtab.formats import incremental_json
from trimtab.formats.body import RequestBody
from trimtab.jsontext import paths, splicing
from trimtab.jsontext.paths import Delete, Insert, PathOp, Set


@pytest.fixture(autouse=True, scope="module")
def texts_of_any_size() -> Any:
    patch = pytest.MonkeyPatch()
    patch.setattr(incremental_json, "_SMALL", 0)
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


def known(data: bytes) -> RequestBody | None:
    """A source whose messages are known to stand somewhere; None where the text is too odd."""
    source = incremental_json.IncrementalParser().parse(data)
    return source if source.rows else None


WILD_OPS = st.lists(st.builds(Set, WILD, st.none()) | st.builds(Delete, WILD))


def edits_are_written_as_a_walk_of_the_whole_text_writes_them(
    texts: tuple[bytes, bytes], data: st.DataObject
) -> None:
    source = known(texts[0])
    if source is None:
        return
    ops = data.draw(ops_on(source.tree))
    assert source.text == texts[0].decode()
    got = source.after([ops])
    assert got.written == splicing.splice(texts[0].decode(), ops).encode()
    assert repr(got.tree) == repr(paths.apply(source.tree, ops))
    if not isinstance(got.tree, dict):
        return
    again = data.draw(ops_on(got.tree))
    assert source.after([ops, again]).written == (
        splicing.splice(splicing.splice(texts[0].decode(), ops), again).encode()
    )


def values_are_told_as_they_are_spelled(texts: tuple[bytes, bytes], data: st.DataObject) -> None:
    source = known(texts[1])
    if source is None:
        return
    text = texts[1].decode()
    everywhere = list(every_path(source.tree))
    spans = splicing.spans(text, everywhere)
    assert source.spelled(everywhere) == [text[slice(*spans[path])] for path in everywhere]
    assert source.rows
    deep = [path for path in everywhere if path[:1] == (source.rows.key,) and len(path) > 1]
    assert source.rows.spelled(texts[1], deep) == [text[slice(*spans[path])] for path in deep]


def places_that_do_not_exist_are_refused(texts: tuple[bytes, bytes], data: st.DataObject) -> None:
    source = known(texts[0])
    if source is None:
        return
    assert source.rows
    ops, box = data.draw(WILD_OPS), data.draw(WILD)
    key = source.rows.key
    wild: list[PathOp] = [type(op)((key, *op.path), *([None] * isinstance(op, Set))) for op in ops]
    wild.append(Insert((key, *box, 1), None))
    try:
        want = splicing.splice(texts[0].decode(), wild).encode()
    except LookupError:
        with pytest.raises(LookupError):
            source.rows.spliced(texts[0], wild)
    else:
        assert source.rows.spliced(texts[0], wild) == want


def a_longer_request_is_edited_as_if_it_came_alone(
    texts: tuple[bytes, bytes], data: st.DataObject
) -> None:
    parser = incremental_json.IncrementalParser()
    before, after = (parser.parse(text) for text in texts)
    ops = data.draw(ops_on(before.tree, "set delete insert"))
    try:
        wanted = splicing.splice(texts[1].decode(), ops).encode()
    except LookupError:
        return  # what stood behind the messages of the shorter one is not in the longer
    sent = after.after([ops])
    assert sent.written == wanted
    assert repr(sent.tree) == repr(paths.apply(after.tree, ops))


LAWS = (
    edits_are_written_as_a_walk_of_the_whole_text_writes_them, values_are_told_as_they_are_spelled,
    places_that_do_not_exist_are_refused, a_longer_request_is_edited_as_if_it_came_alone,
)  # fmt: skip


@examples(1.5)
@given(growing(), st.data())
def test_texts_whose_messages_are_known_to_stand_somewhere_keep_each_law(
    texts: tuple[bytes, bytes], data: st.DataObject
) -> None:
    for law in LAWS:
        law(texts, data)


def assert_written_alone(texts: tuple[bytes, bytes], ops: list[PathOp]) -> None:
    """The second text, read behind the first, is edited as if no other had been read."""
    parser = incremental_json.IncrementalParser()
    before = parser.parse(texts[0])
    before.after([ops])
    after = parser.parse(texts[1])
    wanted = splicing.splice(texts[1].decode(), ops).encode()
    assert after.after([ops]).written == wanted
    assert after.written == texts[1], "what came is as it was"
    assert repr(after.after([ops]).tree) == repr(RequestBody.of(wanted).tree)


@pytest.mark.parametrize(
    "op",
    [
        Set(("messages", 1, "content"), "cut"), Delete(("messages", 4)), Delete(("messages", 0)),
        Set(("model",), "n"), Set(("messages",), []), Delete(("stream",)),
    ],
    ids=repr,
)  # fmt: skip
def test_an_edit_of_a_longer_request_is_written_wherever_it_stands(op: PathOp) -> None:
    messages: list[Any] = [{"role": "user", "content": f"é {n}"} for n in range(5)]
    short = {"model": "m", "messages": messages, "stream": True}
    longer = {**short, "messages": [*messages, {"role": "user", "content": "go"}]}
    assert_written_alone((json.dumps(short).encode(), json.dumps(longer).encode()), [op])


def test_a_request_with_other_space_in_its_beginning_is_edited_as_it_is_spelled() -> None:
    assert_written_alone(
        (b'{"messages": [1, 2]}', b'{"messages": [1,  2, 3]}'), [Set(("messages", 1), 5)]
    )


def test_a_last_number_that_got_longer_is_another_number() -> None:
    texts = (b'{"messages": [1, 2]}', b'{"messages": [1, 25, 3]}')
    assert_written_alone(texts, [Set(("messages", 0), 7)])


def chat(*contents: str) -> bytes:
    messages = [{"content": text} for text in ("x" * 300, *contents)]
    return json.dumps({"messages": messages}, ensure_ascii=False).encode()


def edited(parser: incremental_json.IncrementalParser, data: bytes, count: int) -> Any:
    ops = [Set(("messages", n + 1, "content"), "less") for n in range(count)]
    return json.loads(parser.parse(data).after([ops]).written or b"")["messages"][1:]


def test_where_an_edited_value_stands_is_found_once_for_all_bodies_that_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parser, walked, walk = incremental_json.IncrementalParser(), list[str](), splicing.layout

    def seen(text: str, wanted: Any) -> Any:
        walked.append(text)
        return walk(text, wanted)

    monkeypatch.setattr(splicing, "layout", seen)
    edited(parser, chat("first é", "second"), 2)
    assert len(walked) == 2
    assert edited(parser, chat("first é", "second", "third"), 3) == [{"content": "less"}] * 3
    assert len(walked) == 3


def test_where_an_edited_value_stands_is_forgotten_with_its_message() -> None:
    parser = incremental_json.IncrementalParser()
    edited(parser, chat("first", "second", "third"), 3)
    other = chat("first", "quite another one", "third")
    assert edited(parser, other, 3) == [{"content": "less"}] * 3


def test_a_value_that_is_set_again_in_a_longer_body_is_not_written_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parser, written, dump = incremental_json.IncrementalParser(), list[Any](), splicing.dump

    def seen(value: Any) -> str:
        written.append(value)
        return dump(value)

    monkeypatch.setattr(splicing, "dump", seen)
    for count in (2, 2, 3):
        data = chat(*("first", "second", "third")[:count])
        notes = [Set(("messages", n + 1), {"content": f"é {n}"}) for n in range(count)]
        sent = json.loads(parser.parse(data).after([notes]).written or b"")
        assert sent["messages"][1:] == [note.value for note in notes]
    assert [value["content"] for value in written] == ["é 0", "é 1", "é 2"]


def test_a_value_that_is_equal_but_spelled_otherwise_is_written_anew() -> None:
    parser, path = incremental_json.IncrementalParser(), ("messages", 1, "content")
    values = (1, True, 1.0, {"a": 0, "b": 1}, {"b": 1, "a": False})
    for count, value in enumerate(values, 1):
        body = parser.parse(chat(*["same"] * count)).after([[Set(path, value)]])
        assert repr(json.loads(body.written or b"")["messages"][1]["content"]) == repr(value)
