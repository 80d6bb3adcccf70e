"""What only Anthropic asks: which Claude it is, and whether the open turn begins with thinking."""

from __future__ import annotations

from typing import Any

import doubtful
import pytest
from chat_requests import said, text, use, used, user

import trimtab
from trimtab.formats.anthropic.rules import generation

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SPOKEN = said([text("I look.")])


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("claude-opus-5", (5, 0)),
        ("claude-opus-5-5", (5, 5)),
        ("claude-sonnet-4-20250514", (4, 0)),
        ("anthropic.claude-haiku-4.6-v1:0", (4, 6)),
        ("claude-3-7-sonnet-latest", (3, 7)),
        ("gpt-5", None),
        (None, None),
    ],
)
def test_a_model_name_tells_the_generation(
    model: str | None, version: tuple[int, int] | None
) -> None:
    assert generation(model) == version


@pytest.mark.parametrize(
    ("messages", "missing"),
    [
        ([user(), said([use()]), user([used()])], True),
        ([user(), said([THOUGHT, use()]), user([used()])], False),
        ([user(), said([text("I look."), THOUGHT, use()]), user([used()])], True),
        ([user(), said([use()]), user([used()]), said([text("Done.")]), user()], False),
        ([user(), said([THOUGHT, text("I look.")]), said([use()]), user([used()])], False),
        ([user(), SPOKEN, said([use()]), user([used()])], True),
        ([user(), SPOKEN, user()], False),
        ([user(), said([use()])], True),
        ([user(), said([use()]), user("Wait.")], False),
    ],
    ids=["a call", "thinking first", "thinking second", "a finished turn", "two messages",
         "two messages, none", "no call", "an open call", "an interrupted call"],
)  # fmt: skip
def test_with_thinking_on_the_open_turn_that_calls_begins_with_thinking(
    messages: list[dict[str, Any]], missing: bool
) -> None:
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    body = {"model": "claude-sonnet-4-5", "max_tokens": 4_096, "thinking": thinking,
            "messages": messages}  # fmt: skip
    found = {violation.rule for violation in doubtful.found(body)} - {"call_unanswered"}
    assert found == ({"thinking_missing"} if missing else set())
    assert "thinking_missing" not in {violation.rule for violation in trimtab.check(body)}
