"""Runs of old groups: which messages may meet if a run leaves nothing of the model's."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab import wire
from trimtab.planning.runs import Run, meets_user
from trimtab.transcript.transcript import Transcript


def read(*messages: dict[str, Any], format: str = "bedrock") -> Transcript:
    body = {"messages": list(messages)}
    return wire.read(body, wire.find(body, format)[0], model=None)


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
