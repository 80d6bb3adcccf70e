"""``trimtab replay`` says how much of what its notes quote is true."""

from __future__ import annotations

import dataclasses
from typing import Any

from noted_sessions import NOTE_WINDOW, noted_recording, with_lies

from trimtab_lab.replay import policies, summary, table
from trimtab_lab.replay.policy_run import Task, replay, result
from trimtab_lab.replay.recording_index import RecordingIndex


class Lying:
    """trimtab, with other files' names in its notes."""

    name, version, format = "trimtab", "1", ""

    def start(self, index: RecordingIndex, window: int) -> policies.PolicyStep:
        step = policies.find("trimtab").start(index, window)

        def lying(body: dict[str, Any]) -> policies.PolicyOutput:
            made = step(body)
            return dataclasses.replace(made, request=with_lies(made.request))

        return lying


def row(policy: policies.Policy) -> summary.SummaryRow:
    made = noted_recording()
    index, task = RecordingIndex(made), Task(policy.name, NOTE_WINDOW)
    judged = replay(index, policy, NOTE_WINDOW)
    (found,) = summary.summarize([result(made, index, task, policy, judged)])
    return found


def test_true_notes_have_100_percent_and_lies_less() -> None:
    honest, lying = row(policies.find("trimtab")), row(Lying())
    assert honest.figures["true"] == honest.figures["placed"] == honest.figures["shown"] == 100
    assert honest.figures["stale"] == honest.figures["call_like"] == 0
    assert lying.figures["true"] is not None
    assert lying.figures["true"] < 50
    assert lying.figures["placed"] == 0


def test_the_table_of_all_columns_shows_it() -> None:
    ours, none = row(policies.find("trimtab")), row(policies.find("none"))
    assert none.figures["true"] is None
    assert {"true", "shown", "file", "stale", "calls"} <= set(
        table.table([ours], prices="claude-5m").splitlines()[1].split()
    )
