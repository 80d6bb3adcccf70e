"""``trimtab replay --advise``: one table and one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from trimtab.cli import main
from trimtab.logs.recording import Recording
from trimtab_lab.replay import advice
from trimtab_lab.replay.summary import SummaryRow

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "session.openai.json"


def rows(
    window: int, over: int, cost: float, recall: float | None = 100.0, **figures: Any
) -> list[SummaryRow]:
    shared: dict[str, Any] = {"invalid": 0, "failed": 0, "handle": None}
    whole = {**shared, "over": over, "cost": 1.0}
    ours = {**shared, "over": 0, "cost": cost, "recall": recall, **figures}
    for found in (whole, ours):
        found["refused"] = sum(found[name] for name in ("over", "invalid", "failed"))
    return [
        SummaryRow("all", window, policy, "1", 2, 41, found, {}, {}, {}, "", {})
        for policy, found in (("none", whole), ("trimtab", ours))
    ]


def test_it_takes_the_cheapest_window_that_loses_little():
    offered = advice.choices([
        *rows(32_000, 30, 0.60, 90.0, handle=100.0), *rows(60_000, 18, 0.94, 99.5, handle=100.0),
        *rows(100_000, 4, 1.02), *rows(200_000, 0, 1.0),
    ])  # fmt: skip
    assert advice.best(offered).window == 60_000
    assert advice.sentence(offered) == (
        "Use 60k: 18 refusals end, it costs 6.0 % less than sending everything, 0.5 % of what the "
        "agent used again is lost, all of it recallable."
    )


def test_where_no_smaller_window_pays_it_takes_the_largest():
    offered = advice.choices([*rows(60_000, 18, 1.06), *rows(200_000, 0, 1.0)])
    assert advice.sentence(offered) == (
        "Use 200k: nothing is refused there, it costs the same as sending everything, nothing "
        "that the agent used again is lost."
    )


def test_a_window_in_which_requests_are_still_refused_comes_last():
    offered = advice.choices([*rows(32_000, 30, 0.5, failed=3), *rows(60_000, 18, 1.2)])
    assert advice.best(offered).window == 60_000
    alone = advice.choices(rows(32_000, 30, 0.5, failed=3))
    assert "27 refusals end, 3 stay" in advice.sentence(alone)


def test_where_every_window_loses_much_it_takes_the_one_that_loses_least():
    offered = advice.choices([*rows(32_000, 30, 0.5, 70.0), *rows(60_000, 18, 0.8, 95.0)])
    assert advice.best(offered).window == 60_000


def test_a_window_that_nothing_fits_is_shown_and_never_advised():
    offered = advice.choices([
        *rows(32_000, 41, 0.1, None, failed=41), *rows(60_000, 18, 1.2),
    ])  # fmt: skip
    assert "does not fit" in advice.table(offered).splitlines()[1]
    assert advice.best(offered).window == 60_000


def test_the_table_has_one_currency():
    priced = advice.table(advice.choices(rows(60_000, 1, 0.9, dollars=0.9, full_dollars=1.2)))
    assert "$0.90" in priced
    assert "25 % less" in priced
    assert "$" not in advice.table(advice.choices(rows(60_000, 1, 0.9)))


@pytest.mark.parametrize(
    ("model", "windows"),
    [("claude-haiku-4-5", advice.WINDOWS), ("gpt-4", advice.WINDOWS[:1]),
     ("nobody-knows-it", advice.WINDOWS), ("gpt-4o", advice.WINDOWS[:4])],
)  # fmt: skip
def test_windows_end_at_the_models_own(model: str, windows: tuple[int, ...]):
    recording = Recording("s", "1", "openai-chat", [], model=model)
    assert advice.windows_for([recording]) == list(windows)


@pytest.mark.parametrize("agent", ["claude-code", "qwen-code"])
def test_no_window_is_tried_that_is_too_little_for_the_agent(agent: str):
    recording = Recording("s", "1", "openai-chat", [], model="claude-haiku-4-5", agent=agent)
    assert min(advice.windows_for([recording])) == 100_000
    assert advice.windows_for([Recording("s", "1", "openai-chat", [], model="gpt-4", agent=agent)])


def test_the_command_prints_a_table_and_a_sentence(capsys: pytest.CaptureFixture[str]):
    assert main(["replay", str(EXAMPLE), "--advise", "--window", "32k,60k"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in said[:3]] == [
        ["window", "refused"], ["32k", "9"], ["60k", "0"],
    ]  # fmt: skip
    assert said[4].startswith("Use 32k: 9 refusals end, it costs ")
    assert main(["replay", str(EXAMPLE), "--advise", "--policy", "none"]) == 2
    assert "leave out --policy" in capsys.readouterr().err
