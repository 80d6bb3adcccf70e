"""Sessions of models that call our own tools at random, in small: nothing is wrong with any.

The same that ``python tests/soak/rounds.py`` tries by the thousand.  ``SOAK_ROUNDS`` says how many
are tried here.
"""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from soak.rounds import Tally, soak
from soak.rounds_judge import COUNT as TOKENS
from soak.rounds_judge import Exchange, faults

from trimtab_lab.testing import Answer, Call

COUNT = int(os.environ.get("SOAK_ROUNDS") or 16)


@pytest.fixture(scope="module")
def tally() -> Tally:
    """All of them."""
    return soak(COUNT, 1)


def test_nothing_is_wrong_with_a_session_whose_model_calls_our_tools(tally: Tally) -> None:
    assert tally.faults == {}


def test_the_sessions_have_what_may_go_wrong(tally: Tally) -> None:
    facts = tally.facts
    assert facts["sessions"] == COUNT
    for name in ("restarted", "two tenants", "raised", "answers of six rounds"):
        assert facts[name] > 0, name
    assert facts["hidden rounds"] > 5 * COUNT
    assert min(facts["note"], facts["recall"], facts["read"]) > 5 * COUNT
    assert facts["without our tools"] == 0


def chat(*messages: Any) -> Any:
    """What a provider got of Chat Completions."""
    body = {"messages": [{"role": "user", "content": "Go."}, *messages]}
    return SimpleNamespace(
        number=1, body=body, tokens=10, status=200, refusal="", violations=()
    )  # fmt: skip


def called(name: str, arguments: str) -> Any:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}]}  # fmt: skip


KEPT = Answer("", [Call("note", {"name": "plan", "text": "m_na_00001"})])
SAID = Answer("I say m_ta_00001.")
OUT = TOKENS(SAID.text)
WRONG = {
    "a": Exchange("a", [chat()], {1: SAID}, SAID.text, [], "m_qa_00001", 10, OUT),
    "b": Exchange("a", [chat()], {1: SAID}, "I say", [], "", 10, OUT),
    "c": Exchange("a", [SimpleNamespace(**{**vars(chat()), "violations": ("rule",)})], {1: SAID},
                  SAID.text, [], "", 10, OUT),
    "d": Exchange("a", [chat()] * 7, {1: SAID}, " ".join([SAID.text] * 7), [], "", 70, 7 * OUT),
    "e": Exchange("a", [chat()] * 2, {1: SAID}, f"{SAID.text} {SAID.text}", [], "", 10, 2 * OUT),
    "g": Exchange("a", [chat(called("note", '{"text": "m_ea_00001"}'))], {1: SAID}, SAID.text, [],
                  "", 10, OUT),
    "i": Exchange("a", [chat({"role": "user", "content": "m_fb_00001"})], {1: SAID}, SAID.text, [],
                  "", 10, OUT),
}  # fmt: skip


@pytest.mark.parametrize("letter", WRONG)
def test_the_judge_sees_what_is_wrong(letter: str) -> None:
    found = faults("openai-chat", [WRONG[letter]], sums_prompts=True)
    assert [fault.partition(": ")[2][0] for fault in found] == [letter]


def test_the_judge_misses_a_note_that_a_later_request_lacks() -> None:
    given = TOKENS("note") + TOKENS('{"name":"plan","text":"m_na_00001"}')
    first = Exchange("a", [chat()], {1: KEPT}, "", [], "", 10, given)
    second = Exchange("a", [chat()], {1: SAID}, SAID.text, [], "", 10, OUT)
    (found,) = faults("openai-chat", [first, second], sums_prompts=True)
    assert "f: request 1 lacks the note plan" in found
    whole = chat(called("note", '{"name": "plan", "text": "m_na_00001"}'))
    second = Exchange("a", [whole], {1: SAID}, SAID.text, [], "", 10, OUT)
    assert faults("openai-chat", [first, second], sums_prompts=True) == []
