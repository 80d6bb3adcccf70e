"""Which thoughts Gemini needs back: those of the turn that the user's newest words began."""

from __future__ import annotations

from typing import Any

import pytest

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
