"""The chat format as its many servers speak it: read, refused in their words, repaired, fitted.

Every row of the rule table is provoked once by a minimal request; mistral-common judges what goes
to Mistral, judge.py the rest.
"""

from __future__ import annotations

import copy
from typing import Any

import doubtful
import judge
import pytest
from chat_requests import body, call, calls, mistral_says, result, said, text, use, used, user
from hard_cases import CASES, conversation
from histories import histories
from hypothesis import assume, given, reject
from hypothesis import strategies as st

import trimtab
from trimtab import CannotFit, formats
from trimtab.formats import FORMATS
from trimtab.jsontext import paths

TABLE = FORMATS["openai-chat"].rules
SYSTEM = {"role": "system", "content": "Be brief."}
ASK, ANSWER, CALLED, ANSWERED = user(), said(), calls(call()), result()
PAIR = (ASK, CALLED, ANSWERED)
LONG = "word " * 2_100_000
DEEPSEEK, KIMI, GLM = "deepseek-v4-pro", "kimi-k2.6", "glm-4.7"
MISTRAL, OLD_MISTRAL, MINIMAX = "mistral-large-latest", "open-mixtral-8x22b", "MiniMax-M2.1"
XIAOMI, LLAMACPP = "xiaomi/mimo-v2-pro", "openai-chat:llamacpp"
TOOLS = [{"type": "function", "function": {"name": f"t{n}", "parameters": {}}} for n in range(140)]

PROVOKING: list[tuple[str, dict[str, Any]]] = [
    ("no_messages", body()),
    ("blank_tool_name", body(ASK, calls({**call(), "function": {"name": "", "arguments": "{}"}}),
                             ANSWERED)),
    ("blank_tool_name", body(ASK, said([{**use(), "name": " "}]), user([used()]))),
    ("name_format", body(ASK, calls({**call(), "function": {"name": "a b", "arguments": "{}"}}),
                         ANSWERED)),
    ("arguments_not_string", body(ASK, calls(call(arguments={"path": "a.py"})), ANSWERED)),
    ("input_not_object", body(ASK, said([use(value="a.py")]), user([used()]))),
    ("arguments_not_json", body(ASK, calls(call(arguments='{"path": ')), ANSWERED, model=MINIMAX)),
    ("string_too_long", body(user(LONG))),
    ("string_too_long", body(user([text("see"), text(LONG)]))),
    ("string_too_long", body(ASK, CALLED, result(content=LONG))),
    ("string_too_long", body(ASK, calls(call(arguments=f'{{"text": "{LONG}"}}')), ANSWERED)),
    ("null_content", body(user(None))),
    ("null_content", body(ASK, said(None), ASK)),
    ("empty_parts", body(ASK, said([]), ASK, model=XIAOMI)),
    ("duplicate_call", body(ASK, calls(call(), call()), ANSWERED, result(content="y = 2"))),
    ("repeated_call_id", body(*PAIR, CALLED, ANSWERED, model=GLM)),
    ("repeated_call_id", body(*PAIR, ANSWER, ASK, CALLED, ANSWERED, model=MINIMAX)),
    ("id_too_long", body(ASK, calls(call("c" * 46)), result("c" * 46))),
    ("id_format", body(ASK, calls(call("call_1")), result("call_1"), model=MISTRAL)),
    ("call_unanswered", body(ASK, CALLED)),
    ("call_unanswered", body(ASK, calls(call(), call("abcdefgh2"), reasoning_content="hm"),
                             ANSWERED, model=KIMI)),
    ("call_unanswered", body(ASK, CALLED, ASK, ANSWER, ASK)),
    ("call_unanswered", body(ASK, said([use()]), ASK)),
    ("result_late", body(ASK, said([use()]), user([text("here"), used()]))),
    ("orphan_result", body(ASK, ANSWERED)),
    ("orphan_result", body(ASK, ANSWERED, model=MISTRAL)),
    ("orphan_result", body(ASK, ANSWER, user([used(), text("and?")]))),
    ("orphan_result", body(ASK, {"role": "function", "name": "read", "content": "x"})),
    ("duplicate_result", body(*PAIR, ANSWERED)),
    ("duplicate_result", body(*PAIR, ANSWERED, model=MISTRAL)),
    ("server_orphan", body(ASK, said([{"type": "web_search_tool_result", "tool_use_id": "s1",
                                       "content": []}, text("found")]), ASK)),
    ("tool_reference_unknown", body(ASK, CALLED, {**ANSWERED, "content": [
        {"type": "tool_reference", "tool_name": "LSP"}]}, tools=TOOLS[:1])),
    ("too_many_calls", body(ASK, calls(*[call(f"c{n}") for n in range(300)]),
                            *[result(f"c{n}", str(n)) for n in reversed(range(300))])),
    ("reasoning_missing", body(*PAIR, model=DEEPSEEK)),
    ("reasoning_missing", body(*PAIR, model="deepseek-chat", thinking={"type": "enabled"})),
    ("reasoning_partly_missing", body(ASK, calls(call(), reasoning_content="hm"), ANSWERED,
                                      ANSWER, ASK, model="deepseek-v3.2")),
    ("reasoning_missing", body(*PAIR, model=KIMI)),
    ("content_and_calls", body(ASK, calls(call(), content="I look."), ANSWERED, model=OLD_MISTRAL)),
    ("empty_answer", body(ASK, said("", tool_calls=[]), ASK, model=MISTRAL)),
    ("system_late", body(ASK, ANSWER, SYSTEM, ASK, model=MISTRAL)),
    ("user_after_result", body(*PAIR, ASK, model=MISTRAL)),
    ("no_user", body(SYSTEM, CALLED, ANSWERED, model=GLM)),
    ("last_not_user", body(ASK, ANSWER, model=MISTRAL)),
    ("two_answers_last", body(ASK, ANSWER, ANSWER)),
    ("too_many_tools", body(ASK, tools=TOOLS)),
]  # fmt: skip


def spoken(rule: str) -> str:
    return LLAMACPP if rule == "two_answers_last" else "openai-chat"


def ids(cases: list[Any]) -> list[str]:
    return [f"{number}-{case[0]}" for number, case in enumerate(cases)]


@pytest.mark.parametrize(("rule", "request_"), PROVOKING, ids=ids(PROVOKING))
def test_each_row_is_provoked_and_its_repair_makes_it_pass(rule: str, request_: Any) -> None:
    format, before = spoken(rule), copy.deepcopy(request_)
    assert {found.rule for found in doubtful.found(request_, format)} == {rule}
    repaired = doubtful.repaired(request_, format).tree
    assert request_ == before
    assert doubtful.found(repaired, format) == []
    assert trimtab.repair(repaired, format=format).request is repaired
    if not any(isinstance(part, dict) and part.get("type") in ("tool_use", "tool_result")
               for m in repaired["messages"] for part in m.get("content") or ()):  # fmt: skip
        assert judge.problems(repaired, "openai-chat") == []
    if "stral" in repaired["model"]:
        versions = (3,) if repaired["model"] == OLD_MISTRAL else (5, 11, 13, 15)
        assert [mistral_says(repaired, version) for version in versions] == [""] * len(versions)


def test_every_row_is_provoked() -> None:
    elsewhere = {"unreadable_text", "result_id_case"}  # tests/unit/formats has those of all formats
    elsewhere |= {"system_not_first", "system_place", "roles_alternate", "arguments_cut"}
    assert {rule for rule, _ in PROVOKING} == {row.name for row in TABLE.rows} - elsewhere


@pytest.mark.parametrize(
    ("words", "request_"),
    [
        ("Unexpected tool call id", body(ASK, calls(call()), result("zzzzzzzzz"))),
        ("Duplicate tool call id", body(*PAIR, ANSWERED)),
        ("Not the same number", body(ASK, calls(call(), call("abcdefgh2")), ANSWERED, ANSWER, ASK)),
        ("must be a-z, A-Z, 0-9", body(ASK, calls(call("call_1")), result("call_1"))),
        ("Expected last role User", body(ASK, ANSWER)),
        ("Unexpected role 'system'", body(ASK, ANSWER, SYSTEM, ASK)),
    ],
)
def test_what_mistral_common_refuses_is_a_violation_and_the_repair_passes(
    words: str, request_: Any
) -> None:
    request_ = {**request_, "model": MISTRAL}
    assert words in mistral_says(request_, 11)
    assert trimtab.check(request_) != ()
    assert mistral_says(trimtab.repair(request_).request, 11) == ""


ACCEPTED = {
    "no calls, said as a list (Mistral)": body(ASK, said(tool_calls=[]), ASK, model=MISTRAL),
    "an empty list beside calls (Mistral)": body(
        ASK, calls(call(), content=[]), ANSWERED, model=MISTRAL
    ),
    "an empty list (OpenAI)": body({"role": "system", "content": []}, ASK),
    "a prefix (Mistral)": body(ASK, said("The answer is", prefix=True), model=MISTRAL),
    "arguments as an object (Mistral)": body(
        ASK, calls(call(arguments={"path": "a.py"})), ANSWERED, model=MISTRAL
    ),
    "ids of Kimi's": body(
        ASK, calls(call("functions.read:0")), result("functions.read:0"),
        model="moonshotai/kimi-k2-instruct-0905",
    ),
    "one id in two turns (OpenAI)": body(*PAIR, CALLED, ANSWERED),
    "no reasoning where nothing is thought": body(*PAIR, model="deepseek-chat"),
    "thinking switched off": body(*PAIR, model=DEEPSEEK, thinking={"type": "disabled"}),
    "reasoning in OpenRouter's spelling": body(
        ASK, calls(call(), reasoning_details=[{"type": "reasoning.text", "text": "hm"}]), ANSWERED,
        model="moonshotai/kimi-k2.5",
    ),
    "empty reasoning passed back": body(
        ASK, calls(call(), reasoning_content=""), ANSWERED, model=DEEPSEEK
    ),
    "turns without calls and reasoning": body(ASK, ANSWER, ASK, model=DEEPSEEK),
    "46 chars of vLLM's": body(ASK, calls(call("c" * 46)), result("c" * 46), model="qwen3-coder"),
    "an old function call": body(
        ASK, {"role": "assistant", "content": None,
              "function_call": {"name": "read", "arguments": "{}"}},
        {"role": "function", "name": "read", "content": "x = 1"},
    ),
    "a custom tool": body(
        ASK, calls({"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "SELECT"}}),
        result("c1"),
    ),
    "Anthropic's blocks": body(
        ASK, said([{"type": "thinking", "thinking": "hm", "signature": "s"}, text("I look."),
                   use()]), user([used(), text("and?")]), ANSWER, ASK, model="claude-sonnet-4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("request_", ACCEPTED.values(), ids=ACCEPTED)
def test_what_was_accepted_stays_accepted(request_: Any) -> None:
    assert trimtab.check(request_, format="openai-chat") == ()
    assert trimtab.repair(request_, format="openai-chat").request is request_


@pytest.mark.parametrize("messages", [(ASK, ANSWER), (ANSWER,)], ids=["behind the user", "alone"])
def test_llama_cpp_continues_one_answer_at_the_end(messages: tuple[Any, ...]) -> None:
    assert trimtab.check(body(*messages), format=LLAMACPP) == ()


@pytest.mark.parametrize(
    ("messages", "rule", "number"),
    [
        ((ASK, ANSWER), "last_not_user", 1),
        ((ANSWER, SYSTEM, ASK), "system_late", 1),
        ((*PAIR, ASK), "user_after_result", 3),
    ],
)
def test_a_violation_of_order_names_the_message(
    messages: tuple[Any, ...], rule: str, number: int
) -> None:
    found = doubtful.found(body(*messages, model=MISTRAL))
    assert [(violation.rule, violation.path) for violation in found] == [
        (rule, ("messages", number))
    ]


# --- whose dialect --------------------------------------------------------------------------------

NAMES = {
    None: "openai", "gpt-5.1": "openai", "my-deployment": "openai", "openai/gpt-5": "openai",
    "deepseek-v4-pro": "deepseek", "deepseek/deepseek-chat": "deepseek", "kimi-k2.6": "kimi",
    "moonshotai/Kimi-K2-Instruct-0905:groq": "kimi", "glm-4.7-flash": "glm", "z-ai/glm-5": "glm",
    "MiniMax-M2.1": "minimax", "mistral-large-latest": "mistral", "devstral-2512": "mistral",
    "mistralai/Mistral-7B-Instruct-v0.3": "mistral-v3", "codestral-2405": "mistral-v3",
    "mistral-large-2411": "mistral-v3", "magistral-medium-latest": "mistral",
    "xiaomi/mimo-v2.5": "xiaomi", "claude-sonnet-4-6": "other", "grok-4-fast": "other",
    "openai/gpt-oss-20b": "other", "Qwen/Qwen2.5-VL-72B-Instruct": "other",
}  # fmt: skip


@pytest.mark.parametrize(("model", "name"), NAMES.items(), ids=map(str, NAMES))
def test_a_model_name_tells_the_dialect(model: str | None, name: str) -> None:
    request = {"messages": [ASK]} | ({"model": model} if model else {})
    assert formats.FORMATS["openai-chat"].read_facts(request, None).dialect == name


def test_a_dialect_can_be_given_with_the_format() -> None:
    request = body(*PAIR, model="my-alias")
    assert trimtab.check(request) == ()
    rules = {found.rule for found in trimtab.check({**request, "thinking": {"type": "enabled"}},
                                                   format="openai-chat:kimi")}  # fmt: skip
    assert rules == {"reasoning_missing"}
    fitted = trimtab.fit(body(*PAIR, ANSWER, model="my-alias"), window=4_000,
                         format="openai-chat:mistral")  # fmt: skip
    assert [m["role"] for m in fitted.request["messages"]] == [
        *("user", "assistant", "tool", "assistant", "user")
    ]
    with pytest.raises(trimtab.InvalidSetting, match="no dialect 'klingon'"):
        trimtab.check(request, format="openai-chat:klingon")


# --- what a repair does ---------------------------------------------------------------------------


def test_lost_reasoning_gets_a_placeholder_and_the_exchange_stays() -> None:
    sent = trimtab.repair(body(*PAIR, ANSWER, ASK, CALLED, ANSWERED, model=DEEPSEEK)).request
    spoken = [m for m in sent["messages"] if m["role"] == "assistant"]
    assert [m["reasoning_content"] for m in spoken] == [".", ".", "."]
    assert sent["messages"][2] is ANSWERED


def test_300_parallel_calls_become_three_messages_and_keep_every_result() -> None:
    request = next(request for rule, request in PROVOKING if rule == "too_many_calls")
    sent = trimtab.repair(request).request["messages"]
    sizes = [len(m["tool_calls"]) for m in sent if m["role"] == "assistant"]
    assert sizes == [128, 128, 44]
    told = {m["tool_call_id"]: m["content"] for m in sent if m["role"] == "tool"}
    assert told == {f"c{n}": str(n) for n in range(300)}


def test_a_long_text_goes_in_parts_and_nothing_of_it_is_lost() -> None:
    sent = trimtab.repair(body(user(LONG))).request
    parts = sent["messages"][0]["content"]
    assert "".join(part["text"] for part in parts) == LONG
    assert max(len(part["text"]) for part in parts) <= 10_485_760


def test_tools_that_were_called_stay_when_there_are_too_many() -> None:
    made = {"id": "c1", "type": "function", "function": {"name": "t139", "arguments": "{}"}}
    fitted = trimtab.repair(body(ASK, calls(made), result("c1"), tools=TOOLS))
    names = [tool["function"]["name"] for tool in fitted.request["tools"]]
    assert len(names) == 128
    assert "t139" in names
    gone = [repair for repair in fitted.report.repairs if repair.rule == "too_many_tools"]
    assert '"t138"' in fitted.recall(gone[-1].handle)


def test_words_beside_calls_can_be_recalled_where_mistral_takes_only_one_of_both() -> None:
    request = body(ASK, calls(call(), content="I look."), ANSWERED, model=OLD_MISTRAL)
    assert trimtab.repair(request).request is request  # a newer tokenizer takes both
    repaired = doubtful.repaired(request)
    assert repaired.tree["messages"][1]["content"] == ""
    assert [value for _, _, value in repaired.taken] == ["I look."]


def test_one_image_is_sent_to_the_host_that_takes_one() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    two = body(user([text("compare"), image, dict(image)]), model="moonshotai/kimi-k2.6")
    assert judge.images(trimtab.fit(two, window=9_000).request, "openai-chat") == 1
    own = {**two, "model": "kimi-k2.6"}
    assert trimtab.fit(own, window=9_000).request is own


def test_anthropic_blocks_in_chat_pair_with_each_other_and_leave_words_alone() -> None:
    request = body(ASK, said([use("t1"), use("t2")]), user([used("t2"), text("and?")]), ASK)
    sent = trimtab.repair(request, format="openai-chat").request["messages"]
    assert sent[2]["role"] == "user"
    assert sent[2]["content"][0]["tool_use_id"] == "t1"
    assert sent[3] is request["messages"][2]


# --- fitted --------------------------------------------------------------------------------------

SPEAKERS = (MISTRAL, DEEPSEEK, KIMI, GLM, MINIMAX, "claude-sonnet-4-6")


@pytest.mark.parametrize("model", SPEAKERS)
@pytest.mark.parametrize("case", CASES)
def test_the_hard_cases_fit_a_quarter_in_every_dialect(case: str, model: str) -> None:
    request = body(*conversation(case, "openai-chat"), model=model, reasoning_effort="high")
    window = judge.tokens(request, "openai-chat") // 4
    fitted = trimtab.fit(
        request, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
    )
    assert judge.tokens(fitted.request, "openai-chat") <= window
    assert judge.problems(fitted.request, "openai-chat") == []
    assert trimtab.check(fitted.request) == ()
    assert fitted.report.warnings == ()
    if model == MISTRAL:
        assert mistral_says(fitted.request, 11) == ""


def fit_into(request: Any, window: int) -> trimtab.Fitted:
    settings = trimtab.Settings(counter="o200k")
    return trimtab.fit(request, window=window, reserve=0, format="openai-chat", settings=settings)


def fitted_for(story: Any, model: str, share: float) -> tuple[trimtab.Fitted, int]:
    """A history as it is sent to a model, and the window, a share of what came."""
    messages = story[0]["messages"] if isinstance(story[0], dict) else story[0]
    request = doubtful.repaired(body(*messages, model=model), "openai-chat").tree
    window = max(1, int(judge.tokens(request, "openai-chat") * share))
    try:
        return fit_into(request, window), window
    except CannotFit:
        reject()


CHATS = histories(("openai-chat",))
MODELS = st.sampled_from((*SPEAKERS, OLD_MISTRAL))
SHARES = st.sampled_from([0.1, 0.3, 0.6, 2.0])


@given(CHATS, MODELS, SHARES)
def test_whatever_comes_goes_out_acceptable_to_whom_it_goes(
    story: Any, model: str, share: float
) -> None:
    fitted, _ = fitted_for(story, model, share)
    sent = fitted.request
    assert trimtab.check(sent, format="openai-chat") == ()
    assert [w for w in fitted.report.warnings if "failed" in w] == []
    long_ids = [p for p in judge.problems(sent, "openai-chat") if "of 1 to 40 characters" in p]
    assert judge.problems(sent, "openai-chat") == long_ids  # OpenAI's rule, and nobody else's
    assert not any("''" in problem for problem in long_ids)
    if "stral" in model and not any("function_call" in m for m in sent["messages"]):
        assert mistral_says(sent, 3 if model == OLD_MISTRAL else 11) == ""
    if model == DEEPSEEK:
        assert no_reasoning(sent["messages"]) == []


@given(CHATS, MODELS, SHARES)
def test_what_was_fitted_to_a_dialect_is_fitted_the_same_again(
    story: Any, model: str, share: float
) -> None:
    fitted, window = fitted_for(story, model, share)
    again = fit_into(fitted.request, window)
    assert paths.dump(again.request) == paths.dump(fitted.request)


def no_reasoning(messages: list[Any]) -> list[int]:
    """Positions of what the model said with calls and without reasoning, told independently."""
    return [
        number
        for number, message in enumerate(messages)
        if message.get("tool_calls") and "reasoning_content" not in message
    ]


@pytest.mark.row("X1")
def test_reasoning_of_a_turn_whose_calls_were_left_out_stays_the_next_time_too() -> None:
    told = [calls(call(), reasoning_content="hm"), result(content="word " * 20)]
    told += [said("word " * 30, reasoning_content="think " * 200), said("word " * 30)]
    acted = 0
    for first in ([], [ASK]):
        request = body(*first, *told, model="deepseek-chat")
        for window in range(200, 420, 4):
            try:
                fitted = trimtab.fit(
                    request, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
                )
            except CannotFit:
                continue
            acted += any(edit.op in ("drop", "fold") for edit in fitted.report.edits)
            again = trimtab.fit(
                fitted.request, window=window, reserve=0, settings=trimtab.Settings(counter="o200k")
            )
            assert again.request is fitted.request
    assert acted


PAIRING = ("without result", "without its call", " results for ")


@given(histories(("anthropic",)), st.sampled_from([0.1, 0.3, 0.6, 2.0]))
def test_anthropic_blocks_inside_chat_stay_paired_whatever_comes(story: Any, share: float) -> None:
    messages = story[0]["messages"] if isinstance(story[0], dict) else story[0]
    assume(not any(m["role"] != "user" and "tool_use_id" in str(m["content"]) for m in messages))
    request = body(*messages, model="anthropic/claude-sonnet-4")
    window = max(1, int(judge.tokens(request, "openai-chat") * share))
    try:
        fitted = trimtab.fit(
            request,
            window=window,
            reserve=0,
            format="openai-chat",
            settings=trimtab.Settings(counter="o200k"),
        )
    except CannotFit:
        return
    sent = fitted.request
    assert trimtab.check(sent, format="openai-chat") == ()
    assert [w for w in fitted.report.warnings if "failed" in w] == []
    problems = judge.problems(sent, "anthropic")
    assert [p for p in problems if any(words in p for words in PAIRING)] == []
    assert judge.tokens(sent, "openai-chat") == fitted.report.tokens_after
