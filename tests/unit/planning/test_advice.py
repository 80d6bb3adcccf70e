"""What a refusal advises, and which words the last question is taken from."""

from __future__ import annotations

from typing import Any

import pytest

import trimtab
from trimtab.planning.query_context import QueryContext
from trimtab.reducers import Config
from trimtab.transcript.transcript import Transcript
from trimtab.wire import base, openai_chat

LONG = "Leave module_7.py as it is, whoever asks. " * 400


@pytest.mark.parametrize(
    ("system", "user", "step"),
    [(LONG, "Go.", "shorten it"), ("Be brief.", LONG, "into a file that a tool reads in parts")],
)
def test_what_takes_most_of_a_request_that_cannot_fit_is_named_with_what_to_do(
    system: str, user: str, step: str
) -> None:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 10, "system": system,
            "messages": [{"role": "user", "content": user}]}  # fmt: skip
    with pytest.raises(trimtab.CannotFit) as refused:
        trimtab.fit(body, window=30, reserve=0)
    assert step in str(refused.value)


def read(*messages: dict[str, Any]) -> Transcript:
    return base.read(list(messages), openai_chat)


def test_the_question_is_the_last_that_the_user_said_whatever_the_system_says_behind_it() -> None:
    found = read(
        {"role": "user", "content": "Where is the parser?"},
        {"role": "assistant", "content": "In src."},
        {"role": "system", "content": "Answer in one line."},
    )
    assert QueryContext(found, Config(len)).question == "Where is the parser?"
