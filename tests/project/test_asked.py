"""The benchmark of what is asked for by name: its contents, its rival and its judge.

Knows ``bench/asked``.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest

import trimtab

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from asked import command, head_tail, trial
from asked.contents import KINDS, made, planted
from asked.conversations import ASKERS, PLACES, Conversation, conversation, request
from asked.facts import Content, Fact, answered, told_once
from asked.trial import Trial

SMALL = 0.2


def talk_of(
    kind: str, asker: str, place: str = "newest", seed: str = "t"
) -> tuple[Content, Fact, Conversation]:
    draw = random.Random(seed)
    content = made(kind, seed, size=SMALL)
    fact = planted(content, draw)
    return content, fact, conversation(kind, content, fact, asker, place, draw)


@pytest.mark.parametrize("held_out", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_each_fact_is_told_once_near_its_name_and_the_question_keeps_the_answer(
    kind: str, held_out: bool
) -> None:
    content = made(kind, "g", held_out, SMALL)
    for fact in content.facts:
        assert told_once(content.text, fact, content.near)
        assert fact.name in fact.asked
        assert fact.answer not in fact.asked
    assert len({fact.asked for fact in content.facts}) == len(content.facts)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_text_and_another_seed_or_vocabulary_another(
    kind: str,
) -> None:
    content = made(kind, "g", size=SMALL)
    assert made(kind, "g", size=SMALL) == content
    assert made(kind, "h", size=SMALL).text != content.text
    assert made(kind, "g", True, SMALL).text != content.text


def test_json_is_json_and_python_is_python() -> None:
    for kind in ("json object", "json list"):
        json.loads(made(kind, "g").text)
    for line in made("ndjson", "g").text.splitlines():
        json.loads(line)
    compile(made("python", "g").text, "made.py", "exec")


@pytest.mark.parametrize("format", ["anthropic", "openai-chat", "openai-responses", "gemini"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("asker", ASKERS)
def test_a_request_is_valid_answers_the_question_and_names_it_only_where_it_is_asked(
    asker: str, place: str, format: str
) -> None:
    content, fact, talk = talk_of("grep", asker, place)
    whole = request(talk, format)
    assert trimtab.check(whole) == ()
    assert answered(whole, fact, content.near)
    without = talk.with_results(["gone", *(step.result for step in talk.steps[1:])])
    left = json.dumps(request(without, format))
    assert (fact.name in left) == (asker != "nobody")
    assert fact.answer not in left


@pytest.mark.parametrize("asker", ASKERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_judge_says_no_when_the_answer_is_cut_and_the_name_is_left(
    kind: str, asker: str
) -> None:
    content, fact, talk = talk_of(kind, asker)
    others = [step.result for step in talk.steps[1:]]
    assert answered(request(talk, "openai-chat"), fact, content.near)
    cut = talk.with_results([content.text.replace(fact.answer, "..."), *others])
    assert not answered(request(cut, "openai-chat"), fact, content.near)


@pytest.mark.parametrize("kind", KINDS)
def test_the_judge_says_no_when_an_answer_has_only_the_question_beside_it(kind: str) -> None:
    content, fact, _ = talk_of(kind, "nobody")
    for question in fact.questions:
        text = f"1 bash {question} -> ok\n    {fact.answer}"
        assert not answered({"content": text}, fact, content.near)
        assert not answered({"content": f"{question} {fact.answer}"}, fact, content.near)


def test_the_judge_takes_no_part_of_a_longer_word_and_no_answer_far_away() -> None:
    fact = Fact("parse_order", "4711", "the constant in parse_order")
    assert answered("def parse_order(a):\n    return 4711", fact, "lines")
    assert not answered("def parse_orders(a):\n    return 4711", fact, "lines")
    assert not answered("def parse_order(a):\n    return 47110", fact, "lines")
    assert not answered("def parse_order(a):" + "\n" * 13 + "return 4711", fact, "lines")
    assert not answered("parse_order\n4711", fact, "line")
    assert not answered(f"parse_order{' ' * 400}4711", fact, "chars")
    assert not answered(["parse_order", "4711"], fact, "chars")


@pytest.mark.parametrize("place", PLACES)
def test_the_rival_s_request_is_as_large_as_it_has_to_be(place: str) -> None:
    talk = talk_of("application log", "first user text", place)[2]
    whole = request(talk, "anthropic")
    before = trial.tokens(whole)
    places = range(len(talk.steps)) if place == "fold" else [0]
    cut = head_tail.cut(talk, before // 2, places)
    after = trial.tokens(request(cut, "anthropic"))
    assert after <= before - before // 2 + len(places)
    assert after == pytest.approx(before / 2, rel=0.02)
    assert talk.steps[0].result.startswith(cut.steps[0].result.split(head_tail.MARK)[0])


def test_a_trial_gives_the_same_outcome_again_and_sends_no_more_than_the_window() -> None:
    for place in PLACES:
        one = Trial("csv", "first user text", place, 0.25, 1, "openai-chat")
        outcome = trial.run(one)
        assert outcome == trial.run(one)
        assert 0 < outcome.used <= 1


def test_worse_is_only_what_is_significantly_worse() -> None:
    lost, won, same = (False, True), (True, False), (True, True)
    assert trial.is_worse([lost] * 6 + [same] * 9)
    assert not trial.is_worse([lost] * 5 + [same] * 9)
    assert not trial.is_worse([won] * 9)
    assert not trial.is_worse([lost] * 6 + [won] * 4)
    assert trial.sign_test([same]) == 1
    assert trial.sign_test([lost] * 6) == pytest.approx(2 / 64)


def test_held_out_trials_have_other_seeds_and_are_no_default() -> None:
    own, held = (Trial("csv", "nobody", "fold", 0.5, 0, "anthropic", h) for h in (False, True))
    assert own.seed != held.seed


def test_the_command_prints_a_row_a_kind_and_writes_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    argv: list[Any] = ["--kinds", "prose", "yaml", "--trials", "1"]
    assert command.main(argv) == 0
    told = capsys.readouterr().out
    assert "| prose | " in told
    assert "| later call | " in told
    assert "Named by user or call, fold, 1/2: " in told
    assert command.main([*argv, "--held-out", "--out", str(tmp_path / "out.txt")]) == 0
    assert not capsys.readouterr().out
    assert (tmp_path / "out.txt").read_text().startswith("Held out\n\n| kind | newest 1/2")
