"""``trimtab replay --keep-warm``: pings played over sessions with times, made up and logged."""

from __future__ import annotations

import json
import random
from math import inf
from pathlib import Path

import pytest
from billed_logs import START, as_lines, provider_run

from trimtab.cli import main
from trimtab.pricing.keep_warm import PrefixPrices
from trimtab_lab.replay.bill.keep_warm import (
    WarmCall,
    WarmSession,
    best_of_gap,
    frontier,
    held_out,
    play,
)

PRICES = PrefixPrices(read=0.5e-6, write=6.25e-6, lifetime=300.0)


def fleet(pauses: float, sources: int = 3, sessions: int = 40, seed: int = 0) -> list[WarmSession]:
    """Sessions of quick calls with pauses in between, and an end."""
    rng, found = random.Random(seed), []
    for number in range(sessions):
        when, calls = START + number * 7_000.0, []
        for call in range(30):
            calls.append(WarmCall(when, 20_000 + 2_000 * call, PRICES))
            when += rng.expovariate(1 / pauses) if rng.random() < 0.3 else rng.uniform(3, 30)
        found.append(WarmSession(str(number), "agent", f"s{number % sources}", tuple(calls)))
    return found


def test_pauses_that_end_soon_are_bridged_and_pay() -> None:
    found = play(fleet(400.0), cap=inf)
    assert found.low > 0
    assert 0.3 * found.oracle < found.net <= found.oracle


def test_sessions_that_stay_away_cost_next_to_nothing() -> None:
    found = play(fleet(40_000.0), cap=inf)
    assert found.cost < 0.05
    assert found.net > -0.05


@pytest.mark.parametrize("pauses", [200.0, 700.0, 3_000.0, 20_000.0])
def test_no_day_costs_more_than_the_cap_and_no_session_more_than_its_pings(pauses: float) -> None:
    sessions = fleet(pauses, seed=7)
    for cap in (0.05, 0.5, 2.0):
        found = play(sessions, cap=cap, pings=3)
        assert found.max_a_day <= cap
        assert found.pings <= 3 * len(sessions)


def test_the_oracle_is_never_beaten() -> None:
    for one in frontier(fleet(600.0, seed=3)):
        assert one.net <= one.oracle + 1e-9


def test_the_oracle_pings_only_where_that_pays() -> None:
    assert best_of_gap(200.0, PRICES, 100_000) == 0.0
    assert best_of_gap(inf, PRICES, 100_000) == 0.0
    assert best_of_gap(400.0, PRICES, 100_000) == pytest.approx(0.575 - 0.05)
    assert best_of_gap(50_000.0, PRICES, 100_000) == 0.0


def test_what_is_played_is_not_what_was_learned_from() -> None:
    sessions = fleet(400.0, sessions=6)
    for group, gaps in held_out(sessions):
        others = [one for one in sessions if one.source != group[0].source]
        assert sum(map(len, gaps.by_agent.values())) == sum(len(one.calls) for one in others)


def test_the_command_prints_the_frontier_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for seed in range(3):
        log, _ = provider_run(seed, 12, [20.0, 400.0])
        (logs / f"run-{seed}.jsonl").write_text(as_lines(log), encoding="utf-8")
    out = tmp_path / "warm.json"
    assert main(["replay", "--keep-warm", str(logs), "--json", str(out)]) == 0
    text = capsys.readouterr().out
    assert "3 sessions with times" in text
    assert "too few to go by" in text
    assert "The oracle" in text
    rows = json.loads(out.read_text())
    assert rows[-1]["cap_a_day"] is None
    assert all(row["max_spent_a_day"] <= row["cap_a_day"] for row in rows[:-1])


def test_logs_without_usage_are_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}]
    file = tmp_path / "a.jsonl"
    file.write_text(as_lines([{"model": "gpt-5", "messages": talk}]), encoding="utf-8")
    assert main(["replay", "--keep-warm", str(file)]) != 0
    assert "nothing can be measured" in capsys.readouterr().err
