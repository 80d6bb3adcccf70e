"""Originals that a session without a store keeps in memory."""

import json

import chats

import trimtab
from trimtab.journal.packed_originals import PackedOriginals


def test_a_long_session_keeps_its_originals_in_a_third_of_their_size_and_gives_back_each_byte():
    session = trimtab.Session(window=6_500, reserve=1_000, format="anthropic")
    given: dict[str, str] = {}
    for request in chats.requests("anthropic", chats.script(40, tools=True)):
        fitted = session.fit(json.loads(json.dumps(request)))
        for edit in fitted.report.edits:
            given.setdefault(edit.handle, fitted.recall(edit.handle))
    kept = session._last.journal.originals
    assert given
    assert isinstance(kept, PackedOriginals)
    assert {handle: session.recall(handle) for handle in given} == given
    held = sum(map(len, kept._packed.values()))
    assert held < sum(map(len, kept.values())) / 3


def test_originals_come_back_as_they_were_given_half_a_surrogate_pair_too():
    before = PackedOriginals({"a": "one \ud83d", "b": "x" * 5_000})
    after = before | {"c": "é\x00"}
    assert dict(after) == {"a": "one \ud83d", "b": "x" * 5_000, "c": "é\x00"}
    assert list(before) == ["a", "b"]
