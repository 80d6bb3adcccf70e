"""The benchmark of look-ups asks by its rule alone, and counts what it does not find."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import lookup
from answerable.worlds import ASKED

import trimtab


def test_facts_of_a_small_world_are_found_with_two_look_ups() -> None:
    outcome = lookup.run(lookup.Task(8_000, seed=1, steps=40, tokens=30_000, each=2))
    away = [row for row in outcome.asked if row.looks]
    assert len(away) > 5
    assert sum(row.looks <= 2 for row in away) >= 0.95 * len(away)
    assert all(0 < row.told < 8_000 for row in away)


def test_what_a_look_up_does_not_give_is_counted_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    said = trimtab.journal.excerpts.RecallAnswer(
        "no line of what was left out holds it", failed=True
    )
    monkeypatch.setattr(lookup, "answer", lambda fitted, arguments: said)
    outcome = lookup.run(lookup.Task(8_000, seed=1, steps=40, tokens=30_000, each=2))
    assert {row.looks for row in outcome.asked} == {0, lookup.LOST}
    assert "Not found: " in lookup.missed([outcome])


@pytest.mark.parametrize("subject", ASKED)
def test_the_rule_adds_no_word_to_a_question_and_leaves_out_the_small_ones(subject: str) -> None:
    question = ASKED[subject].format(entity="host-17", attribute="RETRY_LIMIT")
    words = lookup.words_of(question).split()
    assert "host-17" in words
    assert all(word in question for word in words)
    assert not set(words) & {"the", "is", "What", "by", "did"}
