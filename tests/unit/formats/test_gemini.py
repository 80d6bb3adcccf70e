"""Which thoughts Gemini needs back: those of the turn that the user's newest words began."""

from __future__ import annotations

from typing import Any

import pytest

import trimtab
from trimtab import formats
from trimtab.formats import rules

ASK: dict[str, Any] = {"role": "user", "parts": [{"text": "go"}]}
THINKS: dict[str, Any] = {"role": "model", "parts": [
    {"text": "Hm.", "thought": True}, {"text": "Done.", "thoughtSignature": "c2ln"}]}  # fmt: skip
CALLS: dict[str, Any] = {"role": "model", "parts": [
    {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}]}  # fmt: skip
RESULT: dict[str, Any] = {"role": "user", "parts": [
    {"functionResponse": {"name": "f", "response": {}}}]}  # fmt: skip


@pytest.mark.parametrize(
    ("model", "contents", "may"),
    [
        ("gemini-3-pro", [ASK, THINKS, ASK], True),
        ("gemini-3-pro", [ASK, THINKS, CALLS, RESULT, ASK], True),
        ("gemini-3-pro", [ASK, THINKS, CALLS, RESULT], False),
        ("gemini-3-pro", [ASK, THINKS], False),
        ("gemini-2.5-pro", [ASK, THINKS, CALLS, RESULT], True),
    ],
    ids=["before the user", "a finished turn", "the open turn", "the last", "without signatures"],
)
def test_thoughts_may_go_from_turns_before_the_newest_where_signatures_are_required(
    model: str, contents: list[dict[str, Any]], may: bool
) -> None:
    request = {"model": model, "contents": contents}
    transcript = formats.read(request, formats.find(request, "gemini")[0], model=model)
    assert rules.may_drop_reasoning(transcript, 1) == may


def _call(name: str, **more: Any) -> dict[str, Any]:
    return {"role": "model", "parts": [{"functionCall": {"id": name, "name": name, "args": {}},
                                        **more}]}  # fmt: skip


def _response(*names: str) -> dict[str, Any]:
    return {"role": "user", "parts": [
        {"functionResponse": {"id": name, "name": name, "response": {"result": name}}}
        for name in names
    ]}  # fmt: skip


SIGNED = {"thoughtSignature": "c2ln"}


@pytest.mark.parametrize(
    ("model", "first", "then"),
    [("gemini-2.5-pro", {}, {}), ("gemini-3-pro", SIGNED, SIGNED), ("gemini-2.5-pro", {}, SIGNED)],
    ids=["without signatures", "each signed", "the second signed"],
)
def test_a_response_before_its_call_goes_right_behind_it_where_the_model_goes_on_at_once(
    model: str, first: dict[str, Any], then: dict[str, Any]
) -> None:
    contents = [ASK, _response("a"), _call("a", **first), _call("b", **then), _response("b")]
    sent = trimtab.fit({"model": model, "contents": contents}, 9_000).request["contents"]
    assert sent == [ASK, contents[2], contents[1], contents[3], contents[4]]


def test_a_response_before_its_call_stays_with_those_of_the_parallel_calls() -> None:
    """Only the first of parallel calls is signed: a step of its own would be refused."""
    contents = [ASK, _response("a"), _call("a", **SIGNED), _call("b"), _response("b")]
    sent = trimtab.fit({"model": "gemini-3-pro", "contents": contents}, 9_000).request["contents"]
    assert sent == [ASK, contents[2], contents[3], _response("b", "a")]


def test_an_interrupted_call_is_answered_right_behind_it_where_the_model_goes_on_in_a_new_step():
    contents = [ASK, _call("a", **SIGNED), _call("b", **SIGNED), _response("b")]
    sent = trimtab.fit({"model": "gemini-3-pro", "contents": contents}, 9_000).request["contents"]
    assert [sent[0], sent[1], *sent[3:]] == contents
    assert [part["functionResponse"]["id"] for part in sent[2]["parts"]] == ["a"]
