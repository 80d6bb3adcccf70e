"""What a replay says first, in words that need no explanation."""

from __future__ import annotations

from typing import Any

import pytest

from trimtab_lab.replay.html_report import as_html
from trimtab_lab.replay.summary import ReplaySummary, SummaryRow
from trimtab_lab.replay.verdict import COLUMNS, POLICIES, plain_table, verdict


def row(policy: str, window: int = 32_000, **figures: float | None) -> SummaryRow:
    found: dict[str, Any] = {
        "over": 0, "invalid": 0, "failed": 0, "cost": 1.0, "recall": 100.0, "lines": 100.0,
        "user": 100.0, "handle": None, **figures,
    }  # fmt: skip
    found["refused"] = sum(found[name] for name in ("over", "invalid", "failed"))
    found["answered"] = 100 - found["refused"] / 7.24
    errors = {"CannotFit: too small": 724} if found["failed"] else {}
    return SummaryRow("all", window, policy, "1", 9, 724, found, {}, {}, errors, "", {})


def test_the_verdict_tells_what_would_be_refused_and_what_it_costs_to_fit():
    rows = [
        row("none", over=629),
        row("trimtab", cost=0.631, recall=98.2, lines=52.4, handle=100.0),
    ]
    assert verdict(rows, 3).splitlines() == [
        "Window 32k: 629 of 724 requests would have been refused; with trimtab, none. trimtab "
        "costs 37 % less than sending everything. Of the names, paths and numbers that the agent "
        "used again, 98 % were still in the request; the rest can be recalled.",
        "Not counted: 3 more recordings that fit the window whole, so that trimtab "
        "changes nothing (--no-outgrown counts them).",
    ]


@pytest.mark.parametrize(
    ("handle", "end"),
    [(60.0, "; 60 % of the rest can be recalled."), (0.0, "; the rest is gone."), (None, ".")],
)
def test_the_rest_is_not_called_recallable_where_it_is_not(handle: float | None, end: str):
    said = verdict([row("trimtab", recall=98.2, lines=None, handle=handle)])
    assert said.endswith(f"in the request{end}")


def test_money_is_told_where_models_have_prices_and_for_how_many_recordings():
    priced = {"dollars": 12.345, "full_dollars": 21.0}
    said = verdict([row("none"), row("trimtab", **priced, priced=9)])
    assert (
        "trimtab costs $8.65 less: $12.35 for the prompts, $21.00 with everything sent. Of" in said
    )
    some = [
        row("none", over=3, **{**priced, "dollars": 21.0}, priced=7),
        row("trimtab", **priced, priced=7),
    ]
    assert "with everything sent and nothing refused (7 recordings with a known" in verdict(some)
    one = [row("trimtab", **priced, priced=1)]
    assert "(1 recording with a known price)." in verdict(one)


def test_a_report_has_one_currency():
    priced = {"dollars": 0.394, "full_dollars": 0.357, "priced": 9, "cost": 0.94}
    rows = [row("none", **{**priced, "dollars": 0.357, "cost": 1.0}), row("trimtab", **priced)]
    said = verdict(rows)
    assert "trimtab costs $0.03 more: $0.39 for the prompts, $0.36 with everything sent." in said
    assert "times" not in said
    assert "%  less" not in said
    assert "dollars" in plain_table(rows)
    assert "cost " not in plain_table(rows).splitlines()[0]
    named = verdict(rows, prices="claude-1h")
    assert "trimtab costs 6.0 % less than sending everything." in named
    assert "$" not in named
    assert "$" not in plain_table(rows, "claude-1h", "claude-1h")
    assert "dollars" not in plain_table([row("none"), row("trimtab")])


def page_of(*rows: SummaryRow) -> str:
    return as_html(ReplaySummary([], [], rows, "claude-5m"))


def test_the_page_begins_with_the_window_to_use_where_there_is_a_choice():
    large = [row("none", 60_000, over=18), row("trimtab", 60_000, cost=0.94, recall=100.0)]
    small = [row("none", over=30), row("trimtab", cost=1.04, recall=100.0)]
    use = "Use 60k: 18 refusals end, it costs 6.0\u00a0% less than sending everything"
    assert use in page_of(*small, *large)
    assert page_of(*small, *large).index(use) < page_of(*small, *large).index("Window 32k")
    assert 'class="advice"' not in page_of(*large)
    assert 'class="advice"' not in page_of(*small, large[0])  # nothing of ours to compare
    failed = [row(policy, window, failed=724.0) for window in (32_000, 60_000) for policy in (
        "none", "trimtab")]  # fmt: skip
    assert 'class="advice"' not in page_of(*failed)


def test_the_page_says_each_explanation_once():
    money = {"dollars": 12.345, "full_dollars": 21.0, "priced": 7}
    page = page_of(
        row("none", over=629), row("trimtab", cost=0.631, recall=98.2, handle=100.0, **money)
    )
    for said in (*COLUMNS.values(), "the rest can be recalled", "629 of 724 requests", "$21.00"):
        if "{prices}" not in said:
            assert page.count(said) == 1, said


def test_a_policy_that_failed_on_every_call_has_no_figures():
    rows = [row("none", over=724), row("trimtab", failed=724)]
    assert "failed on every call: CannotFit: too small. Choose a larger window." in verdict(rows)
    line = plain_table(rows).splitlines()[2].split()
    assert line == ["32k", "trimtab", "0", "%", "–", "–", "–", "–", "–"]


def test_a_policy_that_failed_on_some_calls_says_so():
    said = verdict([row("none", over=724), row("trimtab", failed=3)])
    assert "with trimtab, 3. It failed on 3: CannotFit: too small." in said


def test_only_all_of_it_is_100_percent():
    assert "used again, 99.9 % were" in verdict([row("trimtab", recall=99.98)])
    assert "used again, 100 % were" in verdict([row("trimtab", recall=100.0)])


def test_no_line_of_the_table_is_wider_than_a_terminal_of_100_columns():
    rows = [row(policy, dollars=1.0, priced=9) for policy in POLICIES]
    assert max(map(len, plain_table(rows).splitlines())) <= 100


def test_each_window_has_its_sentence_and_its_lines():
    rows = [row(policy, window) for window in (60_000, 200_000) for policy in ("none", "trimtab")]
    assert [line.split()[1] for line in verdict(rows).splitlines()] == ["60k:", "200k:"]
    assert [line.split()[0] for line in plain_table(rows).splitlines()[1:5]] == [
        "60k", "60k", "200k", "200k",
    ]  # fmt: skip
