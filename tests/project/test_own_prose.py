"""The benchmark of the user's own prose: its data, its worlds, and a judge that sees what is cut.

Knows ``bench/own_prose``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import trimtab

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

from answerable.tokens import of_text
from own_prose import command, judge, rules, shapes, tables, worlds
from own_prose.pastes import KINDS, paste
from own_prose.talk import body, user
from own_prose.worlds import HALF, QUARTER, Trial, plain

RULES = rules.load()
WRAPPED = next(rule for rule in RULES if rule.kind == "wrapped")
LISTED = next(rule for rule in RULES if rule.kind == "list")
PASTE = paste("logs", 300, "test")


@pytest.fixture(scope="module", params=[False, True], ids=["default", "held out"])
def trials(request: pytest.FixtureRequest) -> list[Trial]:
    return worlds.all_trials(rules.half(RULES, request.param), request.param)


def test_there_are_rules_of_each_kind_in_twelve_languages() -> None:
    assert len(RULES) >= 200
    assert len({rule.text for rule in RULES}) == len(RULES)
    counts = Counter((rule.language, rule.kind) for rule in RULES)
    languages = {rule.language for rule in RULES}
    assert len(languages) >= 12
    assert all(counts[language, kind] >= 2 for language in languages for kind in rules.KINDS)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.text[:20])
def test_the_needles_are_the_whole_text_and_in_no_other(rule: rules.Written) -> None:
    assert "\n".join(rule.needles) == rule.text
    assert (len(rule.needles) > 1) == (rule.kind in ("wrapped", "list"))
    assert bool(rule.corrects) == (rule.kind == "correction")
    for needle in rule.needles:
        assert sum(needle in other.text or needle in other.corrects for other in RULES) == 1


def test_the_halves_share_no_rule_and_lack_none() -> None:
    one, other = rules.half(RULES, False), rules.half(RULES, True)
    assert len(one) == len(other)
    assert sorted(rule.text for rule in (*one, *other)) == sorted(rule.text for rule in RULES)


def test_the_constraints_of_conpact_are_read_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "conpact"
    package.mkdir()
    (package / "__init__.py").write_text("import no_such_module\n")  # must not be run
    (package / "constraints.py").write_text('SCS = [{"id": 1, "sc": "Reply in verse."}]\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "conpact", raising=False)
    assert [rule.text for rule in rules.load_conpact()] == ["Reply in verse."]


def test_without_conpact_the_rest_is_run_and_it_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert command.chosen(False) == rules.half(RULES, False)
    assert "conpact is not installed" in capsys.readouterr().err


# --- worlds ---


def test_every_world_is_a_valid_request_that_says_each_needle_once(trials: list[Trial]) -> None:
    for trial in trials:
        assert trimtab.check(body(trial.messages)) == ()
        text = judge.text_of(trial.messages) + judge.text_of(trial.messages, other=True)
        for written in trial.written:
            assert [text.count(needle) for needle in written.needles] == [1] * len(written.needles)
        assert all(one.text in text for one in trial.pasted)


def test_there_is_room_for_the_prose_wherever_it_is_said_to_be(trials: list[Trial]) -> None:
    for trial in trials:
        if not trial.tight:
            prose = judge.text_of(trial.messages)
            for one in trial.pasted:
                prose = prose.replace(one.text, "")
            assert of_text(prose) < 0.9 * worlds.TARGET * trial.window


def test_a_rule_meets_every_place_of_a_message_and_both_ages(trials: list[Trial]) -> None:
    long = [one for one in trials if one.situation in (worlds.NEWEST, worlds.OLDER)]
    met = Counter(
        (written.kind, one.situation, one.label)
        for one in long for written in one.written if written.kind in rules.KINDS
    )  # fmt: skip
    assert len(met) == len(rules.KINDS) * 2 * 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_paste_has_its_size_and_depends_on_its_seed(kind: str) -> None:
    one = paste(kind, 500, 1)
    assert one == paste(kind, 500, 1) != paste(kind, 500, 2)
    assert 400 <= of_text(one.text) < 700


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_a_shape_has_two_texts_and_its_needles_are_in_them(name: str) -> None:
    one, other = shapes.shape(name, False), shapes.shape(name, True)
    assert one.text != other.text
    assert all(needle in one.text for needle in one.needles)


# --- the judge ---


def _trial(*written: rules.Written, share: float = HALF) -> Trial:
    texts = [one.text for one in written]
    messages = [user(*texts, PASTE.text), {"role": "assistant", "content": "Well. " * 60}]
    return Trial("test", share, [*messages, user("Go on.")], written, (PASTE,))


def _without(trial: Trial, *parts: str) -> judge.Verdict:
    sent = json.loads(json.dumps(trial.messages))
    for part in parts:
        sent[0]["content"] = sent[0]["content"].replace(part, "")
    return judge.judge(trial, sent)


def test_nothing_cut_is_all_kept() -> None:
    assert _without(_trial(WRAPPED, LISTED)).fates == ("kept", "kept")


@pytest.mark.parametrize("rule", [r for r in RULES if len(r.needles) > 1], ids=lambda r: r.text[:9])
def test_a_rule_that_lacks_any_needle_is_torn_and_without_all_lost(rule: rules.Written) -> None:
    for needle in rule.needles:
        assert _without(_trial(rule), needle).fates == ("torn",)
    assert _without(_trial(rule), *rule.needles).fates == ("lost",)


def test_a_word_that_is_changed_is_a_needle_lost() -> None:
    trial = _trial(RULES[0])
    sent: list[dict[str, Any]] = [user(RULES[0].text.replace("Never", "Always"))]
    assert judge.judge(trial, sent).fates == ("lost",)


def test_words_of_the_user_in_another_s_name_are_not_kept() -> None:
    trial = _trial(WRAPPED)
    verdict = judge.judge(trial, [{"role": "assistant", "content": WRAPPED.text}, user("Go on.")])
    assert (verdict.fates, verdict.moved) == (("lost",), 1)


def test_prose_lost_beside_a_paste_is_told_as_one_error_or_the_other() -> None:
    trial = _trial(WRAPPED, LISTED)
    whole = _without(trial, WRAPPED.text)
    assert (whole.taken_for_written, whole.taken_for_pasted) == (True, False)
    cut = _without(trial, WRAPPED.text, PASTE.text[:200])
    assert (cut.taken_for_written, cut.taken_for_pasted) == (False, True)
    bare = _without(trial, WRAPPED.text, PASTE.text)
    assert (bare.taken_for_written, bare.taken_for_pasted) == (False, False)
    right = _without(trial, PASTE.text[:200])
    assert (right.taken_for_written, right.taken_for_pasted) == (False, False)


def test_a_new_text_lost_while_a_longer_old_one_is_kept_is_counted() -> None:
    long, short = WRAPPED, RULES[0]
    assert _without(_trial(long, short), short.text).outlived == 1
    assert _without(_trial(short, long), short.text).outlived == 0


def test_an_original_that_outlives_its_correction_is_counted() -> None:
    rule = next(rule for rule in RULES if rule.corrects)
    trial = _trial(plain(rule.corrects, "original"), rule)
    assert tables.pairs(_without(trial)) == [(True, True)]
    assert tables.pairs(_without(trial, rule.text)) == [(True, False)]
    assert tables.pairs(_without(trial, rule.corrects)) == [(False, True)]


def test_where_room_is_short_the_newest_texts_are_what_there_is_room_for() -> None:
    trial = next(t for t in worlds.chats(rules.half(RULES, False), 1) if t.share == QUARTER)
    room = judge.possible(trial)
    assert 0 < sum(room) < len(room)
    assert list(room) == sorted(room)
    assert all(judge.possible(replace(trial, tight=False)))


def test_the_tables_count_what_was_run() -> None:
    some = rules.half(RULES, False)[:4]
    found = [judge.run(one) for one in worlds.agent(some, 1)]
    told = tables.situations(found)
    assert "| agent, first message, ½ | 4 | 4 | 4 |" in told
    assert " of 1 |" in tables.by_rule(found, lambda rule: rule.kind, "kind")
