"""OpenAI Responses: items read, repaired and made to fit, judged by judge_responses.py.

Knows the public API and the item types.  Recorded requests are in tests/data.
"""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace
from typing import Any

import doubtful
import judge_responses as judge
import pytest
from hard_cases_responses import CASES, input_items
from histories import harmed
from responses_cases import (
    ACCEPTED,
    BROKEN,
    COMPUTER,
    SCREEN,
    SEARCH,
    Items,
    call,
    output,
    said,
    thought,
    user,
)
from wounds import items_of

import trimtab
import trimtab.formats.rules
from trimtab import CannotFit
from trimtab.formats import FORMATS
from trimtab.formats.rules import Repair
from trimtab.jsontext.paths import Delete


def rules_of(request: Any, **more: Any) -> set[str]:
    return {found.rule for found in trimtab.check(request, **more)}


@pytest.mark.parametrize(("what", "rule", "items", "rest"), BROKEN, ids=[c[0] for c in BROKEN])
def test_exactly_one_rule_is_broken_and_repair_makes_it_pass(
    what: str, rule: str, items: Items, rest: dict[str, Any]
) -> None:
    body = {"model": "gpt-5.5", **rest, "input": items}
    before = copy.deepcopy(body)
    (found, *_) = doubtful.found(body)
    assert found.rule == rule
    assert judge.problems(body) != []
    repaired = doubtful.repaired(body)
    assert judge.problems(repaired.tree) == []
    assert doubtful.found(repaired.tree) == []
    assert body == before
    assert {name for name, _ in repaired.repairs} >= {rule}
    fitted = trimtab.repair(body)
    assert fitted.request == (repaired.tree if found.certain else body)
    assert trimtab.repair(fitted.request).request is fitted.request
    raw = json.dumps(body).encode()
    assert json.loads(trimtab.repair(raw).request) == fitted.request


@pytest.mark.parametrize(("what", "items", "rest"), ACCEPTED, ids=[c[0] for c in ACCEPTED])
def test_what_is_accepted_comes_back_as_the_same_object(
    what: str, items: Items | str, rest: dict[str, Any]
) -> None:
    body = {"model": "gpt-5.5", **rest, "input": items}
    assert judge.problems(body) == []
    assert trimtab.check(body) == ()
    fitted = trimtab.fit(body, window=10**6, settings=trimtab.Settings(counter="o200k"))
    assert fitted.request is body
    assert fitted.report.format == "openai-responses"
    assert fitted.report.tokens_before == judge.tokens(body)


def test_calls_at_the_very_end_may_stay_open_before_the_tools_run() -> None:
    items = [user(), thought(), call("a", id="fc_1"), call("b", id="fc_2"), output("b")]
    assert trimtab.check(items, open_tail=True) == ()
    assert rules_of(items) == {"call_unanswered"}


def test_an_interrupted_call_is_answered_right_behind_its_siblings() -> None:
    items = [user(), call("a"), call("b"), output("a"), user()]
    sent = trimtab.repair(items).request
    assert [item.get("call_id") for item in sent] == [None, "a", "b", "b", "a", None]
    assert "interrupted" in sent[3]["output"]


def test_an_orphan_is_taken_out_without_a_word_and_can_be_recalled() -> None:
    items = [user(), output("gone", "precious"), user("And now?")]
    fitted = trimtab.repair(items)
    assert fitted.request == [items[0], items[2]]
    (repair,) = fitted.report.repairs
    assert json.loads(fitted.recall(repair.handle)) == items[1]


# --- which format it is ---------------------------------------------------------------------------

SHAPES: list[tuple[Any, str]] = [
    ({"input": "Hello"}, "openai-responses"),
    ({"input": [{"role": "user", "content": "x"}]}, "openai-responses"),
    ({"previous_response_id": "resp_1"}, "openai-responses"),
    ([user()], "openai-responses"),
    ([{"role": "developer", "content": "x"}, call(), output()], "openai-responses"),
    ([{"role": "user", "content": [{"type": "input_text", "text": "x"}]}], "openai-responses"),
    ({"messages": [{"role": "user", "content": "x"}], "input": "x"}, "openai-chat"),
    ([{"role": "developer", "content": "x"}, {"role": "user", "content": "y"}], "openai-chat"),
]


@pytest.mark.parametrize(("request_", "format"), SHAPES)
def test_the_shape_tells_the_format(request_: Any, format: str) -> None:
    assert trimtab.fit(request_, window=10**6).report.format == format


# --- making it fit --------------------------------------------------------------------------------


@pytest.mark.parametrize("thinking", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_a_hard_case_is_valid_and_fits_a_quarter_of_its_size(name: str, thinking: bool) -> None:
    items = input_items(name, thinking=thinking)
    untouched = copy.deepcopy(items)
    budget = judge.tokens(items) // 4
    fitted = trimtab.fit(items, window=budget, settings=trimtab.Settings(counter="o200k"))
    assert judge.problems(fitted.request) == []
    assert judge.thought_problems(items, fitted.request) == []
    assert trimtab.check(fitted.request) == ()
    assert judge.tokens(fitted.request) == fitted.report.tokens_after <= budget
    assert items == untouched
    assert fitted.report.edits


def test_old_reasoning_goes_together_with_the_ids_that_demand_it() -> None:
    items = [user("Do it.")]
    for n in range(3):
        items += [thought(f"rs_{n}", encrypted_content="gAAA" * 600), said(id=f"msg_{n}")]
        items += [call(f"c{n}", id=f"fc_{n}"), output(f"c{n}")]
    window = judge.tokens(items) - 300
    whole = (lambda block: block.kind == "result",)
    fitted = trimtab.fit(
        items, window=window, settings=trimtab.Settings(counter="o200k", pins=whole)
    )
    assert judge.thought_problems(items, fitted.request) == []
    removed = [edit for edit in fitted.report.edits if edit.op == "remove"]
    assert len(removed) in (1, 2)
    assert len(removed[0].paths) == 3
    kept = [item for item in fitted.request if item["type"] == "reasoning"]
    assert items[9] in kept  # the latest step's
    assert json.loads(fitted.recall(removed[0].handle))["type"] == "reasoning"


def test_a_dropped_step_leaves_no_id_behind_that_demands_its_reasoning() -> None:
    step = [thought("rs_1"), call("a", id="fc_1"), output("a", "word " * 4_000)]
    late = [call("b", id="fc_2"), output("b"), said(id="msg_3")]
    items = [user("Do it."), *step, *late, user(), said(), user(), call("z"), output("z")]
    fitted = trimtab.fit(items, window=260, settings=trimtab.Settings(counter="o200k"))
    assert judge.problems(fitted.request) == []
    assert judge.thought_problems(items, fitted.request) == []


@pytest.mark.parametrize(
    ("items", "left"),
    [
        ([thought(), call(id="fc_1"), thought(), output()], ["rs_1", "fc_1"]),
        ([thought(), user("Stop."), thought(), call(id="fc_1"), output()], ["rs_1", "fc_1"]),
        ([call(id="fc_1"), output(), thought(), call(id="fc_1")], ["rs_1", "fc_1"]),
    ],
    ids=["the copy leads nothing", "the first leads nothing", "the copy has its reasoning"],
)
def test_of_two_copies_the_one_that_stands_with_its_other_half_stays(
    items: list[Any], left: list[str]
) -> None:
    sent = trimtab.repair({"input": items}).request["input"]
    assert [item["id"] for item in sent if item.get("id")] == left


def test_a_search_whose_reasoning_is_taken_out_gets_another_id() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2ln"}
    note = {"type": "message", "role": "system", "content": "Be brief."}
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed",
              "action": {"type": "search", "query": "trim tabs"}}  # fmt: skip
    request = {
        "model": "gpt-5.1",
        "input": [{"role": "user", "content": "Go."}, thought, note, search],
    }
    done = doubtful.repaired(request).tree
    assert doubtful.found(done) == []
    *_, sent = done["input"]
    assert sent == {**search, "id": sent["id"]}
    assert sent["id"].startswith("ws_1_")
    assert "rs_1" not in str(done)


def test_what_stood_behind_a_copy_of_reasoning_alone_is_sent_without_its_id() -> None:
    step = [thought("rs_1"), call("a", id="fc_1"), output("a")]
    told = [user("Do it."), *step, said("Done.", id="msg_1"), user(), *step]
    told += [said("word " * 90, id="msg_2"), user(), call("z"), output("z")]
    sent = trimtab.repair(told).request
    assert [item["id"] for item in sent if "id" in item] == ["rs_1", "fc_1", "msg_1"]
    least = judge.tokens(told) // 4
    for window in range(least, judge.tokens(told), 20):
        try:
            sent = trimtab.fit(
                told, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
            ).request
        except CannotFit:
            continue
        assert judge.problems(sent) == []
        assert judge.thought_problems(told, sent) == []


def test_a_note_never_parts_a_call_from_its_reasoning_whatever_stands_between_them() -> None:
    told = {"type": "message", "role": "developer", "content": "Be brief."}
    for between in ([told, output("gone")], [output("gone"), told], [told]):
        items = [user(), thought("rs_1"), *between, call("a", id="fc_1"), output("a")]
        kept = trimtab.repair(items).request
        assert thought("rs_1") in kept, "nobody has refused it"
        sent = doubtful.repaired(items).tree
        assert judge.problems(sent) == []
        assert judge.thought_problems(items, sent) == []
        assert told in sent


def test_of_copies_behind_different_reasoning_the_one_that_stays_is_sent_without_its_id() -> None:
    items = [user(), thought("rs_1"), call("a", id="fc_1"), thought("rs_2"), call("a", id="fc_1")]
    for told in ([*items, output("a")], [*items, output("a"), said(id="msg_1")]):
        sent = trimtab.repair(told).request
        assert judge.problems(sent) == []
        assert judge.thought_problems(told, sent) == []
        assert [item.get("id") for item in sent if item["type"] == "function_call"] == [None]


@pytest.mark.row("X1")
def test_a_note_in_the_users_last_message_takes_none_of_the_room_the_next_time() -> None:
    items = [user("Begin."), said("word " * 900), user("Now the rest.")]
    for number in range(10):
        items += [call(f"c{number}"), output(f"c{number}"), said("So.")]
    for window in range(1_190, judge.tokens(items), 3):
        fitted = trimtab.fit(
            items, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
        )
        assert {"drop", "fold"} & {edit.op for edit in fitted.report.edits}
        again = trimtab.fit(
            fitted.request, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
        )
        assert again.request is fitted.request


def test_reasoning_of_deepseek_and_of_items_that_must_keep_their_id_stays() -> None:
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}
    for model, made in (("deepseek-v4", call("a")), ("gpt-5.5", search)):
        answer = [output("a", "word " * 500)] if made is not search else []
        items = [user(), thought(encrypted_content="gAAA" * 900), made, *answer, user("next")]
        items += [call("z"), output("z", "word " * 3_000)]
        body = {"model": model, "input": items}
        window = judge.tokens(body) - 2_000
        kept = [lambda block: block.call_id == "a"]  # its step is not dropped as a whole
        fitted = trimtab.fit(
            body, window=window, settings=trimtab.Settings(counter="o200k", pins=kept)
        )
        assert items[1] in fitted.request["input"]


def test_a_user_message_inside_a_dropped_step_stays() -> None:
    middle = user("By the way, keep this.")
    items = [user("Start."), call("a"), middle, output("a", "word " * 3_000), said(), user("Go")]
    items += [call("z"), output("z")]
    fitted = trimtab.fit(items, window=200, settings=trimtab.Settings(counter="o200k"))
    assert middle in fitted.request
    assert judge.problems(fitted.request) == []


def test_a_text_as_input_is_cut_as_the_last_rung_and_its_ends_stay() -> None:
    body = {"model": "gpt-5.5", "input": "Summarize this. " + "word " * 9_000 + "The end."}
    fitted = trimtab.fit(body, window=1_000, settings=trimtab.Settings(counter="o200k"))
    assert judge.tokens(fitted.request) == fitted.report.tokens_after <= 1_000
    assert fitted.request["input"].startswith("Summarize this.")
    assert fitted.request["input"].endswith("The end.")
    (edit,) = fitted.report.edits
    assert edit.kind == "user-text"
    assert fitted.recall(edit.handle) == body["input"]
    minimum = fitted.report.minimum
    sent = trimtab.fit(body, window=minimum, settings=trimtab.Settings(counter="o200k")).request
    assert judge.tokens(sent) == minimum
    with pytest.raises(CannotFit):
        trimtab.fit(body, window=minimum - 1, settings=trimtab.Settings(counter="o200k"))


def test_unknown_and_server_made_items_are_never_touched() -> None:
    kept = [
        {"type": "dream", "of": "sheep " * 50},
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA" * 50},
        {"type": "additional_tools", "role": "developer", "tools": [{"type": "custom"}]},
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "x", "tools": []},
    ]
    items = [user(), *kept, call(), output("c1", "word " * 3_000), user()]
    fitted = trimtab.fit(
        items, window=judge.tokens(items) // 2, settings=trimtab.Settings(counter="o200k")
    )
    assert all(any(item is sent for sent in fitted.request) for item in kept)
    assert judge.problems(fitted.request) == []


def test_a_picture_in_an_output_becomes_a_text_and_a_screenshot_stays() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 9_000}
    shot = {"type": "computer_call_output", "call_id": "c1", "output": SCREEN}
    items = [user(), COMPUTER, call("p"), shot, output("p", [picture]), user()]
    fitted = trimtab.fit(
        items, window=2_000, preset="in-place", settings=trimtab.Settings(counter="o200k")
    )
    assert fitted.request[4]["output"][0]["type"] == "input_text"
    assert fitted.request[3] is shot


def test_tool_definitions_in_use_are_kept_and_unused_ones_may_go() -> None:
    tools = [{"type": "function", "name": "rate", "description": "word " * 2_000}]
    found = {"type": "tool_search_output", "call_id": "c1", "execution": "client", "tools": tools}
    for used in (True, False):
        later = [call("r", name="rate"), output("r")] if used else [said("No need.")]
        items = [user(), SEARCH, found, user("next"), *later, user(), call("z"), output("z")]
        fit = trimtab.fit
        if used:
            with pytest.raises(CannotFit):
                fit(items, window=1_000, settings=trimtab.Settings(counter="o200k"))
        else:
            sent = fit(items, window=1_000, settings=trimtab.Settings(counter="o200k")).request
            assert found not in sent
            assert judge.problems(sent) == []


# --- any history ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_whatever_comes_in_what_goes_out_is_legal_and_fits(seed: int) -> None:
    for number in range(8):
        random_ = random.Random(seed * 1_000 + number)
        model = random_.choice(["gpt-5.5", "gpt-5.5", "deepseek-v4"])
        told = harmed((seed, number), "openai-responses").request
        body = {"model": model, "input": items_of(told)}
        before = copy.deepcopy(body)
        assert (judge.problems(body) == []) == (doubtful.found(body) == []), body
        body = doubtful.repaired(body).tree
        before = copy.deepcopy(body)
        window = max(50, int(judge.tokens(body) * random_.choice([0.1, 0.3, 0.6, 0.9, 1.5])))
        try:
            fitted = trimtab.fit(
                body,
                window=window,
                reserve=0,
                settings=trimtab.Settings(counter="o200k", strict=False),
            )
        except CannotFit as error:
            window = error.minimum
            fitted = trimtab.fit(
                body, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
            )
        assert body == before
        assert fitted.report.warnings == ()
        assert judge.problems(fitted.request) == [], (seed, number)
        assert judge.tokens(fitted.request) == fitted.report.tokens_after <= window
        again = trimtab.fit(
            fitted.request, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
        )
        assert again.request is fitted.request


def test_a_session_keeps_its_edits_and_only_appends() -> None:
    items = input_items("long trace", thinking=True)
    session = trimtab.Session(
        window=judge.tokens(items) // 3, settings=trimtab.Settings(counter="o200k")
    )
    sent: Items = []
    for end in range(4, len(items) + 1, 3):
        if judge.problems(items[:end]):
            continue
        fitted = session.fit(items[:end])
        assert judge.problems(fitted.request) == []
        assert judge.thought_problems(items[:end], fitted.request) == []
        if not any(edit.new for edit in fitted.report.edits):
            assert fitted.request[: len(sent)] == sent
        sent = fitted.request
    assert len(sent) < len(items)


def test_another_item_under_a_taken_id_leaves_the_reasoning_of_the_first_as_it_was() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAAx"}

    def named(call_id: str, arguments: str) -> dict[str, Any]:
        call = {"type": "function_call", "id": "fc_1", "call_id": call_id, "name": "read"}
        return {**call, "arguments": arguments}

    def output(call_id: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call_id, "output": "ok"}

    asked = {"type": "message", "role": "user", "content": "Look."}
    first, other = named("a", "{}"), named("b", '{"n": 1}')
    bare = {key: value for key, value in other.items() if key != "id"}
    beside = {"model": "gpt-5.1", "input": [asked, thought, first, other, output("a"), output("b")]}
    sent = trimtab.repair(beside).request
    assert sent["input"] == [asked, thought, first, bare, output("a"), output("b")]
    # Reasoning that demands the very item which loses its id goes, whole and recallable.
    second = {**thought, "id": "rs_2"}
    apart = {
        "model": "gpt-5.1",
        "input": [asked, thought, first, output("a"), second, other, output("b")],
    }
    repaired = trimtab.repair(apart)
    assert repaired.request["input"] == [asked, thought, first, output("a"), bare, output("b")]
    (repair,) = repaired.report.repairs
    assert json.loads(repaired.recall(repair.handle)) == second


def test_an_item_that_has_no_id_loses_none_when_another_under_its_reasoning_does() -> None:
    items = [
        user(), thought("rs_1"), call("c1", id="fc_1"), output("c1"),
        thought("rs_2"), call("c2", id="fc_1", arguments='{"n": 2}'),
        output("c2"), said(), user(),
    ]  # fmt: skip
    done = trimtab.repair({"model": "gpt-5.1", "input": items})
    assert done.report.warnings == ()
    assert not trimtab.check(done.request)


def test_a_repair_that_fails_half_way_leaves_nothing_behind(monkeypatch: Any) -> None:
    body = {"model": "gpt-5.1", "input": [user(), call("c1"), user()]}
    format = FORMATS["openai-responses"]

    def lost(transcript: Any, tree: Any, found: Any) -> Any:
        yield Repair(found[0].path, "this place does not exist", (Delete(("input", 99)),))

    rows = tuple(replace(row, make_repairs=lost) for row in format.rules.rows)
    broken = replace(format, rules=replace(format.rules, rows=rows))
    monkeypatch.setitem(FORMATS, "openai-responses", broken)
    done = trimtab.fit(body, window=100_000)
    assert "LookupError" in done.report.warnings[0]
    assert done.request == body
