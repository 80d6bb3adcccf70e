"""Which reasoning may be left out, where a provider requires it back in turns with calls."""

from __future__ import annotations

from typing import Any

import pytest
from chat_requests import body, call, calls, result, said, user

from trimtab import formats
from trimtab.formats import rules

THINKS = said("Done.", reasoning_content="Hm.")
TURN = [user(), calls(call(), reasoning_content="Hm."), result(), THINKS]
LEFT_OUT = "[3 earlier steps left out to fit: read ×3]"


@pytest.mark.parametrize(
    ("dialect", "messages", "may"),
    [
        ("deepseek", TURN, False),
        ("deepseek", [user(), THINKS, user()], True),
        ("deepseek", [*TURN[:3], said("So."), user(), THINKS], True),
        ("deepseek", [user(), THINKS, *TURN], True),
        ("deepseek", [user("Look."), user(LEFT_OUT), THINKS], False),
        ("deepseek", [user(f"Look.\n\n{LEFT_OUT}"), THINKS], False),
        ("kimi", TURN, True),
        ("openai", TURN, True),
    ],
    ids=["a turn with calls", "without", "a turn without calls behind one", "before one",
         "calls left out", "the note beside words", "kimi", "openai"],
)  # fmt: skip
def test_reasoning_of_words_stays_only_with_deepseek_in_a_turn_with_calls(
    dialect: str, messages: list[Any], may: bool
) -> None:
    request = body(*messages)
    transcript = formats.read(
        request, formats.find(request, f"openai-chat:{dialect}")[0], model=None
    )
    number = messages.index(THINKS)
    assert rules.may_drop_reasoning(transcript, number) == may


def test_reasoning_of_a_message_with_calls_stays_in_every_dialect() -> None:
    for dialect in ("deepseek", "kimi", "openai"):
        request = body(*TURN)
        transcript = formats.read(
            request, formats.find(request, f"openai-chat:{dialect}")[0], model=None
        )
        assert not rules.may_drop_reasoning(transcript, 1)
