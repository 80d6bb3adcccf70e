"""The sums of a plan: work grows with the conversation, not with its square."""

from __future__ import annotations

from typing import Any

import pytest

import trimtab
from trimtab.transcript.transcript import GroupTable


def steps(count: int) -> list[dict[str, Any]]:
    """A question, and so many steps of one call each."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Go."}]
    for n in range(count):
        call = {"name": "read", "arguments": f'{{"path": "src/a{n}.py"}}'}
        messages += [
            {"role": "assistant", "content": None,
             "tool_calls": [{"id": f"c{n}", "type": "function", "function": call}]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"value {n}\n" * 9},
        ]  # fmt: skip
    return messages


def test_what_cannot_fit_looks_at_each_call_a_few_times_however_long_the_conversation_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked, called_tools = [0], GroupTable.called_tools

    def counted(table: GroupTable, first: int, last: int) -> Any:
        looked[0] += last - first + 1
        return called_tools(table, first, last)

    monkeypatch.setattr(GroupTable, "called_tools", counted)
    with pytest.raises(trimtab.CannotFit):
        trimtab.fit({"model": "gpt-5", "messages": steps(300)}, window=60, reserve=10)
    assert 300 <= looked[0] <= 10 * 300
