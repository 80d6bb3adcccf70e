"""Bedrock Converse: read, checked, repaired and fitted; judged by judge_bedrock and by botocore.

Every row of the rule table is provoked once by a minimal request.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import doubtful
import histories
import judge_bedrock as judge
import pytest
from converse import (
    IMAGE,
    MODELS,
    POINT,
    body,
    document,
    from_anthropic,
    model,
    result,
    text,
    thought,
    use,
    user,
)
from hard_cases import CASES, conversation
from hypothesis import given
from hypothesis import strategies as st
from settings_words import as_keywords

import trimtab
from trimtab import CannotFit
from trimtab.formats import FORMATS

CLAUDE, CLAUDE_46, CLAUDE_55, NOVA, KIMI, LLAMA, MISTRAL, DEEPSEEK = MODELS
BODIES = histories.of("bedrock", "harmed").map(
    lambda found: {"modelId": found[1], "messages": found[0]}
    if isinstance(found[0], list) else found[0]
)  # fmt: skip
ASK, ANSWER = user(text("read a.py")), model(text("It is a parser."))
CALLED, ANSWERED = model(use("t1")), user(result("t1"))
PAIR = (ASK, CALLED, ANSWERED)
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


def refused(request: Any) -> list[str]:
    """Why the two judges would not take it."""
    return judge.problems(request) + judge.parameter_problems(request)


def fit(request: Any, window: int, **more: Any) -> Any:
    return trimtab.fit(request, **as_keywords(window=window, reserve=0, counter="o200k", **more))


# --- what the provider refuses --------------------------------------------------------------------

PROVOKING: list[tuple[str, dict[str, Any]]] = [
    ("content_not_list", body({"role": "user", "content": "hello"})),
    ("no_messages", body()),
    ("misplaced_part", body(user(text("look"), use("t9")))),
    ("arguments_not_object", body(ASK, model(use("t1", "{}")), ANSWERED)),
    ("id_format", body(ASK, model(use("t 1")), user(result("t 1")))),
    ("name_format", body(ASK, model(use("t1", tool="mcp.read")), ANSWERED)),
    ("name_format", body(ASK, model(use("t1", tool="x" * 65)), ANSWERED)),
    ("result_not_list", body(ASK, CALLED, user({"toolResult": {"toolUseId": "t1"}}))),
    ("json_not_object", body(ASK, CALLED, user(result("t1", {"json": [1]})))),
    ("reasoning_unsigned", body(ASK, model(thought("hm", None), text("yes")), ASK)),
    ("reasoning_unsigned", body(ASK, model(thought("hm", None), text("y")), ASK, modelId=DEEPSEEK)),
    ("stray_mark", body(user(POINT, text("hello")))),
    ("stray_mark", body(ASK, model(thought("hm"), POINT, text("yes")), ASK)),
    ("stray_mark", body(user(text("see"), document("csv"), POINT))),
    ("blank_text", body(user(text("hello"), text(" \n")))),
    ("no_content", body(ASK, model(), ASK)),
    ("roles_alternate", body(ASK, ASK)),
    ("roles_alternate", body(ASK, ANSWER, ANSWER, ASK)),
    ("server_orphan", body(ASK, model(result("s1"), text("found")), ASK)),
    ("duplicate_call", body(ASK, model(use("t1"), use("t1")), user(result("t1"), result("t1")))),
    ("call_unanswered", body(ASK, CALLED, user(text("and?")))),
    ("call_unanswered", body(ASK, CALLED)),
    ("result_late", body(ASK, CALLED, user(text("here"), result("t1")))),
    ("orphan_result", body(ASK, ANSWER, user(result("t1")))),
    ("orphan_result", body(*PAIR[:2], user(result("t1"), result("t9")))),
    ("duplicate_result", body(*PAIR[:2], user(result("t1"), result("t1")))),
    ("empty_error_result", body(*PAIR[:2], user({"toolResult": {
        "toolUseId": "t1", "content": [], "status": "error"}}))),
    ("empty_result", body(*PAIR[:2], user({"toolResult": {"toolUseId": "t1", "content": []}}),
                          modelId=NOVA)),
    ("file_beside_result", body(*PAIR[:2], user(result("t1"), text("see"), document("csv")))),
    ("mixed_turn", body(*PAIR[:2], user(result("t1"), text("go on")), modelId=LLAMA)),
    ("mixed_turn", body(*PAIR[:2], user(result("t1"), IMAGE), modelId=MISTRAL)),
    ("mixed_turn", body(ASK, model(text("I look."), use("t1")), ANSWERED, modelId=LLAMA)),
    ("document_without_text", body(user(document("pdf")))),
    ("too_many_marks", body(user(*[text("part"), POINT] * 4), system=[text("Be brief."), POINT])),
    ("first_not_user", body(ANSWER, ASK)),
    ("thinking_missing", body(*PAIR, additionalModelRequestFields=THINKING)),
    ("last_not_user", body(ASK, ANSWER, modelId=CLAUDE_46)),
    ("last_not_user", body(ASK, ANSWER, modelId=LLAMA)),
    ("empty_system", body(ASK, system=[text("")])),
    ("toolconfig_missing", body(*PAIR, toolConfig=None)),
    ("toolconfig_missing", body(*PAIR, toolConfig={"tools": []})),
    ("toolconfig_empty", body(ASK, toolConfig={"tools": []})),
]  # fmt: skip
NAMES = [f"{rule}-{number}" for number, (rule, _) in enumerate(PROVOKING)]
UNQUOTED = {"empty_result"}
"""Reported as refused, but nobody wrote down in which words; the judge does not know it."""


@pytest.mark.parametrize(("rule", "request_"), PROVOKING, ids=NAMES)
def test_a_minimal_request_breaks_exactly_its_rule_and_repair_repairs_it(
    rule: str, request_: Any
) -> None:
    untouched = copy.deepcopy(request_)
    found = doubtful.found(request_)
    assert {violation.rule for violation in found} == {rule}
    says = next(row.error_text for row in FORMATS["bedrock"].rules.rows if row.name == rule)
    assert all(says in violation.message for violation in found)
    assert refused(request_) or rule in UNQUOTED
    repaired = doubtful.repaired(request_)
    assert refused(repaired.tree) == []
    assert doubtful.found(repaired.tree) == []
    assert repaired.repairs
    certain = [violation for violation in found if violation.certain]
    assert list(trimtab.check(request_)) == certain
    assert bool(trimtab.repair(request_).report.repairs) == bool(certain)
    assert request_ == untouched


def test_every_row_of_the_table_is_provoked() -> None:
    rows = [row.name for row in FORMATS["bedrock"].rules.rows]
    elsewhere = {"unreadable_text", "result_id_case"}  # tests/unit/formats has those of all formats
    elsewhere |= {"mark_order", "nested_mark"}
    elsewhere |= {row for row in rows if row.startswith("system_")}
    assert sorted({rule for rule, _ in PROVOKING}) == sorted(set(rows) - elsewhere)


@pytest.mark.parametrize(
    "request_",
    [
        body(*PAIR[:2], user({"toolResult": {"toolUseId": "t1", "content": []}})),
        body(*PAIR[:2], user(result("t1", text("")))),
        body(*PAIR[:2], user(result("t1"), text("go on"))),
        body(*PAIR[:2], user(result("t1"), text("go on")), modelId=NOVA),
        body(*PAIR[:2], user(result("t1"), text("see"), document("csv")), modelId=NOVA),
        body(ASK, model(text("I look."), use("functions.read:0")),
             user(result("functions.read:0")), modelId=KIMI),
        body(ASK, ANSWER),
        body(*PAIR, ANSWER, modelId=NOVA),
        [ASK, CALLED, ANSWERED],
    ],
)  # fmt: skip
def test_what_was_taken_in_public_is_no_violation(request_: Any) -> None:
    assert trimtab.check(request_, format="bedrock") == ()
    assert trimtab.repair(request_, format="bedrock").request is request_


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1%3A0", "bedrock-anthropic"),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/ab12", None),
        (None, None),
        ("amazon.nova-micro-v1:0", "bedrock-nova"),
        ("us.meta.llama4-maverick-17b-instruct-v1:0", "bedrock-llama"),
        ("mistral.pixtral-large-2502-v1:0", "bedrock-mistral"),
        ("openai.gpt-oss-120b-1:0", "bedrock-other"),
        ("moonshot.kimi-k2-thinking", "bedrock-other"),
    ],
)
def test_the_model_id_names_the_family(name: str | None, dialect: str | None) -> None:
    from trimtab.formats.bedrock import format as bedrock

    facts = bedrock.read_facts({"modelId": name, "messages": []}, None)
    assert facts.dialect == (dialect or "bedrock-anthropic")


@given(BODIES)
def test_check_agrees_with_the_judges_and_repair_is_clean_and_idempotent(
    request_: dict[str, Any],
) -> None:
    untouched = copy.deepcopy(request_)
    assert bool(doubtful.found(request_)) == bool(_beside_media(refused(request_)))
    repaired = doubtful.repaired(request_).tree
    assert request_ == untouched
    assert _beside_media(refused(repaired)) == []
    assert trimtab.check(repaired) == ()
    assert trimtab.repair(repaired).request is repaired


def _beside_media(found: list[str]) -> list[str]:
    """Without the number of images, which fit meets and repair does not."""
    return [problem for problem in found if not problem.startswith("too many images")]


@given(BODIES, st.floats(0, 1))
def test_whatever_fits_is_valid_and_within_any_window_above_the_minimum(
    request_: dict[str, Any], share: float
) -> None:
    request_ = doubtful.repaired(request_).tree
    whole = fit(request_, 10**9)
    minimum = whole.report.minimum
    window = int(minimum + share * (judge.tokens(whole.request) - minimum))
    fitted = fit(request_, max(window, 1))
    assert refused(fitted.request) == []
    assert judge.tokens(fitted.request) == fitted.report.tokens_after <= window
    assert not [warning for warning in fitted.report.warnings if "fell back" in warning]
    if not any(edit.kind == "media" for edit in fitted.report.edits):
        # The text in place of an image counts as the user's next time, which moves the target.
        assert fit(fitted.request, max(window, 1)).request == fitted.request


# --- the hard cases -------------------------------------------------------------------------------


@pytest.mark.parametrize("name_", [None, CLAUDE_55, NOVA, LLAMA])
@pytest.mark.parametrize("name", CASES)
def test_a_hard_case_is_valid_and_fits_a_quarter_of_its_size(name: str, name_: str | None) -> None:
    messages = from_anthropic(conversation(name, "anthropic"))
    untouched = copy.deepcopy(messages)
    budget = judge.tokens(messages) // 4
    fitted = fit(messages, budget, format="bedrock", model=name_)
    assert judge.problems(fitted.request, name_) == []
    assert judge.parameter_problems(fitted.request, name_) == []
    assert trimtab.check(fitted.request, format="bedrock", model=name_) == ()
    assert judge.tokens(fitted.request) <= budget
    assert messages == untouched
    assert fitted.report.edits


@pytest.mark.parametrize("name", CASES)
def test_a_hard_case_as_json_text_keeps_what_it_does_not_name(name: str) -> None:
    request = body(*from_anthropic(conversation(name, "anthropic")), inferenceConfig={"topP": 0.50})
    spelled = json.dumps(request).replace("0.5", "0.50")
    fitted = fit(spelled, judge.tokens(request) // 4)
    assert refused(json.loads(fitted.request)) == []
    assert '"topP": 0.50' in fitted.request


# --- single matters -------------------------------------------------------------------------------


def test_a_synthetic_result_and_the_words_of_the_user_are_one_message() -> None:
    repaired = trimtab.repair(body(ASK, CALLED, user(text("and?"))))
    last = repaired.request["messages"][-1]["content"]
    assert [next(iter(block)) for block in last] == ["toolResult", "text"]


def test_where_words_and_results_may_not_mix_a_filler_keeps_them_apart() -> None:
    repaired = trimtab.repair(body(ASK, CALLED, ANSWERED, user(text("and?")), modelId=LLAMA))
    roles = [message["role"] for message in repaired.request["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert repaired.request["messages"][2] == ANSWERED


def test_words_before_a_call_become_a_turn_of_their_own_where_they_may_not_mix() -> None:
    repaired = trimtab.repair(
        body(ASK, model(text("I look."), use("t1")), ANSWERED, modelId=MISTRAL)
    )
    said = [m["content"] for m in repaired.request["messages"] if m["role"] == "assistant"]
    assert said == [[text("I look.")], [use("t1")]]


def test_tools_the_history_calls_are_declared_and_named() -> None:
    repaired = trimtab.repair(body(ASK, model(use("t1", tool="Grep")), ANSWERED, toolConfig=None))
    (tool,) = repaired.request["toolConfig"]["tools"]
    assert tool["toolSpec"]["name"] == "Grep"
    assert any("Grep" in repair.message for repair in repaired.report.repairs)


def test_a_tool_name_is_respelled_in_calls_declarations_and_choice_alike() -> None:
    spec = {"toolSpec": {"name": "mcp.read", "inputSchema": {"json": {}}}}
    config = {"tools": [spec], "toolChoice": {"tool": {"name": "mcp.read"}}}
    request = body(ASK, model(use("t1", tool="mcp.read")), ANSWERED, toolConfig=config)
    sent = trimtab.repair(request).request
    name = sent["messages"][1]["content"][0]["toolUse"]["name"]
    assert name.startswith("mcp_read_")
    assert sent["toolConfig"]["tools"][0]["toolSpec"]["name"] == name
    assert sent["toolConfig"]["toolChoice"]["tool"]["name"] == name


def test_an_orphan_taken_out_is_recallable() -> None:
    repaired = trimtab.repair(body(ASK, ANSWER, user(result("t1", text("gone")), text("go on"))))
    (repair,) = repaired.report.repairs
    assert json.loads(repaired.recall(repair.handle)) == result("t1", text("gone"))


def test_a_cache_point_of_a_dropped_step_goes_on_behind_the_note() -> None:
    steps: list[Any] = [user(text("fix the build"))]
    for number in range(30):
        steps += [model(use(f"t{number}", {"path": f"{number}.py"})),
                  user(result(f"t{number}", text("line of code\n" * 5)))]  # fmt: skip
    steps[10]["content"].append(POINT)
    request = body(*steps)
    fitted = fit(request, judge.tokens(request) // 3)
    assert refused(fitted.request) == []
    assert any(edit.op == "fold" for edit in fitted.report.edits)
    assert fitted.request["messages"][2]["content"][-1] == POINT


def test_a_json_result_becomes_a_text_and_the_original_is_recalled_as_json() -> None:
    rows = {"rows": [{"id": n, "name": f"user {n}", "ok": n % 2 == 0} for n in range(400)]}
    request = body(*PAIR[:2], user(result("t1", {"json": rows})))
    fitted = fit(request, judge.tokens(request) // 4)
    (item,) = fitted.request["messages"][2]["content"][0]["toolResult"]["content"]
    assert list(item) == ["text"]
    assert len(json.dumps(item)) < len(json.dumps({"json": rows}))
    (edit,) = fitted.report.edits
    assert json.loads(fitted.recall(edit.handle)) == {"json": rows}


def test_payloads_may_be_bytes_as_boto3_takes_them() -> None:
    picture = {"image": {"format": "png", "source": {"bytes": b"\x89PNG" * 400}}}
    sealed = {"reasoningContent": {"redactedContent": b"sealed" * 50}}
    request = body(user(text("look"), *[picture] * 3), model(sealed, text("ok")), ASK)
    fitted = fit(request, judge.tokens(request) - 1000)
    assert refused(fitted.request) == []
    assert fitted.report.bytes_after < fitted.report.bytes_before
    assert sum("image" in block for block in fitted.request["messages"][0]["content"]) < 3


def test_more_than_twenty_images_and_documents_are_too_many() -> None:
    request = body(user(text("compare"), *[IMAGE] * 21, document("pdf")))
    assert any("22 > 20" in problem for problem in judge.problems(request))
    fitted = fit(request, 10**6)
    assert judge.problems(fitted.request) == []
    assert judge.images(fitted.request) == 20


def test_a_tool_the_server_runs_is_paired_within_the_models_message() -> None:
    called = use("s1", {"snippet": "1+1"}, "nova_code_interpreter")
    called["toolUse"]["type"] = "server_tool_use"
    request = body(ASK, model(called, result("s1", {"json": {"out": "2"}}), text("2")), ASK,
                   modelId=NOVA, toolConfig=None)  # fmt: skip
    assert {violation.rule for violation in trimtab.check(request)} == {"toolconfig_missing"}
    sent = trimtab.repair(request).request
    assert sent["toolConfig"]["tools"] == [{"systemTool": {"name": "nova_code_interpreter"}}]
    assert sent["messages"] == request["messages"]


def test_reasoning_behind_an_edit_goes_where_the_model_binds_it() -> None:
    steps = [user(text("fix it")), model(thought("first"), use("t1")),
             user(result("t1", text("line\n" * 3000))), model(thought("then"), use("t2")),
             user(result("t2", text("short")))]  # fmt: skip
    for name, kept in ((CLAUDE, 2), (CLAUDE_55, 1), (KIMI, 2)):
        request = body(*steps, modelId=name)
        fitted = fit(request, judge.tokens(request) // 2)
        found = sum(
            "reasoningContent" in b for m in fitted.request["messages"] for b in m["content"]
        )
        assert found == kept, name
    asked = fit(
        body(*steps, modelId=CLAUDE_55), 2000, settings=trimtab.Settings(thinking="drop_block")
    ).request
    fields = asked["additionalModelRequestFields"]
    assert fields["thinking"]["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}


def test_a_last_user_text_stays_when_the_client_goes_on() -> None:
    session = trimtab.Session(window=10**6, reserve=0, settings=trimtab.Settings(counter="o200k"))
    first = session.fit(body(ASK, ANSWER, modelId=CLAUDE_46)).request
    added = first["messages"][-1]["content"]
    sent = session.fit(body(ASK, ANSWER, user(text("what else?")), modelId=CLAUDE_46)).request
    assert refused(sent) == []
    assert sent["messages"][-1]["content"] == [*added, text("what else?")]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ([ASK], "bedrock"),
        ({"modelId": "x", "messages": []}, "bedrock"),
        ({"system": [text("Be brief.")], "messages": [ASK]}, "bedrock"),
        ({"model": "claude-opus-4-5", "max_tokens": 9,
          "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
         "anthropic"),
        ([{"role": "user", "content": "hi"}], "openai-chat"),
    ],
)  # fmt: skip
def test_the_format_is_told_by_its_shape(request_: Any, expected: str) -> None:
    assert trimtab.measure(request_, counter="o200k").format == expected


def test_sizes_count_the_strings_the_model_reads() -> None:
    quoted = {"citationsContent": {"content": [text("cited words")], "citations": [{"title": "A"}]}}
    found = {"searchResult": {"source": "s", "title": "t", "content": [text("passage")],
                              "citations": {"enabled": True}}}  # fmt: skip
    paper = {"document": {"name": "n", "format": "txt", "source": {"text": "page " * 50}}}
    request = body(user(text("look"), found, paper, POINT), model(quoted, thought("well")),
                   user(text("so?"), IMAGE), system=[text("Be brief."), POINT],
                   outputConfig={"textFormat": {"type": "json_schema"}})  # fmt: skip
    assert trimtab.measure(request, counter="o200k").total == judge.tokens(request)


def test_a_window_below_the_minimum_is_said_so() -> None:
    request = body(user(text("word " * 40)))
    with pytest.raises(CannotFit):
        fit(request, 20)


@pytest.mark.parametrize("between", [False, True], ids=["", "a system message between"])
def test_no_note_is_put_beside_results_where_the_model_refuses_that(between: bool) -> None:
    def step(number: int, text: str) -> list[dict[str, Any]]:
        use = {"toolUseId": f"t{number}", "name": "shell", "input": {"command": f"cat {number}"}}
        result = {"toolUseId": f"t{number}", "content": [{"text": text}]}
        return [
            {"role": "assistant", "content": [{"toolUse": use}]},
            {"role": "user", "content": [{"toolResult": result}]},
        ]

    lines = "\n".join(f"line {n} of a long file" for n in range(300))
    messages = [
        {"role": "user", "content": [{"text": "Look at both."}]},
        *step(1, "short"),
        *([{"role": "system", "content": [{"text": "Be brief."}]}] if between else []),
        *step(2, lines),
        {"role": "assistant", "content": [{"text": "done"}]},
        {"role": "user", "content": [{"text": "Thanks."}]},
    ]
    tools = [{"toolSpec": {"name": "shell", "inputSchema": {"json": {"type": "object"}}}}]
    body = {
        "modelId": "us.meta.llama3-3-70b-instruct-v1:0", "messages": messages,
        "toolConfig": {"tools": tools},
    }  # fmt: skip
    pins = [lambda block: "short" in block.text]  # so that the first step stays
    fitted = trimtab.fit(body, window=700, reserve=0, settings=trimtab.Settings(pins=pins))
    assert fitted.report.edits
    assert fitted.report.warnings == ()
    assert trimtab.check(fitted.request) == ()


def test_a_step_behind_a_dropped_one_is_dropped_at_once_and_not_only_the_second_time() -> None:
    def call(number: int, name: str, made: dict[str, Any]) -> dict[str, Any]:
        use = {"toolUseId": f"call_{number}", "name": name, "input": made}
        return {"role": "assistant", "content": [{"toolUse": use}]}

    body = {"modelId": "mistral.mistral-large-2402-v1:0", "messages": [
        call(19, "patch", {"path": "n.txt", "content": "32 👩‍👩‍👧‍👦🚀 "}),
        {"role": "system", "content": []},
        call(21, "bash", {"n": 1e300, "deep": {"list": []}, "old": "", "Ω": "é"}),
        {"role": "user", "content": []},
        call(23, "edit", {"path": "n.txt", "content": "40 same line"}),
    ]}  # fmt: skip
    with pytest.raises(CannotFit) as refusal:
        fit(body, 1)
    fitted = fit(body, refusal.value.minimum)
    assert trimtab.check(fitted.request) == ()
    assert fit(fitted.request, refusal.value.minimum).request is fitted.request
