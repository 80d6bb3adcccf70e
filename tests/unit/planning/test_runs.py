"""Runs of old groups: the last words of the model that stay, and who would meet without them."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab import formats
from trimtab.planning.runs import Closing, Run, closing_of, meets_user
from trimtab.transcript.transcript import Transcript


def read(*messages: dict[str, Any], format: str = "bedrock") -> Transcript:
    body = {"messages": list(messages)}
    return formats.read(body, formats.find(body, format)[0], model=None)


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"text": text}]}


def step(number: int) -> list[dict[str, Any]]:
    use = {"toolUseId": f"t{number}", "name": "read", "input": {}}
    result = {"toolUseId": f"t{number}", "content": [{"text": "x"}]}
    return [
        {"role": "assistant", "content": [{"toolUse": use}]},
        {"role": "user", "content": [{"toolResult": result}]},
    ]


GO, DONE, MORE = said("user", "go"), said("assistant", "done"), said("user", "more")


@pytest.mark.parametrize(
    ("last", "meets"),
    [(0, False), (1, False), (2, True), (3, False)],
    ids=["a step before a step", "a step before words", "words before the user", "the newest"],
)
def test_two_messages_of_the_user_meet_only_where_the_user_speaks_right_behind_the_run(
    last: int, meets: bool
) -> None:
    transcript = read(GO, *step(0), *step(1), DONE, MORE, *step(2))
    assert len(transcript.groups) == 4
    assert meets_user(transcript, Run(0, last)) == meets


THINKS = {"role": "assistant", "content": "done", "reasoning_content": "Hm."}
ASKED = {"role": "user", "content": "go"}
CALLS = {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}]}  # fmt: skip
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "x"}


@pytest.mark.parametrize(
    ("following", "crossing", "anchored", "kept"),
    [
        ([ASKED], True, False, False),  # a turn without any call
        ([], True, False, False),
        ([ASKED, THINKS], True, False, False),
        ([CALLS, RESULT], True, False, True),
        ([ASKED], True, True, True),  # the call that stays is of its turn
        ([ASKED], False, False, True),
    ],
)
def test_the_last_words_of_a_turn_with_calls_keep_their_reasoning_where_it_is_required(
    following: list[dict[str, Any]], crossing: bool, anchored: bool, kept: bool
) -> None:
    messages = [ASKED, CALLS, RESULT, THINKS, *following]
    transcript = read(*messages, format="openai-chat:deepseek")
    thoughts = [b.kind for b in transcript.messages[3].blocks].index("reasoning")
    run = Run(0, 1, 0 if crossing else None)
    closing = closing_of(transcript, run, anchored=anchored)
    assert closing == Closing(3, (thoughts,) if kept else ())
