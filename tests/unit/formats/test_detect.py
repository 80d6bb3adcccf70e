"""Which format a request is in: by its address, its headers, its shape, in that order.

The edge cases of requirement B1 are tests of their own.
"""

from __future__ import annotations

import gzip
import json
from typing import Any

import doubtful
import pytest
from chat_requests import body, call, calls, result, text, use, used, user

import trimtab
from trimtab import InvalidRequest, InvalidSetting, formats
from trimtab.formats.detect import Detected

ASK = user("hello")
TALK = [ASK, {"role": "assistant", "content": "Hi."}, ASK]
PARTS = [user([text("hello")])]
ONLY_TEXT = {"max_tokens": 100, "messages": TALK}
ITEM = {"type": "function_call_output", "call_id": "c1", "output": "x"}
TOOL_USE = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "r",
                                                          "input": {}}}]}  # fmt: skip
BEDROCK = {"messages": [{"role": "user", "content": [{"text": "hello"}]}]}
CONTENTS = [{"role": "user", "parts": [{"text": "hello"}]}]
CONVERSE = (
    "https://bedrock-runtime.eu-west-1.amazonaws.com/model/us.amazon.nova-pro-v1%3A0/converse"
)


def found(request: Any, **more: Any) -> str:
    return trimtab.detect(request, **more).format


# --- B1: shapes that are easily taken for another -------------------------------------------------


@pytest.mark.row("B1")
@pytest.mark.parametrize(
    "request_",
    [
        {"model": "gpt-4o", "system": "Be brief.", "messages": TALK},
        {"model": "gpt-4o", "system": "Be brief.", "messages": TALK, "max_tokens": 100},
        {"model": "deepseek-chat", "system": "Be brief.", "messages": TALK},
        {"system": "Be brief.", "messages": TALK, "stop": ["\n"]},
        {"system": "Be brief.", "messages": [ASK, calls(call()), result()]},
        {"system": "Be brief.", "messages": PARTS, "tool_choice": "auto"},
    ],
    ids=["gpt", "gpt and max_tokens", "deepseek", "stop", "tool_calls", "tool_choice"],
)
def test_a_chat_body_with_a_system_beside_the_messages_is_chat(request_: Any) -> None:
    assert found(request_) == "openai-chat"


@pytest.mark.row("B1")
@pytest.mark.parametrize(
    "request_",
    [
        {"model": "claude-sonnet-5", **ONLY_TEXT},
        {"model": "glm-4.7", "system": [text("Be brief.")], **ONLY_TEXT},
        {"model": "glm-4.7", "thinking": {"type": "enabled", "budget_tokens": 1024}, **ONLY_TEXT},
        {"system": "Be brief.", "messages": TALK},
        {"messages": [ASK, {"role": "assistant", "content": [use()]}, user([used()])]},
        {"messages": TALK, "tools": [{"name": "read", "input_schema": {"type": "object"}}]},
    ],
    ids=["claude", "glm as Claude Code asks it", "a budget", "system", "blocks", "tools"],
)
def test_an_anthropic_body_is_known_by_its_model_system_blocks_or_tools(request_: Any) -> None:
    assert found(request_) == "anthropic"


@pytest.mark.row("B1")
def test_nothing_but_texts_and_max_tokens_is_told_by_url_or_headers_and_else_is_chat() -> None:
    assert found(ONLY_TEXT) == "openai-chat"
    assert found(ONLY_TEXT, url="https://api.anthropic.com/v1/messages") == "anthropic"
    assert found(ONLY_TEXT, url="/v1/messages?beta=true") == "anthropic"
    assert found(ONLY_TEXT, headers={"Anthropic-Version": "2023-06-01"}) == "anthropic"
    assert found(ONLY_TEXT, headers=[(b"anthropic-beta", b"x")]) == "anthropic"
    assert trimtab.check(ONLY_TEXT, format="anthropic") == ()


@pytest.mark.row("B1")
@pytest.mark.parametrize(
    "request_",
    [
        {"model": "gpt-5.1", "input": "hello"},
        {"model": "gpt-5.1", "input": [user("hello")]},
        {"model": "gpt-5.1", "input": [ITEM], "previous_response_id": "resp_1"},
        {"previous_response_id": "resp_1"},
        [ITEM],
        [user([{"type": "input_text", "text": "hello"}])],
    ],
    ids=["a string", "a list", "a lone output", "state alone", "bare items", "bare input_text"],
)
def test_responses_input_may_be_a_string_a_list_or_held_by_the_server(request_: Any) -> None:
    assert found(request_) == "openai-responses"


@pytest.mark.row("B1")
@pytest.mark.parametrize(
    "request_",
    [
        {"messages": [ASK, TOOL_USE]},
        BEDROCK,
        {"messages": [], "inferenceConfig": {"maxTokens": 100}},
        {**BEDROCK, "system": [{"text": "Be brief."}]},
        BEDROCK["messages"],
        [TOOL_USE],
    ],
    ids=["toolUse", "parts without a type", "inferenceConfig", "system", "bare", "bare toolUse"],
)
def test_bedrock_messages_are_known_by_their_parts_or_by_keys_of_the_body(request_: Any) -> None:
    assert found(request_) == "bedrock"


@pytest.mark.row("B1")
@pytest.mark.parametrize(
    "request_", [{"contents": CONTENTS}, {"contents": []}, CONTENTS, {"contents": [], "tools": []}]
)
def test_gemini_is_known_by_its_contents(request_: Any) -> None:
    assert found(request_) == "gemini"


@pytest.mark.row("B1")
@pytest.mark.parametrize(
    ("request_", "name"),
    [
        (TALK, "openai-chat"),
        ([ASK, calls(call()), result()], "openai-chat"),
        ([ASK, {"role": "assistant", "content": [use()]}], "anthropic"),
        (BEDROCK["messages"], "bedrock"),
        (CONTENTS, "gemini"),
        ([ITEM], "openai-responses"),
    ],
)
def test_a_bare_list_is_known_by_its_items(request_: Any, name: str) -> None:
    assert found(request_) == name
    assert found(json.dumps(request_)) == name
    assert found(json.dumps(request_).encode()) == name


@pytest.mark.row("B1")
@pytest.mark.parametrize(
    ("request_", "more", "words"),
    [
        (b"--x\r\nContent-Disposition: form-data", {}, "JSON"),
        (b"--x\r\n", {"headers": {"Content-Type": "multipart/form-data; boundary=x"}}, "multipart"),
        (gzip.compress(b'{"messages": []}', mtime=0), {}, "compressed"),
        (b"{}", {"headers": {"content-encoding": "br"}}, "compressed"),
        (b"\xff\xfe\x00", {}, "UTF"),
        ("", {}, "JSON"),
        ("hello", {}, "JSON"),
        ("17", {}, "no request format"),
        ("[]", {}, "no request format"),
        ({"prompt_text": "hello"}, {}, "no request format"),
        ({"messages": "hello"}, {"url": "/v1/chat/completions"}, "no request format"),
        (17, {}, "dict"),
    ],
)
def test_what_is_no_request_says_so_in_one_line(request_: Any, more: Any, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as error:
        trimtab.detect(request_, **more)
    assert "\n" not in str(error.value)


@pytest.mark.row("B1")
def test_a_format_that_is_given_wins() -> None:
    request = {"model": "gpt-4o", "messages": TALK}
    assert trimtab.fit(request, window=1_000, format="anthropic").report.format == "anthropic"
    assert trimtab.fit(request, window=1_000).report.format == "openai-chat"
    with pytest.raises(InvalidSetting, match="choose one of"):
        trimtab.fit(request, window=1_000, format="openai")


# --- the order ------------------------------------------------------------------------------------

ADDRESSES = {
    "https://api.openai.com/v1/chat/completions": ("openai-chat", "openai"),
    "https://x.openai.azure.com/openai/deployments/prod/chat/completions?api-version=1": (
        "openai-chat", "azure"),
    "https://api.deepseek.com/chat/completions": ("openai-chat", "deepseek"),
    "https://api.deepseek.com/anthropic/v1/messages": ("anthropic", "anthropic"),
    "https://openrouter.ai/api/v1/chat/completions": ("openai-chat", "openrouter"),
    "https://api.moonshot.cn/v1/chat/completions": ("openai-chat", "kimi"),
    "https://open.bigmodel.cn/api/paas/v4/chat/completions": ("openai-chat", "glm"),
    "https://api.minimax.io/v1/chat/completions": ("openai-chat", "minimax"),
    "https://api.mistral.ai/v1/chat/completions": ("openai-chat", "mistral"),
    "https://api.groq.com/openai/v1/chat/completions": ("openai-chat", "groq"),
    "https://api.cerebras.ai/v1/chat/completions": ("openai-chat", "cerebras"),
    "https://dashscope.aliyuncs.com/api/v1/chat/completions": ("openai-chat", "dashscope"),
    "http://localhost:8000/v1/chat/completions": ("openai-chat", "openai"),
    "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions": (
        "openai-chat", "other"),
    "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-3/invoke": (
        "anthropic", "anthropic"),
    CONVERSE: ("bedrock", "bedrock-nova"),
}  # fmt: skip


@pytest.mark.parametrize(("url", "told"), ADDRESSES.items(), ids=ADDRESSES)
def test_the_address_tells_the_format_and_the_dialect(url: str, told: tuple[str, str]) -> None:
    detected = trimtab.detect(ONLY_TEXT, url=url)
    assert (detected.format, detected.dialect) == told
    assert "path" in detected.reason


@pytest.mark.parametrize(
    ("model", "host", "dialect"),
    [
        ("deepseek/deepseek-v4-pro", "openrouter.ai", "deepseek"),
        ("openai/gpt-5", "openrouter.ai", "openrouter"),
        ("mistral-large-2411", "x.services.ai.azure.com", "mistral-v3"),
        ("gpt-5.1", "x.openai.azure.com", "azure"),
        ("open-mixtral-8x22b", "api.mistral.ai", "mistral-v3"),
        ("moonshotai/kimi-k2-instruct", "api.groq.com", "groq"),
    ],
)
def test_who_passes_requests_on_leaves_the_rules_to_the_models_maker(
    model: str, host: str, dialect: str
) -> None:
    detected = trimtab.detect(body(ASK, model=model), url=f"https://{host}/v1/chat/completions")
    assert detected.dialect == dialect
    assert formats.find({}, detected.name)[1] == "given"


def test_headers_come_after_the_address_and_before_the_shape() -> None:
    headers = {"anthropic-version": "2023-06-01"}
    assert found(ONLY_TEXT, url="/v1/chat/completions", headers=headers) == "openai-chat"
    assert found({"model": "gpt-4o", "messages": TALK}, headers=headers) == "anthropic"
    assert found({"contents": CONTENTS}, headers={"x-goog-api-key": "k"}) == "gemini"
    amazon = {"X-Amz-Date": "20261121T000000Z"}
    assert found({"messages": []}, headers=amazon) == "bedrock"
    invoked = {**ONLY_TEXT, "anthropic_version": "bedrock-2023-05-31"}
    assert found(invoked, headers=amazon) == "anthropic"
    openai = {"OpenAI-Organization": "org"}
    assert found({"input": "hello"}, headers=openai) == "openai-responses"
    assert found({"system": "x", "messages": TALK}, headers=openai) == "openai-chat"
    assert trimtab.detect(body(ASK), headers={"api-key": "k"}).dialect == "azure"


def test_an_address_that_the_body_cannot_be_for_is_passed_over() -> None:
    assert found({"input": "hello"}, url="/v1/chat/completions") == "openai-responses"
    assert found({"contents": CONTENTS}, headers={"anthropic-version": "x"}) == "gemini"


def test_the_answer_can_be_taken_along_as_a_format() -> None:
    request = body(ASK, calls(call()), result(), ASK, model="my-alias")
    detected = trimtab.detect(request, url="https://api.mistral.ai/v1/chat/completions")
    assert detected == Detected("openai-chat", "mistral", detected.reason)
    assert detected.name == "openai-chat:mistral"
    assert trimtab.check(request) == ()
    assert [v.rule for v in doubtful.found(request, detected.name)] == ["user_after_result"]
    assert trimtab.detect({"contents": []}).name == "gemini"


def test_a_header_tells_the_version_of_anthropics_api_where_rules_differ() -> None:
    body = {
        "model": "claude-opus-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "q"}],
    }
    address = "https://api.anthropic.com/v1/messages"
    for version, name in (
        ("2023-06-01", "anthropic"),
        ("2026-10-21", "anthropic:2026-10-21"),
        ("2031-01-01", "anthropic"),
    ):
        found = trimtab.detect(body, url=address, headers={"Anthropic-Version": version})
        assert (found.name, found.dialect) == (name, "anthropic")
