"""Savings as an experiment: the interval against the truth, and the way from a proxy to a bill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fleets import TRUE, fleet
from proxies import ask, proxied, settled

import trimtab
from trimtab.cli import main
from trimtab.pricing.arms import MIN, ArmUnit, savings, student
from trimtab_lab.testing import StrictProvider


def test_the_interval_covers_the_truth_in_at_least_93_of_100_fleets() -> None:
    covered, fleets = 0, 400  # 100 alone would be a matter of luck
    for seed in range(fleets):
        found = savings(*fleet(seed))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= TRUE <= found.high
    assert covered >= 0.93 * fleets


def test_more_conversations_make_the_interval_narrower() -> None:
    def width(conversations: int) -> float:
        found = savings(*fleet(1, conversations))
        assert found.low is not None
        assert found.high is not None
        return found.high - found.low

    assert width(4_000) < 0.5 * width(250)


def test_with_few_conversations_nothing_is_said() -> None:
    arm = [ArmUnit(1.0, 1_000)] * (MIN - 1)
    found = savings(arm, arm)
    assert (found.saved, found.low, found.high) == (None, None, None)
    assert "not measured" in str(found)


@pytest.mark.parametrize(
    ("freedom", "wanted"), [(3, 3.182), (5, 2.571), (10, 2.228), (30, 2.042), (1e9, 1.960)]
)
def test_quantiles_are_those_of_students_tables(freedom: float, wanted: float) -> None:
    assert student(0.975, freedom) == pytest.approx(wanted, rel=0.01)


def test_a_proxy_keeps_what_was_billed_and_the_bill_compares_the_arms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"sqlite:///{tmp_path / 'proxy.db'}"
    with StrictProvider(answer="Read.") as provider:
        with proxied(
            provider.url, window=200_000, store=store, fit=trimtab.Settings(control=0.5)
        ) as server:
            for number in range(24):
                messages = [{"role": "user", "content": f"Talk {number}. " + "word " * 1_500}]
                body = {"model": "claude-sonnet-4-5", "max_tokens": 100, "messages": messages}
                headers = {"user-agent": "claude-cli/2.1 (external)", "x-api-key": "k"}
                status, _, _ = ask(server.url, "POST", "/v1/messages", json.dumps(body), headers)
                assert status == 200
            records = settled(server).proxy.addons.records
            records.write()
            arms = {session.arm for session in records.activity.sessions.values()}
        prompt = sum(record.tokens for record in provider.requests)
    assert arms == {"control", "treated"}
    assert main(["bill", store, "--by", "agent", "--json", "-"]) == 0
    tree = json.loads(capsys.readouterr().out)
    assert tree["paid"]["calls"] == 24
    assert tree["groups"][0]["name"] == "claude-cli"
    tokens = tree["paid"]["tokens"]
    assert sum(tokens.values()) - tokens["output"] == prompt
    saved = tree["savings"]
    assert saved["treated"] + saved["control"] == 24
    assert saved["low"] < 0.01 < 0.2
    assert abs(saved["saved"]) < 0.05  # nothing was reduced: nothing was saved
    assert any("a store keeps no requests" in line for line in tree["not_measured"])


def test_an_empty_store_is_an_error_that_says_who_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"sqlite:///{tmp_path / 'a.db'}"
    session = trimtab.Session(store=store, window=100_000)
    session.fit([{"role": "user", "content": "Hi."}], model="gpt-5")
    session.close()
    assert main(["bill", store]) != 0
    assert "a proxy writes it" in capsys.readouterr().err
