"""Gemini generateContent: read, repaired and made to fit, judged by judge_gemini.py.

Knows the public API and the wire format.  Recorded requests are in tests/data.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import histories
import judge_gemini as judge
import pytest
import unreadable
from hard_cases import CASES, conversation
from hypothesis import assume, event, given
from hypothesis import strategies as st
from law_tools import SHARES, attempt, fit, tried
from settings_words import as_keywords
from sizes import o200k
from soak.writers_more import snaked

import trimtab
from trimtab import CannotFit, formats

Story = tuple[Any, str | None]
GEMINI_3 = "gemini-3-pro-preview"


def contents_of(request: Any) -> Any:
    return request["contents"] if isinstance(request, dict) else request


def user(*parts: Any) -> Any:
    return {"role": "user", "parts": [{"text": p} if isinstance(p, str) else p for p in parts]}


def model(*parts: Any) -> Any:
    return {**user(*parts), "role": "model"}


def call(name: str, *, id: str | None = None, signed: bool = True, **args: Any) -> Any:
    inner = {"name": name, "args": args} | ({"id": id} if id else {})
    return {"functionCall": inner} | ({"thoughtSignature": "c2ln"} if signed else {})


def response(name: str, text: str = "done", *, id: str | None = None) -> Any:
    inner = {"name": name, "response": {"result": text}} | ({"id": id} if id else {})
    return {"functionResponse": inner}


def rules_of(request: Any, model: str | None = None) -> set[str]:
    found = {found.rule for found in trimtab.check(request, format="gemini", model=model)}
    return found - {"unknown_role"}  # of the shape; here it is invalid_role, which is repaired


# --- the seven hard cases -------------------------------------------------------------------------


def hard_case(name: str, ids: bool) -> list[Any]:
    """The Anthropic conversation of that name, part by part in Gemini's words."""
    names: dict[str, str] = {}
    contents = []
    for message in conversation(name, "anthropic"):
        blocks = message["content"]
        blocks = [{"type": "text", "text": blocks}] if isinstance(blocks, str) else blocks
        parts = []
        for block in blocks:
            if block["type"] == "text":
                parts.append({"text": block["text"]})
            elif block["type"] == "tool_use":
                names[block["id"]] = block["name"]
                parts.append(call(block["name"], id=block["id"] if ids else None, **block["input"]))
            else:
                own = block["tool_use_id"]
                tool = names.get(own, "Lost")
                parts.append(response(tool, block["content"], id=own if ids else None))
        contents.append({"role": "model" if message["role"] == "assistant" else "user",
                         "parts": parts})  # fmt: skip
    return contents


@pytest.mark.parametrize("ids", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize("name", CASES)
def test_a_hard_case_is_valid_and_fits_a_quarter_of_its_size(name: str, ids: bool) -> None:
    request = {"contents": hard_case(name, ids)}
    untouched = copy.deepcopy(request)
    budget = judge.tokens(request) // 4
    fitted = trimtab.fit(
        request, window=budget, model=GEMINI_3, settings=trimtab.Settings(counter="o200k")
    )
    assert fitted.report.format == "gemini"
    assert judge.problems(fitted.request, GEMINI_3) == []
    assert trimtab.check(fitted.request, model=GEMINI_3) == ()
    assert judge.tokens(fitted.request) <= budget
    assert request == untouched
    assert fitted.report.edits


# --- made-up histories ----------------------------------------------------------------------------


@given(histories.of("gemini", "legal"))
def test_legal_histories_are_legal_and_come_back_as_the_same_object(story: Story) -> None:
    request, name = story
    before = copy.deepcopy(request)
    assert judge.problems(request, name) == []
    fitted = trimtab.fit(
        request,
        window=10**7,
        format="gemini",
        model=name,
        settings=trimtab.Settings(counter="o200k"),
    )
    assert fitted.request is request
    assert request == before
    assert trimtab.fit(json.dumps(request), window=10**7, model=name).report.format == "gemini"


@given(histories.of("gemini"))
def test_the_library_and_the_judge_agree_on_problems_and_sizes(story: Story) -> None:
    request, name = story
    found = trimtab.check(request, format="gemini", model=name)
    assert bool(found) == bool(judge.problems(request, name)), found
    fitted = trimtab.fit(
        request,
        window=10**7,
        format="gemini",
        model=name,
        settings=trimtab.Settings(counter="o200k"),
    )
    if not unreadable.problems(request):
        assert fitted.report.tokens_before == judge.tokens(request)
    assert fitted.report.tokens_after == judge.tokens(fitted.request)


@given(histories.of("gemini", "broken"))
def test_a_broken_history_is_repaired_once_and_for_all(story: Story) -> None:
    request, name = story
    before = copy.deepcopy(request)
    fitted = trimtab.repair(request, format="gemini", model=name)
    assert judge.problems(fitted.request, name) == []
    assert trimtab.check(fitted.request, format="gemini", model=name) == ()
    assert request == before
    again = trimtab.repair(fitted.request, format="gemini", model=name)
    assert again.request is fitted.request
    assert again.report.repairs == ()


@given(histories.of("gemini", "broken"))
def test_nothing_the_user_or_a_tool_said_is_lost_by_repair(story: Story) -> None:
    request, name = story
    fitted = trimtab.repair(request, format="gemini", model=name)
    kept = json.dumps(fitted.request)
    taken = "".join(fitted.recall(r.handle) for r in fitted.report.repairs if r.handle)
    for content in contents_of(request):
        for part in content.get("parts") or []:
            text = part.get("text") and unreadable.as_sent(part["text"])
            if content.get("role") != "model" and text:
                assert json.dumps(text) in kept
            answer = part.get("functionResponse") or part.get("function_response")
            if answer and isinstance(answer["response"], dict):
                for value in map(unreadable.all_as_sent, answer["response"].values()):
                    dumped = json.dumps(value)
                    assert dumped in kept or json.dumps(value, ensure_ascii=False,
                                                        separators=(",", ":")) in taken  # fmt: skip


@given(histories.of("gemini"), SHARES)
def test_whatever_comes_in_what_goes_out_is_legal_and_fits(story: Story, share: float) -> None:
    request, name = story
    window = max(1, int(judge.tokens(request) * share))
    fitted = attempt(request, "gemini", window, model=name)
    if isinstance(fitted, CannotFit):
        event("cannot fit")
        assert (fitted.limit, window < fitted.minimum) == ("window", True)
        window = fitted.minimum
        fitted = fit(request, "gemini", window, model=name)
    event(f"edits: {bool(fitted.report.edits)}, repairs: {bool(fitted.report.repairs)}")
    assert judge.problems(fitted.request, name) == []
    assert judge.tokens(fitted.request) <= window
    assert fitted.report.tokens_after == judge.tokens(fitted.request)
    assert fitted.report.warnings == ()
    assert fit(fitted.request, "gemini", window, model=name).request == fitted.request
    signatures = [s for s in _signatures(fitted.request) if s != "skip_thought_signature_validator"]
    assert set(signatures) <= set(_signatures(request))


def _signatures(request: Any) -> list[str]:
    parts = [part for content in contents_of(request) for part in content.get("parts") or []]
    found = [p.get("thoughtSignature") or p.get("thought_signature") for p in parts]
    return [signature for signature in found if signature]


@given(histories.of("gemini"), st.sampled_from([2, 40, 300, 2_000]))
def test_the_size_of_each_response_is_met_and_it_stays_an_object(story: Story, chars: int) -> None:
    request, name = story
    more: Any = {"format": "gemini", "model": name, "window": 10**7}
    fitted = trimtab.fit(request, **as_keywords(result_chars=chars, **more))
    assert judge.problems(fitted.request, name) == []
    assert max(judge.result_chars(fitted.request), default=0) <= chars


@given(histories.of("gemini"), st.sampled_from([0, 1]))
def test_images_inside_responses_give_way_to_files_of_plain_text(story: Story, most: int) -> None:
    request, name = story
    more: Any = {"format": "gemini", "model": name, "window": 10**7}
    fitted = trimtab.fit(request, **as_keywords(images=most, **more))
    assert judge.problems(fitted.request, name) == []
    assert judge.images(fitted.request) <= most


@given(histories.of("gemini"), SHARES)
def test_what_is_added_is_spelled_as_the_request_is(story: Story, share: float) -> None:
    request, name = story
    window = max(1, int(judge.tokens(request) * share))
    sent = tried(request, "gemini", window, model=name)
    assume(sent is not None)
    keys = {
        key for content in contents_of(request) for p in content.get("parts") or [] for key in p
    }
    new = {
        key for content in contents_of(sent.request) for part in content["parts"] for key in part
    }
    snake = {"function_call", "function_response", "inline_data"} & keys
    if snake:
        assert not {"functionCall", "functionResponse", "thoughtSignature", "inlineData"} & new
    if {"functionCall", "functionResponse"} & keys:
        assert not {"function_call", "function_response", "thought_signature"} & new


# --- one request for each refusal that is on record -----------------------------------------------

TASK = user("Read both files.")
PAIR = [TASK, model(call("read", id="a")), user(response("read", id="a"))]
PROVOKING: dict[str, tuple[str | None, Any, str]] = {
    "too few responses": (
        None, [TASK, model(call("read"), call("read")), user(response("read"))], "call_unanswered",
    ),
    "no response at the end": (None, [TASK, model(call("read"))], "call_unanswered"),
    "too many responses": (
        None, [*PAIR[:2], user(response("read", id="a"), response("read"))], "extra_result",
    ),
    "responses in contents of their own": (
        None,
        [TASK, model(call("a"), call("b")), user(response("a")), user(response("b"))],
        "result_late",
    ),
    "words before the response": (
        None, [*PAIR[:2], user("Wait."), user(response("read", id="a"))], "result_late",
    ),
    "a call comes first": (None, PAIR[1:], "call_order"),
    "a response comes first": (None, [user(response("read")), TASK], "orphan_result"),
    "a response after words": (
        None, [TASK, model("Hello."), user(response("read"))], "orphan_result",
    ),
    "a call without its signature": (
        GEMINI_3,
        [TASK, model(call("read", signed=False)), user(response("read"))],
        "signature_missing",
    ),
    "the second step without its signature": (
        "models/gemini-3.1-flash",
        [*PAIR, model(call("read", signed=False)), user(response("read"))],
        "signature_missing",
    ),
    "empty parts": (None, [TASK, model("Hi."), {"role": "user", "parts": []}], "no_parts"),
    "no parts": (None, [TASK, model("Hi."), {"role": "user"}], "no_parts"),
    "a part without data": (None, [user("Hi.", {})], "empty_part"),
    "a part whose data is null": (None, [user("Hi.", {"text": None})], "empty_part"),
    "an empty text beside a response": (
        None, [*PAIR[:2], user(response("read", id="a"), "")], "empty_beside_response",
    ),
    "no contents": (None, {"contents": []}, "no_messages"),
    "a role of another provider": (None, [TASK, {**model("Hi."), "role": "assistant"}, TASK],
                                   "invalid_role"),
    "a list for a response": (
        None,
        [*PAIR[:2], user({"functionResponse": {"id": "a", "name": "read", "response": ["x"]}})],
        "response_not_object",
    ),
    "the model's words last": (GEMINI_3, [TASK, model("Hello.")], "last_not_user"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVOKING)
def test_a_refused_request_breaks_exactly_its_rule_and_repair_makes_it_pass(name: str) -> None:
    generation, request, rule = PROVOKING[name]
    assert rules_of(request, generation) == {rule}
    assert judge.problems(request, generation) != []
    fitted = trimtab.repair(request, format="gemini", model=generation)
    assert rules_of(fitted.request, generation) == set()
    assert judge.problems(fitted.request, generation) == []


ACCEPTED: dict[str, tuple[str | None, Any]] = {
    "an empty text as the user's only part": (GEMINI_3, [user(""), *PAIR[1:]]),
    "a response and then the user's words": (GEMINI_3, [*PAIR, user("Go on.")]),
    "two contents of the model": (None, [TASK, model("Let me see."), *PAIR[1:]]),
    "an unsigned call before the newest words": (
        GEMINI_3,
        [TASK, model(call("read", signed=False)), user(response("read")), user("And now?")],
    ),
    "an unsigned call of an older model": (
        "gemini-2.5-pro", [TASK, model(call("read", signed=False)), user(response("read"))],
    ),
    "parallel calls of which the first is signed": (
        GEMINI_3,
        [TASK, model(call("a"), call("b", signed=False)), user(response("b"), response("a"))],
    ),
    "an id on the call alone": (None, [*PAIR[:2], user(response("read"))]),
    "a response under a shorter name": (
        None, [TASK, model(call("default_api:read")), user(response("read"))],
    ),
    "the model's words last, for an older model": ("gemini-2.5-pro", [TASK, model("Hello.")]),
    "an ordinary call before anything, where content is cached": (
        None, {"cachedContent": "cachedContents/1", "contents": PAIR[1:]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_the_provider_accepts_is_no_violation(name: str) -> None:
    generation, request = ACCEPTED[name]
    assert rules_of(request, generation) == set()
    assert judge.problems(request, generation) == []


# --- single decisions -----------------------------------------------------------------------------


def test_a_lost_signature_is_replaced_by_the_documented_sentinel_in_the_spelling_found() -> None:
    request = snaked([TASK, model(call("read", signed=False)), user(response("read"))])
    fitted = trimtab.repair(request, format="gemini", model=GEMINI_3)
    part = fitted.request[1]["parts"][0]
    assert part["thought_signature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in part


def test_a_synthetic_response_has_an_id_only_where_its_call_has_one() -> None:
    request = [TASK, model(call("read", id="a"), call("read"))]
    fitted = trimtab.repair(request, format="gemini")
    first, second = (part["functionResponse"] for part in fitted.request[2]["parts"])
    assert first["id"] == "a"
    assert "id" not in second
    assert "interrupted" in first["response"]["error"]


def test_open_calls_at_the_tip_are_accepted_only_where_the_caller_says_so() -> None:
    request = [*PAIR, model(call("read"), call("bash"))]
    assert rules_of(request) == {"call_unanswered"}
    assert trimtab.check(request, format="gemini", open_tail=True) == ()
    fitted = trimtab.fit(
        request, window=10**6, format="gemini", settings=trimtab.Settings(open_tail=True)
    )
    assert fitted.request is request


def test_parallel_responses_are_joined_in_one_content_and_the_users_words_stay_apart() -> None:
    request = [TASK, model(call("a"), call("b")), user(response("a")), user("Wait."),
               user(response("b"))]  # fmt: skip
    fitted = trimtab.repair(request, format="gemini")
    assert fitted.request[2:] == [user(response("a"), response("b")), user("Wait.")]


def test_an_object_of_many_keys_stays_an_object_when_it_is_cut_and_can_be_recalled() -> None:
    big = {"output": "line\n" * 4000, "exit_code": 1}
    answer = {"functionResponse": {"name": "bash", "response": big}}
    request = [TASK, model(call("bash")), user(answer)]
    fitted = trimtab.fit(
        request, window=600, format="gemini", settings=trimtab.Settings(counter="o200k")
    )
    shown = fitted.request[2]["parts"][0]["functionResponse"]["response"]
    assert list(shown) == ["result"]
    assert json.loads(fitted.recall(fitted.report.edits[0].handle)) == big


def test_the_note_of_dropped_steps_never_joins_a_function_response() -> None:
    contents = [TASK]
    for number in range(60):
        contents += [model(call("read", n=number)), user(response("read", f"row {number} " * 9))]
    window = judge.tokens(contents) // 8
    fitted = trimtab.fit(
        contents,
        window=window,
        format="gemini",
        model=GEMINI_3,
        settings=trimtab.Settings(counter="o200k"),
    )
    assert any(edit.op in ("drop", "fold") for edit in fitted.report.edits)
    for content in fitted.request:
        kinds = {"functionResponse" in part for part in content["parts"]}
        assert len(kinds) == 1, content


def test_a_call_that_stands_beside_results_does_not_go_with_their_step() -> None:
    stray = call("read", id="b", path="src/app.py")
    beside = user(response("bash", "row 1", id="a"), stray)
    contents = [TASK, model(call("bash", id="a")), beside, model("Done.")]
    format, _ = formats.find(contents, "gemini")
    transcript = formats.read(contents, format, model=None)
    for group in transcript.groups:
        for place in group.places:
            part = transcript.item(place)
            assert any(part[: len(item)] == item for item in group.items), part


def test_the_session_keeps_its_edits_when_the_client_appends() -> None:
    contents = [TASK]
    for number in range(20):
        contents += [model(call("read", n=number)), user(response("read", f"row {number} " * 60))]
    session = trimtab.Session(
        window=judge.tokens(contents) // 2,
        model=GEMINI_3,
        settings=trimtab.Settings(counter="o200k"),
    )
    sent = session.fit(contents).request
    contents = [*contents, model(call("read", n=99)), user(response("read", "short"))]
    later = session.fit(contents).request
    assert later[: len(sent)] == sent
    assert judge.problems(later, GEMINI_3) == []


def test_detection_tells_bare_contents_from_messages() -> None:
    assert trimtab.repair([user("Hi.")]).report.format == "gemini"
    assert trimtab.repair([{"role": "user", "content": "Hi."}]).report.format != "gemini"
    assert o200k()("Hi.") + 4 == judge.tokens([user("Hi.")])


# --- names and ids pair calls with responses, order only equals -----------------------------------


PAIRED = [
    ("names in another order", [call("read"), call("bash")],
     [response("bash", "B"), response("read", "R")], set()),
    ("equals in order", [call("read"), call("read")],
     [response("read", "1"), response("read", "2")], set()),
    ("an id on the call alone", [call("read", id="a"), call("bash")],
     [response("bash", "B"), response("read", "R")], set()),
    ("a name that no call has", [call("read"), call("bash")],
     [response("read", "R"), response("read", "R2")], {"call_unanswered", "extra_result"}),
    ("one call, and the response of another tool", [call("bash")],
     [response("read_file", "R")], {"call_unanswered", "extra_result"}),
    ("ids win over names", [call("read", id="a"), call("bash", id="b")],
     [response("bash", "A", id="a"), response("read", "B", id="b")], set()),
    ("no name at all", [call("read"), call("bash")],
     [response("", "?"), response("bash", "B")], set()),
]  # fmt: skip


@pytest.mark.parametrize(("calls", "responses", "broken"), [row[1:] for row in PAIRED],
                         ids=[row[0] for row in PAIRED])  # fmt: skip
def test_calls_and_responses_pair_by_id_then_by_name_and_by_order_only_among_equals(
    calls: Any, responses: Any, broken: set[str]
) -> None:
    request = {"contents": [user("go"), model(*calls), user(*responses), user("on")]}
    assert rules_of(request) == broken
    repaired = trimtab.repair(request)
    assert trimtab.check(repaired.request) == ()
    assert len(repaired.report.repairs) >= bool(broken)
    for to in ("openai-chat", "anthropic", "bedrock", "openai-responses"):
        converted = trimtab.convert(repaired.request, to=to).request
        assert trimtab.check(converted, format=to) == ()


def test_a_response_of_another_tool_is_taken_out_and_told_and_never_put_under_a_call() -> None:
    read, bash = call("read_file"), call("bash")
    request = {"contents": [
        user("go"), model(read, bash), user(response("bash", "B")),
        user("go on"), user(response("write_file", "W")),
    ]}  # fmt: skip
    repaired = trimtab.repair(request)
    names = [
        part["functionResponse"]["name"]
        for content in repaired.request["contents"]
        for part in content["parts"]
        if "functionResponse" in part
    ]
    assert sorted(names) == ["bash", "read_file"]
    handle = next(row.handle for row in repaired.report.repairs if row.handle)
    assert "W" in repaired.recall(handle)


def test_converted_results_stand_under_the_call_they_were_given_for() -> None:
    request = {"contents": [
        user("go"), model(call("read", id="a"), call("bash")),
        user(response("bash", "BASH"), response("read", "READ")), user("on"),
    ]}  # fmt: skip
    messages = trimtab.convert(request, to="openai-chat").request["messages"]
    called = {c["id"]: c["function"]["name"] for m in messages for c in m.get("tool_calls") or ()}
    said = {called[m["tool_call_id"]]: m["content"] for m in messages if m["role"] == "tool"}
    assert said == {"read": '{"result":"READ"}', "bash": '{"result":"BASH"}'}
