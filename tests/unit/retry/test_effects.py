"""The summary of a finished flow: one line for a header."""

from __future__ import annotations

from typing import Any

import pytest
from shapes import session

import trimtab
from trimtab.amounts import many
from trimtab.errors import CannotFit
from trimtab.retry.effects import Done, SendStats
from trimtab.retry.refusals import Refusal

LONG = session("openai-chat", steps=14, lines=60)
HALF: dict[str, Any] = {"model": "gpt-5.1", "messages": [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
    {"role": "user", "content": "and now?"}]}  # fmt: skip
REFUSED = Refusal("too_long", 8_000)


def no_fit() -> CannotFit:
    body = {"messages": [{"role": "system", "content": "rule " * 5_000}, *HALF["messages"]]}
    with pytest.raises(CannotFit) as caught:
        trimtab.fit(body, window=1_000, reserve=0)
    return caught.value


def test_a_new_count_begins_at_nothing() -> None:
    assert SendStats() == SendStats(0, 0, 0, 0, 0, 0, 0.0)


def test_the_summary_names_each_thing_that_was_done_and_nothing_else() -> None:
    cut = trimtab.fit(LONG, window=8_000, reserve=0)
    before, after = cut.report.tokens_before, cut.report.tokens_after
    repaired = trimtab.fit(HALF, window=8_000, reserve=0)
    size = repaired.report.tokens_before, repaired.report.tokens_after
    cases = [
        (Done(True, 1, trimtab.fit(LONG, window=100_000, reserve=0)), "unchanged"),
        (Done(True, 1, cut), f"{before}->{after} tokens; {many(len(cut.report.edits), 'edit')}"),
        (Done(True, 1, repaired), f"{size[0]}->{size[1]} tokens; 0 edits; 1 repair"),
        (Done(False, 1, None), "passed on"),
        (Done(True, 2, None, (REFUSED,)), "attempt 2 after too_long"),
        (Done(False, 3, None, (REFUSED,) * 3), "attempt 3 after too_long, too_long, too_long"),
        (Done(False, 1, None, unseen="set store=False"), "set store=False"),
        (Done(False, 1, None, cannot_fit=no_fit()), "cannot fit: window 1000"),
    ]
    assert [done.summary for done, _ in cases] == [expected for _, expected in cases]
