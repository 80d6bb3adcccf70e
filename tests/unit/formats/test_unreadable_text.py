"""Lone halves of characters, NUL and bytes that are no UTF-8: told, repaired, and recallable.

Knows the public API and the wire formats.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from shapes import SIX, items_of, session

import trimtab
from trimtab.retry.refusal_repairs import rules_named
from trimtab.retry.refusals import classify

ODD = {"a lone high half": "\ud83d", "a lone low half": "\udc00", "NUL": "\x00",
       "bytes that were no UTF-8": "\udce9"}  # fmt: skip
PLACES = ("the user's words", "a result", "arguments", "a key", "an id", "the head")


def planted(format: str, place: str, odd: str) -> dict[str, Any]:
    """A small session with this text at this place."""
    body = session(format, steps=2, lines=2)
    words = {
        "the user's words": "Find the bug", "a result": "src/mod_0.py:0", "arguments": "look at",
        "an id": "call_0001",
    }  # fmt: skip
    if place == "a key":
        items_of(body)[0]["x-" + odd] = {"deep": odd}
        return body
    if place == "the head":
        return {**body, "metadata": {"title": f"a {odd} title"}}
    return walked(body, words[place], words[place] + odd)


def walked(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        if value.startswith("{"):  # arguments as text
            return json.dumps(json.loads(value), ensure_ascii=False).replace(old, new)
        return value.replace(old, new)
    if isinstance(value, list):
        return [walked(item, old, new) for item in value]
    if isinstance(value, dict):
        return {key: walked(item, old, new) for key, item in value.items()}
    return value


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("format", SIX)
def test_what_no_provider_reads_is_told_repaired_and_recallable(
    format: str, place: str, odd: str
) -> None:
    body = planted(format, place, odd)
    before = pickle.dumps(body)
    found = trimtab.check(body, format=format)
    also = {"id_format", "encrypted_content", "item_id_chars"} if place == "an id" else set()
    assert {violation.rule for violation in found} - also == {"unreadable_text"}
    for done in (
        trimtab.repair(body, format=format),
        trimtab.fit(body, window=100_000, format=format),
        trimtab.Session(window=100_000, format=format).fit(body),
    ):
        assert trimtab.check(done.request, format=format) == ()
        json.dumps(done.request, ensure_ascii=False).encode()  # can leave this machine
        handles = [row.handle for row in done.report.repairs if row.rule == "unreadable_text"]
        spelled = json.dumps(odd)[1:-1]
        assert all(odd in (got := done.recall(handle)) or spelled in got for handle in handles)
        assert handles
    assert pickle.dumps(body) == before


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("format", SIX)
def test_in_bytes_only_the_text_that_is_repaired_changes(format: str, place: str) -> None:
    body = planted(format, place, "\ud83d")
    written = json.dumps(body, indent=1).encode()
    done = trimtab.repair(written, format=format)
    assert trimtab.check(done.request, format=format) == ()
    assert json.loads(done.request) == trimtab.repair(body, format=format).request
    if place not in ("a key", "an id"):  # of an object with such a key all is written anew
        assert b"\\ud83d" in written
        assert abs(len(done.request) - len(written)) <= 40


def test_bytes_that_are_no_utf_8_are_read_told_and_repaired() -> None:
    words = b"caf\xe9 \xf0\x9f\x98 \xc3\xa9"
    written = b'{"messages": [{"role": "user", "content": "' + words + b'"}],  "n":1}'
    assert [found.rule for found in trimtab.check(written)] == ["unreadable_text"]
    for done in (
        trimtab.repair(written),
        trimtab.fit(written, window=1000),
        trimtab.Session(window=1000).fit(written),
    ):
        text = done.request.decode()
        assert text.startswith('{"messages": [{"role": "user", "content": "caf\ufffd')
        assert text.endswith('é"}],  "n":1}')
        original = done.recall(done.report.repairs[0].handle)
        assert original.encode("utf-8", "surrogateescape") == words


def test_signed_thinking_with_such_text_is_taken_out_never_edited() -> None:
    body = walked(session("anthropic", steps=2, lines=2), "step 0", "step \ud83d")
    done = trimtab.repair(body)
    assert trimtab.check(done.request) == ()
    thoughts = [p for m in items_of(done.request) for p in m["content"] if isinstance(p, dict)
                and p.get("type") == "thinking"]  # fmt: skip
    assert [thought["thinking"] for thought in thoughts] == ["step 1: look there"]


@pytest.mark.parametrize("apart", [True, False], ids=["two messages", "one message"])
@pytest.mark.parametrize("odd", [0, 1])
def test_a_turn_s_signed_thinking_is_taken_out_whole(odd: int, apart: bool) -> None:
    thoughts = [{"type": "thinking", "thinking": f"look {n}", "signature": f"s{n}"} for n in (1, 2)]
    thoughts[odd]["thinking"] += "\ud83d"
    said = [[thought, {"type": "text", "text": "Done."}] for thought in thoughts]
    said = said if apart else [[*said[0], *said[1]]]
    earlier = {"type": "thinking", "thinking": "an earlier turn", "signature": "s0"}
    body = {
        "model": "claude-sonnet-5", "max_tokens": 100,
        "messages": [
            {"role": "user", "content": "Find the bug."},
            {"role": "assistant", "content": [earlier, {"type": "text", "text": "Which?"}]},
            {"role": "user", "content": "The one in main."},
            *({"role": "assistant", "content": blocks} for blocks in said),
            {"role": "user", "content": "Thanks."},
        ],
    }  # fmt: skip
    done = trimtab.repair(body)
    assert trimtab.check(done.request) == ()
    assert "an earlier turn" in str(done.request)
    assert "look" not in str(done.request)
    assert str(done.request).count("Done.") == 2


@pytest.mark.parametrize("preset", ["balanced", "economy", "in-place"])
def test_what_is_parsed_out_of_legal_text_never_breaks_a_note(preset: str) -> None:
    odd = '"x\\ud83d\\u0000"'
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the bug."}]
    for n in range(20):
        call = {"name": "read", "arguments": f'{{"path": {odd}, "n": {n}}}'}
        rows = ", ".join(f'{{"id": {n * 1000 + row}, "error": {odd}}}' for row in range(20))
        messages += [
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": f"c{n}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"[{rows}]"},
        ]  # fmt: skip
    body = {"model": "gpt-5.1", "messages": [*messages, {"role": "user", "content": "And now?"}]}
    assert trimtab.check(body) == ()
    for window in (4_000, 2_000, 1_500):
        done = trimtab.fit(body, window=window, preset=preset)
        assert trimtab.check(done.request) == ()
        assert not done.report.warnings


@pytest.mark.parametrize("format", SIX)
def test_a_refusal_for_it_is_answered_by_mending_it(format: str) -> None:
    body = planted(format, "a result", "\ud83d")
    refusal = classify(400, {"error": {"message": "no low surrogate in string"}})
    assert rules_named(refusal, body, format) == ("unreadable_text",)
