"""Rows D1–D4 and D6–D10: whatever is left out, no call and no result is ever left alone."""

from __future__ import annotations

import copy
import json
import re
import time
from itertools import pairwise
from typing import Any

import pytest
from chat_requests import body, call, calls, result, said, text, use, used, user
from pairs import orphans, texts, user_texts
from settings_words import as_keywords
from shapes import FORMATS, items_of, parts, session

import trimtab
from trimtab import CannotFit, InvalidSetting, Session

WEATHER = [
    {"role": "system", "content": "You are..."},
    {"role": "user", "content": "What's the weather?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "get_weather",
                                                          "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 25°C"},
    {"role": "assistant", "content": "It's sunny..."},
    {"role": "user", "content": "Thanks!"},
]  # fmt: skip
"""The six messages of sipeed/picoclaw#870."""


def fit(request: Any, window: int, **more: Any) -> Any:
    return trimtab.fit(request, **as_keywords(window=window, reserve=0, counter="o200k", **more))


def size(request: Any) -> int:
    return trimtab.measure(request, counter="o200k").total


def smallest(request: Any, **more: Any) -> Any:
    """Fitted into the smallest window that takes it."""
    try:
        return fit(request, 1, **as_keywords(**more))
    except CannotFit as error:
        return fit(request, error.minimum, **as_keywords(**more))


def sound(fitted: Any) -> bool:
    return trimtab.check(fitted.request) == () and orphans(fitted.request) == []


# --- D1 -------------------------------------------------------------------------------------------


@pytest.mark.row("D1")
def test_the_six_messages_of_the_issue_never_lose_half_a_pair_at_any_window() -> None:
    before = copy.deepcopy(WEATHER)
    minimum = smallest(WEATHER).report.tokens_after
    assert minimum <= size([*WEATHER[:2], *WEATHER[4:]]) + 16, "a line can stand for the call"
    for window in range(minimum, size(WEATHER) + 2):
        fitted = fit(WEATHER, window)
        assert sound(fitted)
        told = list(texts(fitted.request))
        assert any(t.startswith("Thanks!") for t in told), "the newest words stay in any case"
        if window > minimum + 40:
            assert any("What's the weather?" in t for t in told)
    assert before == WEATHER


@pytest.mark.row("D1")
def test_what_the_issue_was_left_with_after_its_cut_is_repaired() -> None:
    cut = [WEATHER[0], *WEATHER[3:]]
    assert [v.rule for v in trimtab.check(cut)] == ["orphan_result"]
    assert sound(fit(cut, 10_000))


@pytest.mark.row("D1")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kept", [0.5, 2, 4])
def test_half_a_history_cut_anywhere_comes_out_without_orphans(format: str, kept: float) -> None:
    whole = session(format, steps=4, lines=3)
    items = items_of(whole)
    last = len(items) // 2 if kept == 0.5 else int(kept)
    for start in range(len(items) - last + 1):
        part = copy.deepcopy(whole)
        items_of(part)[:] = copy.deepcopy(items[start : start + last])
        assert sound(fit(part, 100_000)), start


@pytest.mark.row("D1")
@pytest.mark.parametrize("share", [0.5, 0.3, 0.15])
@pytest.mark.parametrize("format", FORMATS)
def test_in_every_format_half_of_the_tokens_go_and_no_pair_is_torn(
    format: str, share: float
) -> None:
    request = session(format, steps=30, lines=12)
    window = int(size(request) * share)
    fitted = fit(request, window)
    assert sound(fitted)
    assert size(fitted.request) <= window


@pytest.mark.row("D1")
def test_without_a_system_message_the_same_holds() -> None:
    assert sound(smallest(WEATHER[1:]))
    assert sound(smallest(WEATHER[1:5]))
    assert fit(WEATHER[1:2], 1_000).request == WEATHER[1:2]


# --- D2 -------------------------------------------------------------------------------------------


def talk(turns: int, size_: int = 40) -> list[Any]:
    out: list[Any] = []
    for n in range(turns):
        out += [
            user(f"Question {n}?"), calls(call(f"c{n}")), result(f"c{n}", f"line {n}\n" * size_),
            said(f"Answer {n}."),
        ]  # fmt: skip
    return [*out, user("And now?")]


@pytest.mark.row("D2")
def test_an_answer_never_stands_without_its_question() -> None:
    request = body(*talk(20))
    for share in (0.5, 0.3):
        fitted = fit(request, int(size(request) * share))
        assert fitted.report.edits
        told = [t.partition("\n")[0] for t in texts(fitted.request["messages"])]
        assert [t for t in told if t.startswith("Question")] == [
            f"Question {n}?" for n in range(20)
        ]
        order = [t for t in told if re.match("Question|Answer", t)]
        for before, after in pairwise(order):
            if after.startswith("Answer"):
                assert before == after.replace("Answer", "Question").replace(".", "?")


@pytest.mark.row("D2")
@pytest.mark.parametrize("format", ["anthropic", "bedrock", "gemini"])
def test_a_user_message_that_carries_results_is_no_boundary(format: str) -> None:
    request = session(format, steps=12, lines=20)
    for share in (0.6, 0.4, 0.2):
        fitted = fit(request, int(size(request) * share))
        assert sound(fitted)
        assert user_texts(format, fitted.request)[0].startswith("Find the bug in the parser.")


@pytest.mark.row("D2")
def test_with_no_user_message_to_cut_at_another_rung_is_taken() -> None:
    steps = [m for n in range(25) for m in (calls(call(f"c{n}")), result(f"c{n}", "out\n" * 90))]
    request = body(user("Go."), *steps)
    fitted = fit(request, size(request) // 5)
    assert sound(fitted)
    assert fitted.request["messages"][0]["content"].startswith("Go.")


# --- D3 -------------------------------------------------------------------------------------------

LONG = "".join(f"line {n} of a long result, number {n * 7919}\n" for n in range(90))
GROUPS = {
    "parallel calls": body(
        user("Go."),
        *[m for n in range(8) for m in (
            calls(call(f"a{n}"), call(f"b{n}"), call(f"c{n}")),
            result(f"c{n}", LONG), result(f"a{n}", LONG), result(f"b{n}", LONG))],
        user("And?")),
    "several assistants": body(
        user("Go."),
        *[m for n in range(12) for m in (
            said("Looking."), calls(call(f"a{n}")), result(f"a{n}", LONG), said("Hm."))],
        user("And?")),
    "results over several messages": {"max_tokens": 9, "messages": [
        user("Go."),
        *[m for n in range(8) for m in (
            said([use(f"a{n}"), use(f"b{n}")]), user([used(f"b{n}", LONG)]),
            user([used(f"a{n}", LONG)]))],
        user("And?")]},
    "results beside words": {"max_tokens": 9, "messages": [
        user("Go."),
        *[m for n in range(8) for m in (
            said([text("Both."), use(f"a{n}"), use(f"b{n}")]),
            user([used(f"a{n}", LONG), used(f"b{n}", LONG), text(f"Go on with {n}.")]))],
    ]},
}  # fmt: skip


@pytest.mark.row("D3")
@pytest.mark.parametrize("share", [0.5, 0.2, 0.05, 0.0])
@pytest.mark.parametrize("name", GROUPS)
def test_a_call_and_all_its_results_go_together_or_stay_together(name: str, share: float) -> None:
    request = GROUPS[name]
    fitted = fit(request, int(size(request) * share)) if share else smallest(request)
    assert sound(fitted)
    kept = {n: kinds for n in range(30) for kinds in [[
        kind for kind, id_, _ in parts(fitted.request) if id_[1:] == str(n)]]}  # fmt: skip
    whole = {n: [k for k, id_, _ in parts(request) if id_[1:] == str(n)] for n in range(30)}
    for n, kinds in kept.items():  # a turn goes as a whole, but for one call with its result
        assert sorted(kinds) in ([], ["call", "result"], sorted(whole[n]))


# --- D4 -------------------------------------------------------------------------------------------

BROKEN = {
    "missing id": [{"role": "tool", "content": LONG}],
    "empty id": [calls(call("c1")), result("", LONG)],
    "unexpected id": [calls(call("c1")), result("c2", LONG)],
    "duplicate result": [calls(call("c1")), result("c1", LONG), result("c1", LONG)],
    "result before its call": [result("c1", LONG), calls(call("c1"))],
    "reused ids": [calls(call("c1")), result("c1", LONG), said(), user("again"),
                   calls(call("c1")), result("c1", LONG)],
    "blank tool name": [calls({**call("c1"), "function": {"name": "", "arguments": "{}"}}),
                        result("c1", LONG)],
    "interleaved user message": [calls(call("c1"), call("c2")), result("c1", LONG),
                                 user("wait"), result("c2", LONG)],
}  # fmt: skip


@pytest.mark.row("D4")
@pytest.mark.parametrize("share", [2.0, 0.6, 0.3])
@pytest.mark.parametrize("name", BROKEN)
def test_what_comes_out_of_a_compression_is_sane_whatever_came_in(name: str, share: float) -> None:
    request = body(user("Go."), *talk(4), *BROKEN[name], user("And?"))
    fitted = fit(request, int(size(request) * share))
    assert sound(fitted)
    assert all(call_["function"]["name"] for kind, _, call_ in parts(fitted.request)
               if kind == "call")  # fmt: skip
    again = fit(fitted.request, int(size(request) * share))
    assert again.request is fitted.request


@pytest.mark.row("D4")
def test_ids_that_come_again_in_a_later_turn_are_kept_in_each() -> None:
    request = body(user("Go."), *BROKEN["reused ids"], user("And?"))
    assert fit(request, 100_000).request is request


# --- D6 -------------------------------------------------------------------------------------------

NOTE = re.compile(r"\[([\d,]+) earlier steps?(?: left out to fit|, of which this record is left)")


def noted(request: Any) -> int:
    """How many steps the notes in a request say were left out."""
    return sum(int(found[1].replace(",", "")) for t in texts(request) for found in NOTE.finditer(t))


def steps_in(request: Any) -> int:
    """Steps that stand; the call of a fold stands for those its note counts."""
    folds = sum(" of which this record is left" in text for text in texts(request))
    return sum(1 for kind, _, _ in parts(request) if kind == "call") - folds


@pytest.mark.row("D6")
@pytest.mark.parametrize("format", FORMATS)
def test_the_notes_count_the_steps_that_were_left_out_and_are_no_system_message(
    format: str,
) -> None:
    request = session(format, steps=40, lines=12)
    fitted = smallest(request)
    assert any(edit.op in ("drop", "fold") for edit in fitted.report.edits)
    every = any(" earlier messages left out to fit" in text for text in texts(fitted.request))
    assert every or noted(fitted.request) + steps_in(fitted.request) == 40
    for item in items_of(fitted.request):
        assert item.get("role") not in ("system", "developer")
    assert list(fitted.request) == list(request), "no new key at the top"


@pytest.mark.row("D6")
def test_the_head_before_the_first_note_keeps_its_bytes() -> None:
    request = {**body({"role": "system", "content": "You are careful."}, *talk(30))}
    fitted = fit(request, size(request) // 6)
    sent, came = fitted.request["messages"], request["messages"]
    assert sent[0] is came[0]
    assert came[1]["content"] in sent[1]["content"]
    assert sum(m["role"] == "system" for m in sent) == 1


@pytest.mark.row("D6")
def test_counts_add_up_over_the_turns_of_a_session() -> None:
    conversation = Session(window=2_500, reserve=0, settings=trimtab.Settings(counter="o200k"))
    messages: list[Any] = [user("Go.")]
    for n in range(60):
        messages += [calls(call(f"c{n}")), result(f"c{n}", f"line {n} of it\n" * 30)]
        fitted = conversation.fit(body(*messages))
        assert noted(fitted.request) + steps_in(fitted.request) == n + 1
    assert noted(fitted.request) > 20


# --- D7 -------------------------------------------------------------------------------------------


@pytest.mark.row("D7")
@pytest.mark.parametrize("format", FORMATS)
def test_one_oversized_turn_is_shrunk_inside_and_its_task_stays(format: str) -> None:
    request = session(format, steps=6, lines=400)
    fitted = fit(request, size(request) // 4)
    assert sound(fitted)
    asked = user_texts(format, request)
    told = user_texts(format, fitted.request)
    assert all(any(text.startswith(own) for text in told) for own in asked)
    assert noted(fitted.request) + steps_in(fitted.request) == 6
    shown = " ".join(texts(items_of(fitted.request)))
    for n in range(6):  # no step is lost without a trace, the last one is there itself
        assert f"mod_{n}" in shown
    assert "src/mod_5.py:0: token 0" in shown


# --- D8 -------------------------------------------------------------------------------------------

TOOLS = [
    {"type": "function", "function": {
        "name": f"tool_{n}", "description": f"Does the thing number {n}. " * 20,
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}}
    for n in range(10)
]  # fmt: skip


@pytest.mark.row("D8")
def test_tool_schemas_and_the_output_reserve_count_before_anything_is_sent() -> None:
    bare = body(*talk(6))
    request = {**bare, "tools": TOOLS}
    assert size(request) > size(bare) + 1_000
    assert fit(bare, int(size(bare) * 1.2)).request is bare
    window = size(request) - 300
    assert window > size(bare)
    fitted = fit(request, window)
    assert fitted.report.edits
    assert size(fitted.request) <= window
    assert fitted.request["tools"] is TOOLS
    reserved = trimtab.fit(
        bare, window=int(size(bare) * 1.2), reserve=400, settings=trimtab.Settings(counter="o200k")
    )
    assert size(reserved.request) <= int(size(bare) * 1.2) - 400


@pytest.mark.row("D8")
def test_the_output_limit_of_a_request_is_no_window_but_room_kept_free() -> None:
    request = {**body(*talk(6)), "max_tokens": 500}
    window = size(request) + 200
    fitted = trimtab.fit(request, window=window, settings=trimtab.Settings(counter="o200k"))
    assert fitted.report.limits["capacity"] == window - 500
    assert size(fitted.request) <= window - 500
    with pytest.raises(InvalidSetting, match="output"):
        trimtab.fit(request, window=500)


@pytest.mark.row("D8")
def test_an_unknown_window_is_asked_for() -> None:
    with pytest.raises(InvalidSetting, match="no window"):
        trimtab.fit({**body(*talk(2)), "model": "my-own-model"})


# --- D9 -------------------------------------------------------------------------------------------


@pytest.mark.row("D9")
@pytest.mark.parametrize("format", FORMATS)
def test_of_an_interrupted_batch_what_ran_stays_and_the_rest_is_said_to_be_interrupted(
    format: str,
) -> None:
    request = session(format, steps=3, lines=4)
    items = items_of(request)
    results = [n for n, item in enumerate(items) if "result" in {k for k, _, _ in parts([item])}]
    gone = items[results[1]]
    if format == "bedrock":
        gone["content"] = [{"text": "Stop."}]
    else:
        items.remove(gone)
    fitted = fit(request, 100_000)
    assert sound(fitted)
    ran = [kind for kind, _, _ in parts(fitted.request)]
    assert ran.count("call") == ran.count("result") == 3
    told = " ".join(texts(fitted.request))
    assert "src/mod_0.py:0" in told
    assert "src/mod_2.py:0" in told
    assert re.search(r"\[No result: .*\]", told)
    made = next(
        part for kind, _, part in parts(fitted.request)
        if kind == "result" and "[No result" in " ".join(texts(part))
    )  # fmt: skip
    if format == "bedrock":
        assert made["toolResult"]["status"] == "error"
    elif format == "anthropic":
        assert made["is_error"] is True


@pytest.mark.row("D9")
def test_calls_that_are_being_run_now_are_left_alone_only_if_said_so() -> None:
    request = body(user("Go."), calls(call("c1"), call("c2")))
    assert fit(request, 10_000, settings=trimtab.Settings(open_tail=True)).request is request
    assert sound(fit(request, 10_000))
    one = body(user("Go."), calls(call("c1"), call("c2")), result("c1", "ran"))
    repaired = fit(one, 10_000).request["messages"]
    assert repaired[2] == result("c1", "ran")
    assert len(repaired) == 4


# --- D10 ------------------------------------------------------------------------------------------


@pytest.mark.row("D10")
@pytest.mark.parametrize("format", FORMATS)
def test_where_nothing_can_be_cut_an_error_says_so_at_once(format: str) -> None:
    request = session(format, steps=1, lines=1)
    pins = [lambda block: True]
    started = time.process_time()
    with pytest.raises(CannotFit) as caught:
        fit(request, 5, settings=trimtab.Settings(pins=pins))
    assert time.process_time() - started < 2
    assert caught.value.limit == "window"
    assert caught.value.minimum > 5
    assert str(caught.value.minimum) in str(caught.value).replace(",", "")
    with pytest.raises(CannotFit):
        fit(request, caught.value.minimum - 1, settings=trimtab.Settings(pins=pins))


@pytest.mark.row("D10")
def test_asking_again_and_again_makes_no_progress_and_no_loop() -> None:
    request = body(user("x" * 30_000))
    fitted = smallest(request)
    for _ in range(20):
        again = fit(fitted.request, fitted.report.tokens_after)
        assert again.request is fitted.request
    assert json.dumps(fitted.request)
