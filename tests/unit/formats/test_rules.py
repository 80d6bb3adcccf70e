"""Requirements that rules answer for, in every format in which they make sense.

D5 (refusals in the providers' exact words), X6 (reasoning whole or gone), X8 (reasoning bound to
what stands before it), X11 (what the server holds), B2 (each format's calls and results are found
and replaced in their own shape), B19 (Gemini without ids).
"""

from __future__ import annotations

import json
from typing import Any

import doubtful
import pytest
from chat_requests import body, call, calls, result, said, text, use, used, user
from settings_words import as_keywords
from shapes import FORMATS, items_of, session, thoughts

import trimtab
from trimtab.formats.gemini.rules import SENTINEL

ASK = user()


def fit(request: Any, window: int, **more: Any) -> Any:
    return trimtab.fit(request, **as_keywords(window=window, reserve=0, counter="o200k", **more))


def size(request: Any, **more: Any) -> int:
    return trimtab.measure(request, counter="o200k", **more).total


# --- D5: each provider's refusal in its own words -------------------------------------------------

FC = {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"}
FCO = {"type": "function_call_output", "call_id": "c1", "output": "x"}
TALK = {"type": "message", "role": "user", "content": "hello"}
B_ASK = {"role": "user", "content": [{"text": "hello"}]}
B_RESULT = {"role": "user", "content": [{"toolResult": {"toolUseId": "t1", "content": []}}]}
B_CALL = {"role": "assistant", "content": [
    {"toolUse": {"toolUseId": "t1", "name": "read", "input": {}}}]}  # fmt: skip
B_TOOLS = {"tools": [{"toolSpec": {"name": "read", "inputSchema": {"json": {}}}}]}
G_ASK = {"role": "user", "parts": [{"text": "hello"}]}
G_CALL = {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}
G_RESULT = {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {}}}]}

WORDS = {
    "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'":
        body(ASK, result()),
    "must be followed by tool messages responding to each 'tool_call_id'": body(ASK, calls(call())),
    "Not the same number of function calls and responses":
        body(ASK, calls(call()), model="mistral-large-latest"),
    "Unexpected role 'tool' after role 'user'": body(ASK, result(), model="mistral-large-latest"),
    "(1214": body(ASK, calls(call()), result(), calls(call()), result(), model="glm-4.7"),
    "messages 参数非法": body(calls(call()), result(), model="glm-4.7"),
    "tool result's tool id(": body(ASK, result(), model="MiniMax-M2.1"),
    "must be passed back to the API": body(ASK, calls(call()), result(), model="deepseek-v4-pro"),
    "reasoning_content is missing in assistant tool call message":
        body(ASK, calls(call()), result(), model="kimi-k2.6"),
    "No tool output found for function call": {"model": "gpt-5.5", "input": [TALK, FC]},
    "No tool call found for function call output": {"model": "gpt-5.5", "input": [TALK, FCO]},
    "`tool_use` ids were found without `tool_result` blocks immediately after":
        {"max_tokens": 9, "messages": [ASK, said([use()]), ASK]},
    "unexpected `tool_use_id` found in `tool_result` blocks":
        {"max_tokens": 9, "messages": [ASK, said("Hm."), user([used()])]},
    "exceeds the number of toolUse blocks of previous turn": {"messages": [B_ASK, {
        "role": "assistant", "content": [{"text": "Hm."}]}, B_RESULT], "toolConfig": B_TOOLS},
    "Expected toolResult blocks": {"messages": [B_ASK, B_CALL, B_ASK], "toolConfig": B_TOOLS},
    "The toolConfig field must be defined": {"messages": [B_ASK, B_CALL, B_RESULT]},
    "number of function response parts is equal": {"contents": [G_ASK, G_CALL]},
    "function response turn comes immediately after a function call turn":
        {"contents": [G_ASK, G_RESULT]},
    "function call turn comes immediately after a user turn": {"contents": [G_CALL, G_RESULT]},
}  # fmt: skip


@pytest.mark.row("D5")
@pytest.mark.parametrize(("words", "request_"), WORDS.items(), ids=WORDS)
def test_a_violation_carries_the_providers_own_words_and_is_repaired(
    words: str, request_: Any
) -> None:
    assert any(words in violation.message for violation in doubtful.found(request_))
    assert doubtful.found(doubtful.repaired(request_).tree) == []


# --- X6: reasoning is kept as it came, or goes as a whole -----------------------------------------


@pytest.mark.row("X6")
@pytest.mark.parametrize("share", [0.15, 0.4, 0.7])
@pytest.mark.parametrize("format", FORMATS)
def test_opaque_reasoning_is_byte_identical_or_gone(format: str, share: float) -> None:
    request = session(format)
    sent = fit(request, int(size(request) * share)).request
    known = [thought for _, thought in thoughts(format, request)]
    assert len(known) == 8
    for _, thought in thoughts(format, sent):
        assert thought in known or thought == SENTINEL
    assert trimtab.check(sent) == ()


@pytest.mark.row("X6")
def test_an_item_never_keeps_an_id_that_demands_reasoning_which_is_gone() -> None:
    request = session("openai-responses")
    sent = fit(request, size(request) // 4).request["input"]
    there = {item["id"] for item in sent if item.get("type") == "reasoning"}
    for item in sent:
        if item.get("type") == "function_call" and "id" in item:
            assert item["id"].replace("fc_", "rs_") in there


@pytest.mark.row("X6")
def test_the_reasoning_of_a_message_with_calls_goes_only_with_its_message() -> None:
    for model in ("deepseek-v4-pro", "kimi-k2.6", "openrouter/auto"):
        request = session("openai-chat", model=model)
        for share in (0.15, 0.4, 0.7):
            for item in fit(request, int(size(request) * share)).request["messages"]:
                assert ("tool_calls" in item) == ("reasoning_details" in item)


# --- X8: reasoning bound to what stands before it -------------------------------------------------

BOUND = {"anthropic": "claude-opus-5-5", "bedrock": "us.anthropic.claude-opus-5-5"}


def first_change(before: Any, after: Any) -> int:
    """The first message that is not as it was."""
    pairs = zip(items_of(before), items_of(after), strict=False)
    return next((n for n, (old, new) in enumerate(pairs) if old != new), len(items_of(after)))


@pytest.mark.row("X8")
@pytest.mark.parametrize("share", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("format", BOUND)
def test_behind_an_edit_no_thinking_is_left(format: str, share: float) -> None:
    request = session(format, model=BOUND[format])
    sent = fit(request, int(size(request) * share)).request
    changed = first_change(request, sent)
    assert changed < len(items_of(sent))
    assert [number for number, _ in thoughts(format, sent) if number > changed] == []
    assert trimtab.check(sent) == ()


@pytest.mark.row("X8")
@pytest.mark.parametrize("format", BOUND)
def test_or_the_api_is_asked_to_drop_what_no_longer_fits(format: str) -> None:
    request = session(format, model=BOUND[format])
    sent = fit(
        request, int(size(request) * 0.6), settings=trimtab.Settings(thinking="drop_block")
    ).request
    asked = sent.get("thinking") or sent["additionalModelRequestFields"]["thinking"]
    assert asked["block_binding"] == {"prefix_mismatch_behavior": "drop_block"}
    assert [n for n, _ in thoughts(format, sent) if n > first_change(request, sent)] != []


@pytest.mark.row("X8")
@pytest.mark.parametrize("format", BOUND)
def test_models_before_5_1_keep_the_thinking_of_later_turns(format: str) -> None:
    request = session(format)
    sent = fit(request, int(size(request) * 0.6)).request
    assert [n for n, _ in thoughts(format, sent) if n > first_change(request, sent)] != []


@pytest.mark.row("X8")
@pytest.mark.parametrize("format", BOUND)
def test_a_repair_unbinds_what_stands_behind_it_and_nothing_before(format: str) -> None:
    request = session(format, model=BOUND[format])
    del items_of(request)[8]  # the fourth result: its call is open now
    sent = trimtab.repair(request).request
    kept = [number for number, _ in thoughts(format, sent)]
    assert kept != []
    assert max(kept) <= 7


def unanswered(request: Any) -> None:
    """Its last calls have no results yet."""
    while items_of(request)[-1]["role"] == "user":
        del items_of(request)[-1]


def answered(request: Any) -> None:
    """It ends with an answer in words."""
    unanswered(request)
    last = items_of(request)[-1]["content"]
    said = {"text": "I see."} if "modelId" in request else {"type": "text", "text": "I see."}
    last[1:] = [said]


@pytest.mark.row("X8")
@pytest.mark.parametrize("tip", [unanswered, answered])
@pytest.mark.parametrize("format", BOUND)
def test_what_a_repair_puts_behind_the_last_answer_unbinds_nothing(format: str, tip: Any) -> None:
    request = session(format, model=BOUND[format])
    tip(request)
    repaired = trimtab.repair(request)
    assert repaired.report.repairs != ()
    assert len(items_of(repaired.request)) == len(items_of(request)) + 1
    before = list(thoughts(format, request))
    assert list(thoughts(format, repaired.request)) == before != []


@pytest.mark.row("X8")
def test_a_repair_of_the_head_unbinds_all_thinking() -> None:
    request = session("bedrock", model=BOUND["bedrock"])
    request["system"] = [*({"text": f"Rule {n}."} for n in range(20)), {"text": ""}]
    repaired = trimtab.repair(request)
    assert [repair.rule for repair in repaired.report.repairs] == ["empty_system"]
    assert list(thoughts("bedrock", repaired.request)) == []


# --- X11: what the server holds -------------------------------------------------------------------


@pytest.mark.row("X11")
@pytest.mark.parametrize("key", ["previous_response_id", "conversation"])
def test_an_output_may_answer_a_call_that_only_the_server_has(key: str) -> None:
    request = {"model": "gpt-5.5", key: "resp_1", "input": [FCO, TALK]}
    assert trimtab.check(request) == ()
    assert trimtab.repair(request).request is request
    alone = {"model": "gpt-5.5", "input": [FCO, TALK]}
    assert [violation.rule for violation in trimtab.check(alone)] == ["orphan_result"]


@pytest.mark.row("X11")
def test_its_output_can_be_cut_and_keeps_its_call_id() -> None:
    long = {**FCO, "output": "line of a log\n" * 4_000}
    request = {"model": "gpt-5.5", "previous_response_id": "resp_1", "input": [long, TALK]}
    sent = fit(request, 2_000).request
    assert [item.get("call_id") for item in sent["input"]] == ["c1", None]
    assert len(sent["input"][0]["output"]) < 10_000
    assert sent["previous_response_id"] == "resp_1"


@pytest.mark.row("X11")
def test_contents_that_follow_cached_content_may_begin_with_a_call() -> None:
    request = {"cachedContent": "cachedContents/1", "contents": [G_CALL, G_RESULT]}
    assert trimtab.check(request) == ()
    assert trimtab.repair(request).request is request


# --- X1: valid whatever came in -------------------------------------------------------------------


@pytest.mark.row("X1")
def test_no_result_is_an_orphan_while_the_repair_of_its_call_waits_for_another() -> None:
    request = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [
        user(), said([use("a"), use("b")]), user([used("a", "first")]),
        said([use("c")]), user([used("b", "second")]), user([text("Wait.")]),
        said([text("Well.")]), user([used("c", "third"), text("Go on.")]),
    ]}  # fmt: skip
    repaired = trimtab.repair(request)
    assert trimtab.check(repaired.request) == ()
    results = [part for m in repaired.request["messages"] for part in m["content"]
               if isinstance(part, dict) and part["type"] == "tool_result"]  # fmt: skip
    assert results == [used("a", "first"), used("b", "second"), used("c", "third")]
    assert {repair.rule for repair in repaired.report.repairs} == {"call_unanswered"}


@pytest.mark.row("X1")
def test_where_only_the_system_speaks_bedrock_is_given_a_message_of_the_user() -> None:
    request = {"messages": [{"role": "system", "content": [{"text": "Be brief."}]}]}
    told = {"format": "bedrock"}
    assert {found.rule for found in trimtab.check(request, **told)} == {"first_not_user"}
    sent = trimtab.repair(request, **told).request
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert trimtab.check(sent, **told) == ()


# --- B2: what each format calls a call and a result -----------------------------------------------

GIANT = "".join(f"2024-05-01 worker {n} wrote shard {n * 7919}\n" for n in range(1_000))
CHUNK = {"stdout": GIANT, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}


def responses(made: dict[str, Any], output: Any, kind: str = "") -> dict[str, Any]:
    back = {"type": kind or f"{made['type']}_output", "call_id": "c1", "output": output}
    return {"model": "gpt-5.5", "input": [TALK, made, back, TALK]}


RESULTS: dict[str, dict[str, Any]] = {
    "chat": body(ASK, calls(call()), result(content=GIANT), ASK),
    "chat, content as a list": body(ASK, calls(call()), result(content=[text(GIANT)]), ASK),
    "chat, a function of old": body(
        ASK, said(None, function_call={"name": "read", "arguments": "{}"}),
        {"role": "function", "name": "read", "content": GIANT}, ASK),
    "chat, a custom tool": body(
        ASK, calls({"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}}),
        result("c1", GIANT), ASK),
    "chat, Anthropic's blocks": body(
        ASK, said([use("t1")]), user([used("t1", GIANT), text("and?")]), calls(call()), result()),
    "chat, two at once": body(
        ASK, calls(call("a"), call("b")), result("b", GIANT), result("a", "short"), ASK),
    "responses": responses(FC, GIANT),
    "responses, a list": responses(FC, [{"type": "input_text", "text": GIANT}]),
    "responses, a custom tool": responses(
        {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "SELECT"}, GIANT),
    "responses, a shell": responses(
        {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}}, [CHUNK]),
    "responses, a patch": responses(
        {"type": "apply_patch_call", "call_id": "c1", "status": "completed",
         "operation": {"type": "delete_file", "path": "a.py"}}, GIANT),
    "anthropic": {"max_tokens": 9, "messages": [
        ASK, said([use("t1")]), user([used("t1", GIANT)]), said("Hm."), ASK]},
    "anthropic, a list": {"max_tokens": 9, "messages": [
        ASK, said([use("t1")]), user([used("t1", [text(GIANT)])]), said("Hm."), ASK]},
    "bedrock": {"messages": [B_ASK, B_CALL, {"role": "user", "content": [{"toolResult": {
        "toolUseId": "t1", "content": [{"text": GIANT}]}}]}], "toolConfig": B_TOOLS},
    "bedrock, json": {"messages": [B_ASK, B_CALL, {"role": "user", "content": [{"toolResult": {
        "toolUseId": "t1", "content": [{"json": {"lines": GIANT.splitlines()}}]}}]}],
        "toolConfig": B_TOOLS},
    "gemini": {"contents": [G_ASK, G_CALL, {"role": "user", "parts": [{"functionResponse": {
        "name": "read", "response": {"output": GIANT}}}]}]},
    "gemini, snake_case": {"contents": [
        G_ASK, {"role": "model", "parts": [{"function_call": {"name": "read", "args": {}}}]},
        {"role": "user", "parts": [{"function_response": {
            "name": "read", "response": {"lines": GIANT.splitlines()}}}]}]},
}  # fmt: skip


def shape(value: Any) -> Any:
    """Keys and kinds without the texts; JSON that a tool gave may become a text."""
    if isinstance(value, dict):
        if set(value) in ({"json"}, {"text"}):
            return "…"
        return {key: "…" if key == "response" else shape(v) for key, v in value.items()}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return "…" if isinstance(value, str) and len(value) > 40 else value


@pytest.mark.row("B2")
@pytest.mark.parametrize("request_", RESULTS.values(), ids=RESULTS)
def test_a_giant_result_is_cut_in_its_own_shape(request_: Any) -> None:
    format = "openai-chat" if str(request_.get("model", "")).startswith("gpt-5.1") else None
    assert trimtab.check(request_, format=format) == ()
    fitted = fit(request_, 4_000, format=format)
    assert trimtab.check(fitted.request, format=format) == ()
    assert [edit.role for edit in fitted.report.edits] != []
    assert len(json.dumps(fitted.request)) < 30_000
    if not any(edit.op in ("drop", "fold") for edit in fitted.report.edits):
        assert shape(items_of(fitted.request)) == shape(items_of(request_))


@pytest.mark.row("B2")
@pytest.mark.parametrize("format", FORMATS)
def test_giant_arguments_are_cut_and_stay_an_object_or_the_text_of_one(format: str) -> None:
    request = session(format, steps=3, lines=2, arguments=4_000)
    sent = fit(request, size(request) // 3).request
    assert trimtab.check(sent) == ()
    for item in items_of(sent):
        for part in (item, *(item.get("tool_calls") or item.get("content") or item.get("parts")
                             or ())):  # fmt: skip
            if not isinstance(part, dict):
                continue
            inner = part.get("functionCall") or part.get("toolUse") or part.get("function") or part
            for key in ("args", "input", "arguments"):
                if key in inner:
                    value = inner[key]
                    assert isinstance(json.loads(value) if isinstance(value, str) else value, dict)


@pytest.mark.row("B2")
@pytest.mark.parametrize("format", FORMATS)
def test_every_format_is_found_by_its_shape_and_names_calls_and_tools(format: str) -> None:
    request = session(format)
    measured = trimtab.measure(request, counter="o200k")
    assert measured.format == format
    kinds = [row.kind for row in measured.rows]
    assert (kinds.count("call"), kinds.count("result")) == (8, 8)
    assert {row.tool for row in measured.rows if row.kind in ("call", "result")} == {"read"}
    assert trimtab.check(request) == ()


# --- B19: Gemini without ids ----------------------------------------------------------------------


def made(*names: str, **more: Any) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"functionCall": {"name": name, "args": {}}} for name in names]
    parts[0].update(more)
    return {"role": "model", "parts": parts}


def back(*answers: tuple[str, str]) -> dict[str, Any]:
    return {"role": "user", "parts": [
        {"functionResponse": {"name": name, "response": {"output": text}}} for name, text in answers
    ]}  # fmt: skip


@pytest.mark.row("B19")
def test_the_nth_response_of_a_name_answers_its_nth_call() -> None:
    right = {"contents": [G_ASK, made("a", "b", "a"), back(("a", "1"), ("b", "2"), ("a", "3"))]}
    assert trimtab.check(right) == ()
    short = {"contents": [G_ASK, made("a", "b", "a"), back(("a", "1"), ("b", "2"))]}
    assert {violation.rule for violation in trimtab.check(short)} == {"call_unanswered"}
    sent = trimtab.repair(short).request["contents"][2]["parts"]
    assert sorted(part["functionResponse"]["name"] for part in sent) == ["a", "a", "b"]
    assert sent[0] is short["contents"][2]["parts"][0]


@pytest.mark.row("B19")
def test_a_response_too_many_is_taken_out_and_can_be_recalled() -> None:
    request = {"contents": [G_ASK, made("a"), back(("a", "1"), ("a", "left over"))]}
    assert trimtab.check(request) != ()
    repaired = trimtab.repair(request)
    assert trimtab.check(repaired.request) == ()
    handles = [repair.handle for repair in repaired.report.repairs if repair.handle]
    assert "left over" in repaired.recall(handles[0])


@pytest.mark.row("B19")
def test_ids_win_over_the_order_where_both_sides_have_them() -> None:
    call_, answer = made("a", "a"), back(("a", "2"), ("a", "1"))
    for number, part in enumerate(call_["parts"]):
        part["functionCall"]["id"] = f"id{number}"
    for number, part in enumerate(answer["parts"]):
        part["functionResponse"]["id"] = f"id{1 - number}"
    request = {"contents": [G_ASK, call_, answer]}
    assert trimtab.check(request) == ()
    del answer["parts"][0]
    sent = trimtab.repair(request).request["contents"][2]["parts"]
    told = {p["functionResponse"]["id"]: p["functionResponse"]["response"] for p in sent}
    assert told["id0"] == {"output": "1"}


@pytest.mark.row("B19")
def test_the_signature_of_a_call_that_stays_stays() -> None:
    contents = [G_ASK]
    for number in range(6):
        contents += [made("a", "a", thoughtSignature=f"sig{number}"),
                     back(("a", GIANT[:9_000]), ("a", f"{number}"))]  # fmt: skip
    request = {"model": "gemini-3-pro-preview", "contents": contents}
    sent = fit(request, size(request) // 4).request
    assert trimtab.check(sent) == ()
    for content in sent["contents"]:
        if content["role"] == "model" and "functionCall" in content["parts"][0]:
            assert content["parts"][0]["thoughtSignature"].startswith("sig")
            assert "thoughtSignature" not in content["parts"][1]


@pytest.mark.parametrize(
    ("format", "request_"),
    [("gemini", {"cachedContent": "cachedContents/x"}), ("gemini", {"contents": "hello"}),
     ("gemini", {"contents": {"role": "user", "parts": [{"text": "hello"}]}}),
     ("openai-chat", {"messages": "hello"}), ("anthropic", {"messages": "hello"}),
     ("bedrock", {"messages": "hello"})],
)  # fmt: skip
def test_what_is_no_list_of_messages_is_sent_as_it_is_and_no_rule_raises(
    format: str, request_: Any
) -> None:
    fitted = trimtab.fit(request_, window=10_000, format=format)
    assert fitted.request is request_
    assert fitted.report.warnings == ()
