"""The policy provider-compaction: a simulated provider is asked, and what that costs is counted."""

from __future__ import annotations

from typing import Any

import pytest
from tool_calls import Step, conversation

from trimtab.errors import InvalidSetting
from trimtab.logs.recording import Recording
from trimtab_lab.replay.metric import CallMetrics
from trimtab_lab.replay.policies import find
from trimtab_lab.replay.policy_run import Task, run

WINDOW = 10_000


def recording() -> Recording:
    """Some 20,000 tokens in 70 steps."""

    def lines(step: int) -> str:
        return "".join(f"src/m{step}_{n}.py:{n}: value = {step * 7919 + n}\n" for n in range(18))

    steps = (Step("read", {"path": f"src/m{n}.py"}, lines(n)) for n in range(70))
    body: dict[str, Any] = conversation("openai-chat", *steps)
    task = {"role": "user", "content": "Find the bug. Never touch setup.py in any way."}
    messages = [task, *body["messages"]]
    return Recording("made", "long", "openai-chat", messages, "claude-opus-4-6")


def test_the_provider_is_asked_its_summary_is_legal_and_what_it_cost_stands_in_the_rows():
    [asked] = run(recording(), [Task("provider-compaction:200", WINDOW)])
    assert asked["format"] == "anthropic"
    rows = [CallMetrics(*row) for row in asked["rows"]]
    assert sum(row.over + row.invalid + row.failed for row in rows) == 0
    questions = [row for row in rows if row.asked_in]
    assert questions
    assert all(row.asked_out <= 200 and row.asked_in < 0.1 * WINDOW for row in questions)
    assert all(row.tokens < 0.5 * WINDOW for row in questions)
    assert all(row.demand_kept == row.demand for row in rows)


def test_a_summary_has_room_for_something():
    with pytest.raises(InvalidSetting, match="at least 100"):
        find("provider-compaction:5")
