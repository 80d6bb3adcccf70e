"""Rows D7 and E2–E4 by their own numbers, with the preset that shrinks each result in its place."""

from __future__ import annotations

import json
import re
from bisect import bisect
from typing import Any

import pytest
from pairs import orphans, texts, user_texts
from settings_words import as_keywords
from shapes import FORMATS, MODELS, Items, items_of, parts, request, said, session, turn, user

import trimtab
from trimtab import Session
from trimtab.planning.presets import PRESETS

RESULTS, USERS, MODELS_OWN, TARGET = 5, 10, 10, 0.6
"""The row's numbers: what is recent, and the share of the maximum after a compression."""
NOTE = re.compile(r"\[([\d,]+) earlier steps? left out to fit: [^]\n]*\]")


def talk(format: str, rounds: int, lines: int = 20, thoughts: int = 1) -> dict[str, Any]:
    """``rounds`` times: a question, a call, its result, an answer."""
    items: Items = []
    for n in range(rounds):
        text = "".join(f"src/mod_{n}.py:{i}: token {i * 7919}\n" for i in range(lines))
        items += user(format, f"Question {n}?")
        items += turn(format, f"call_{n:04}", {"path": f"src/mod_{n}.py"}, text, f"look at {n}")
        items += said(format, f"Answer {n}. " * thoughts)
    return request(format, items + user(format, "And now?"), MODELS[format])


def size(body: Any) -> int:
    return trimtab.measure(body, counter="o200k").total


def fit(body: Any, window: int, **more: Any) -> Any:
    keywords = {"preset": "in-place", "reserve": 0, "counter": "o200k", **more}
    return trimtab.fit(body, **as_keywords(window=window, **keywords))


def whole(body: Any, sent: Any) -> set[int]:
    """Numbers of the items that were sent as the very objects that came."""
    given = {id(item): number for number, item in enumerate(items_of(body))}
    return {given[id(item)] for item in items_of(sent) if id(item) in given}


def of_kind(body: Any) -> dict[str, list[int]]:
    """Numbers of the items that hold results, words of the user, and what the model made."""
    found: dict[str, list[int]] = {"result": [], "user": [], "model": []}
    for number, item in enumerate(items_of(body)):
        kinds = {kind for kind, _, _ in parts([item])}
        if "result" in kinds:
            found["result"].append(number)
        elif item.get("role") == "user":
            found["user"].append(number)
        elif "call" in kinds or item.get("role") in ("assistant", "model"):
            found["model"].append(number)
    return found


# --- E2: 5 results, 10 messages of the user, 10 of the model --------------------------------------


@pytest.mark.row("E2")
@pytest.mark.parametrize("format", FORMATS)
def test_the_newest_5_results_and_10_messages_of_user_and_model_stay_as_they_came(
    format: str,
) -> None:
    body = talk(format, 30)
    window = int(size(body) * 0.8)
    fitted = fit(body, window)
    same, kinds = whole(body, fitted.request), of_kind(body)
    assert set(kinds["result"][-RESULTS:]) <= same
    assert set(kinds["user"][-USERS:]) <= same
    assert set(kinds["model"][-MODELS_OWN:]) <= same
    changed = set(range(len(items_of(body)))) - same
    assert changed
    assert changed <= set(kinds["result"][:-RESULTS]) | set(kinds["model"][:-MODELS_OWN])
    assert len(items_of(fitted.request)) == len(items_of(body)), "no message goes"


@pytest.mark.row("E2")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_with_fewer_messages_than_that_what_is_there_gives_way_oldest_first(
    format: str, rounds: int
) -> None:
    body = talk(format, rounds, lines=120)
    window = int(size(body) * 0.7)
    fitted = fit(body, window)
    assert size(fitted.request) <= window
    assert trimtab.check(fitted.request, format=format) == ()
    shown = [len(json.dumps(part)) for kind, _, part in parts(fitted.request) if kind == "result"]
    assert len(shown) == rounds
    assert shown == sorted(shown)
    assert set(of_kind(body)["user"]) <= whole(body, fitted.request)


@pytest.mark.row("E2")
@pytest.mark.parametrize("format", FORMATS)
def test_a_big_recent_result_is_cut_and_the_others_stay_whole(format: str) -> None:
    small = talk(format, 8, lines=4)
    own = next(t for t in texts(items_of(small)) if t.startswith("src/mod_7.py:0"))
    big = "".join(f"found at offset {n * 7919}\n" for n in range(1_500))
    body = json.loads(json.dumps(small).replace(json.dumps(own)[1:-1], json.dumps(big)[1:-1]))
    window = size(body) // 2
    fitted = fit(body, window)
    assert size(fitted.request) <= window
    changed = set(range(len(items_of(body)))) - whole(body, fitted.request)
    assert changed == {of_kind(body)["result"][-1]}
    (shown,) = [t for t in texts(fitted.request) if "found at offset 0\n" in t]
    assert "found at offset 11870581" in shown


# --- E3: down to 60 % -----------------------------------------------------------------------------


@pytest.mark.row("E3")
@pytest.mark.parametrize("format", FORMATS)
def test_above_the_limit_a_batch_goes_down_to_60_percent_and_then_rests(format: str) -> None:
    body = talk(format, 40)
    window = size(body) - 1
    assert PRESETS["in-place"].target == TARGET
    fitted = fit(body, window)
    goal = fitted.report.limits["target_tokens"]
    users = size(request(format, [items_of(body)[n] for n in of_kind(body)["user"]], "gpt-5"))
    assert goal is not None
    assert goal <= TARGET * window + (1 - TARGET) * users
    assert 0.9 * goal <= size(fitted.request) <= goal
    assert fit(fitted.request, window).request is fitted.request


@pytest.mark.row("E3")
@pytest.mark.parametrize("format", FORMATS)
def test_where_what_loses_nothing_reaches_the_target_nothing_else_is_done(format: str) -> None:
    items = user(format, "Which are free?")
    for n in range(12):
        rows = [{"id": n * 100 + i, "free": bool(i % 2)} for i in range(120)]
        pretty = json.dumps(rows, indent=8)
        items += turn(format, f"call_{n:04}", {"page": n}, pretty, f"page {n}")
        items += said(format, f"Read page {n}.")
    body = request(format, items + user(format, "And now?"), MODELS[format])
    fitted = fit(body, size(body) - 1)
    assert fitted.report.edits
    assert {edit.loss for edit in fitted.report.edits} == {0.0}
    assert {edit.kind for edit in fitted.report.edits} <= {"respell", "table"}
    assert size(fitted.request) <= fitted.report.limits["target_tokens"]
    assert len(fitted.report.edits) < 12, "and no more of it than it takes"


@pytest.mark.row("E3")
@pytest.mark.parametrize("format", FORMATS)
def test_a_target_that_what_is_recent_keeps_out_of_reach_is_no_error(format: str) -> None:
    body = talk(format, 9, lines=40)
    window = size(body) - 1
    fitted = fit(body, window, target=0.05)
    goal = fitted.report.limits["target_tokens"]
    assert goal < size(fitted.request) <= window
    assert set(of_kind(body)["result"][-RESULTS:]) <= whole(body, fitted.request)


# --- E4: no result becomes words of the user ------------------------------------------------------


@pytest.mark.row("E4")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("share", [0.8, 0.6, 0.5])
def test_results_stay_results_and_the_users_words_are_only_theirs(
    format: str, share: float
) -> None:
    body = talk(format, 30)
    fitted = fit(body, int(size(body) * share))
    assert orphans(fitted.request) == []
    assert user_texts(format, fitted.request) == user_texts(format, body)
    ids = [(kind, name) for kind, name, _ in parts(body)]
    assert [(kind, name) for kind, name, _ in parts(fitted.request)] == ids


@pytest.mark.row("E4")
@pytest.mark.parametrize("format", FORMATS)
def test_where_steps_must_go_a_bare_count_of_them_is_all_that_joins_the_users_words(
    format: str,
) -> None:
    body = session(format, steps=60, lines=10)
    fitted = fit(body, size(body) // 12)
    own = user_texts(format, body)
    for text in user_texts(format, fitted.request):
        said_ = NOTE.sub("", text).strip()
        assert said_ in ("", *own)
    counted = [int(m[1]) for t in texts(fitted.request) for m in NOTE.finditer(t)]
    kept = sum(kind == "call" for kind, _, _ in parts(fitted.request))
    assert sum(counted) + kept == 60
    assert 0 < kept < 60


# --- D7: one oversized turn -----------------------------------------------------------------------


@pytest.mark.row("D7")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("share", [0.6, 0.25, 0.1])
def test_a_single_oversized_turn_is_shrunk_inside_and_no_step_of_it_goes(
    format: str, share: float
) -> None:
    body = session(format, steps=6, lines=400)
    window = int(size(body) * share)
    fitted = fit(body, window)
    assert size(fitted.request) <= window
    assert trimtab.check(fitted.request, format=format) == ()
    assert [name for _, name, _ in parts(fitted.request)] == [name for _, name, _ in parts(body)]
    assert user_texts(format, fitted.request) == user_texts(format, body)
    cut = [edit for edit in fitted.report.edits if edit.op == "replace"]
    assert cut == list(fitted.report.edits)
    assert cut


@pytest.mark.row("D7")
@pytest.mark.parametrize("format", FORMATS)
def test_steps_are_dropped_only_when_all_inside_is_as_small_as_it_goes(format: str) -> None:
    body = session(format, steps=60, lines=10)
    shares = range(60, 4, -2)

    def folds(share: int) -> bool:
        edits = fit(body, size(body) * share // 100).report.edits
        return any(edit.op in ("drop", "fold") for edit in edits)

    least = shares[bisect(shares, False, key=folds)]
    fitted = fit(body, size(body) * least // 100)
    before = fit(body, size(body) * (least + 2) // 100)
    assert all(edit.op != "drop" for edit in before.report.edits)
    told = " ".join(texts(items_of(fitted.request)))
    assert "Find the bug in the parser." in told
    assert "And now?" in told
    old = [len(json.dumps(part)) for kind, _, part in parts(fitted.request) if kind == "result"]
    whole_ = [len(json.dumps(part)) for kind, _, part in parts(body) if kind == "result"]
    assert max(old[:-10]) < min(whole_) / 2, "what is left of the old ones is small"


@pytest.mark.parametrize("format", FORMATS)
def test_in_place_a_session_keeps_every_step_and_appends_between_batches(format: str) -> None:
    whole_ = talk(format, 40, lines=60)
    items, session_ = (
        items_of(whole_),
        Session(
            window=size(whole_) // 2,
            reserve=0,
            preset="in-place",
            settings=trimtab.Settings(counter="o200k"),
        ),
    )
    before: Items = []
    batches = 0
    step = len(talk(format, 1)["contents" if format == "gemini" else
               "input" if format == "openai-responses" else "messages"]) - 1  # fmt: skip
    for end in range(step * 10 + 1, len(items) + 1, step):
        sent = items_of(session_.fit(request(format, items[:end], MODELS[format])).request)
        assert len(sent) == end
        batches += sent[: len(before)] != before
        before = sent
    assert 0 < batches <= 8
