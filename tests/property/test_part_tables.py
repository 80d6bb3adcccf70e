"""Part tables say what the hand-written readers say: each call, result, text and thought of a
message, at its path, under its id and name, for generated histories and for the recorded ones."""

from __future__ import annotations

from typing import Any

import histories
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import FORMATS as RECORDED
from records import folder, records

from trimtab.formats import FORMATS
from trimtab.transcript.model import Part

KINDS = ("call", "result", "text", "reasoning", "media", "server-call", "server-result")


def by_hand(name: str, message: Any) -> list[Any]:
    """(kind, path, id, path of the id, tool) of each part that the format's reader finds."""
    return [
        _plain(part.kind, part.path, part.id if part.id_path else "", part.id_path, part.tool)
        for part in FORMATS[name].read_message(message).parts
        if part.kind in KINDS and not _stands_in(part, message)
    ]


def _stands_in(part: Part, message: Any) -> bool:
    """Whether the reader put this part where a message has none, to name the flaw."""
    alone = len(part.path) == 1 and part.kind == "text"
    return part.flaw == "no-content" or (alone and not _text(message.get(part.path[0])))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def by_table(name: str, message: Any) -> list[Any]:
    """The same by the format's table."""
    return [
        _plain(part.kind, part.path, part.id, part.path_of(part.row.id), part.name)
        for part in FORMATS[name].table.read(message)
        if part.kind in KINDS
    ]


def _plain(kind: str, path: Any, id: str, id_path: Any, tool: str) -> Any:
    if kind not in ("call", "result"):
        return kind, path
    return kind, path, id, id_path if id else (), tool


def assert_same(name: str, messages: Any) -> None:
    """Every message reads alike both ways."""
    for message in messages if isinstance(messages, list) else ():
        assert by_table(name, message) == by_hand(name, message), message
        assert FORMATS[name].table.speaker(message) == FORMATS[name].read_message(message).role


def messages_of(request: Any, name: str) -> Any:
    """The list of messages."""
    table = FORMATS[name].table
    return request if isinstance(request, list) else request.get(table.messages)


@pytest.mark.parametrize("name", sorted(FORMATS))
@given(st.data())
def test_a_history_reads_alike(name, data):
    request, _ = data.draw(histories.of(name, "harmed"))
    assert_same(name, messages_of(request, name))


KEYS = sorted({key for format in FORMATS.values() for key in format.table.parts} | {"role", "type"})
WORDS = st.sampled_from(
    ["", "text", "tool", "user", "tool_use", "toolUse", "function_call", "thought"]
)
ODD = st.recursive(
    st.none() | st.integers() | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | WORDS, inner, max_size=4)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("name", sorted(FORMATS))
@given(st.dictionaries(st.sampled_from(KEYS), ODD, max_size=5))
def test_no_message_is_too_odd_to_read(name, message):
    table = FORMATS[name].table
    assert isinstance(table.speaker(message), str)
    for part in table.read(message):
        assert isinstance(part.id + part.name, str)
        assert isinstance(part.payload, str) or part.kind != "text"
        assert part.failed in (True, False)


@pytest.mark.data
def test_the_recordings_read_alike():
    if folder() is None:
        pytest.skip("no transcripts")
    found = 0
    for _, record in records(*RECORDED):
        assert_same(record["format"], record["messages"])
        found += len(record["messages"])
    assert found > 10_000
