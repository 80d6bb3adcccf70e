"""What a replay says first, in words that need no explanation."""

from __future__ import annotations

from typing import Any

from trimtab.replay.summary import SummaryRow
from trimtab.replay.verdict import plain_table, verdict


def row(policy: str, window: int = 32_000, **figures: float | None) -> SummaryRow:
    found: dict[str, Any] = {
        "over": 0, "invalid": 0, "failed": 0, "cost": 1.0, "recall": 100.0, "lines": 100.0,
        "user": 100.0, "handle": None, **figures,
    }  # fmt: skip
    errors = {"CannotFit: too small": 724} if found["failed"] else {}
    return SummaryRow(
        "all", window, policy, "1", 9, 724, found, {}, {}, {"g1": 459.0}, {}, errors, "", {}
    )


def test_the_verdict_tells_what_would_be_refused_and_what_it_costs_to_fit():
    rows = [row("none", over=629), row("trimtab", cost=0.631, recall=98.2, handle=100.0)]
    assert verdict(rows, 3).splitlines() == [
        "Window 32k. Of 724 calls 629 would be refused as they are. With trimtab 0. The prompts "
        "would have cost 0.63 of sending everything. 98 % of what the agent used again was still "
        "there; the rest can be recalled.",
        "3 recordings that fit the smallest window whole were left out: nothing has to be cut "
        "there (--no-outgrown takes them in).",
    ]


def test_the_rest_is_not_called_recallable_where_it_is_not():
    rows = [row("trimtab", recall=98.2, handle=60.0)]
    assert verdict(rows).endswith("was still there.")


def test_a_policy_that_failed_on_every_call_has_no_figures():
    rows = [row("none", over=724), row("trimtab", failed=724)]
    assert "failed on every call: CannotFit: too small." in verdict(rows)
    line = plain_table(rows).splitlines()[2].split()
    assert line == ["32k", "trimtab", "724", "–", "–", "–", "–", "–"]


def test_each_window_has_its_sentence_and_its_lines():
    rows = [row(policy, window) for window in (60_000, 200_000) for policy in ("none", "trimtab")]
    assert [line.split()[1] for line in verdict(rows).splitlines()] == ["60k.", "200k."]
    assert [line.split()[0] for line in plain_table(rows).splitlines()[1:5]] == [
        "60k", "60k", "200k", "200k",
    ]  # fmt: skip
