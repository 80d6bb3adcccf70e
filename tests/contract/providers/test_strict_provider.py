"""The strict provider: what it refuses and in whose words, what it answers, bills and remembers.

Knows its public face and the formats' native bodies.  The SDKs are in test_sdk_clients.py.
"""

from __future__ import annotations

import copy
import http.client
import json
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

import trimtab
from trimtab import InvalidSetting, formats
from trimtab.errors import MissingExtra
from trimtab_lab.testing import Answer, Call, Cut, Refuse, Slow, StrictProvider, styles
from trimtab_lab.testing.http_apis.refusals import _table, error_response, style_for
from trimtab_lab.testing.prefix_cache import CacheRule, PrefixCache
from trimtab_lab.testing.prompt_parts import PromptPart

PATHS = {
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "bedrock": "/model/us.anthropic.claude-opus-5-5-v1:0/converse",
    "gemini": "/v1beta/models/gemini-3.5-pro:generateContent",
}
STREAMS = {
    **PATHS,
    "bedrock": "/model/us.anthropic.claude-opus-5-5-v1:0/converse-stream",
    "gemini": "/v1beta/models/gemini-3.5-pro:streamGenerateContent?alt=sse",
}
FORMATS = pytest.mark.parametrize("format", PATHS)


def request(format: str, text: str = "Hello", *, output: int | None = None) -> dict[str, Any]:
    """A request of one user text, tools declared, asking for so many tokens."""
    schema = {"type": "object"}
    said = [{"role": "user", "content": text}]
    if format == "openai-chat":
        tool = {"type": "function", "function": {"name": "read", "parameters": schema}}
        body: dict[str, Any] = {"model": "gpt-5.1", "messages": said, "tools": [tool]}
        return body | ({"max_completion_tokens": output} if output else {})
    if format == "openai-responses":
        tool = {"type": "function", "name": "read", "parameters": schema}
        body = {"model": "gpt-5.1", "input": said, "tools": [tool]}
        return body | ({"max_output_tokens": output} if output else {})
    if format == "anthropic":
        tool = {"name": "read", "input_schema": schema}
        return {
            "model": "claude-opus-5-5", "max_tokens": output or 1, "messages": said, "tools": [tool]
        }  # fmt: skip
    if format == "bedrock":
        tool = {"toolSpec": {"name": "read", "inputSchema": {"json": schema}}}
        body = {
            "messages": [{"role": "user", "content": [{"text": text}]}],
            "toolConfig": {"tools": [tool]},
        }
        return body | ({"inferenceConfig": {"maxTokens": output}} if output else {})
    body = {
        "contents": [{"role": "user", "parts": [{"text": text}]}],
        "tools": [{"functionDeclarations": [{"name": "read"}]}],
    }
    return body | ({"generationConfig": {"maxOutputTokens": output}} if output else {})


def send(
    provider: StrictProvider, format: str, body: Any, *, stream: bool = False, path: str = ""
) -> tuple[int, bytes]:
    """Status and body of one request; streams are joined."""
    body = {**body, "stream": True} if stream and format not in ("bedrock", "gemini") else body
    where = path or (STREAMS if stream else PATHS)[format]
    where, _, query = where.partition("?")
    response = provider.respond("POST", where, query, {}, json.dumps(body).encode())
    return response.status, b"".join(response.chunks)


def told(provider: StrictProvider, format: str, body: Any, **more: Any) -> tuple[int, Any]:
    """Status and JSON body."""
    status, raw = send(provider, format, body, **more)
    return status, json.loads(raw)


def size(body: Any, format: str) -> int:
    return trimtab.measure(body, format=format, counter="o200k").total


# --- the window ------------------------------------------------------------------------------

LONG = "one two three " * 700


@FORMATS
def test_a_prompt_of_exactly_the_window_is_answered_and_one_token_more_is_not(format):
    body = request(format, LONG)
    tokens = size(body, format)
    body_output = 1 if format == "anthropic" else 0
    window = tokens + body_output
    assert send(StrictProvider(window=window), format, body)[0] == 200
    tight = StrictProvider(window=window - 1)
    assert send(tight, format, body)[0] == 400
    assert tight.requests[0].tokens == tokens
    assert tight.requests[0].refusal in ("overflow", "overflow_output")


@FORMATS
def test_requested_output_shares_the_window_except_at_gemini(format):
    body = request(format, LONG, output=500)
    window = size(body, format) + 499
    status, raw = send(StrictProvider(window=window), format, body)
    assert status == (200 if format == "gemini" else 400), raw


OVERFLOWS = [
    ("openai", "openai-chat", 400, "length is {w} tokens. However, your messages resulted in {n}"),
    ("openai", "openai-responses", 400, "Your input exceeds the context window of this model."),
    ("azure", "openai-chat", 400, "maximum context length is {w} tokens. However, your messages"),
    ("deepseek", "openai-chat", 400, "{n} tokens ({n} in the messages, 0 in the completion)"),
    ("kimi", "openai-chat", 400, "Your request exceeded model token limit: {w} (requested: {n})"),
    ("kimi", "anthropic", 400, "Invalid request Error"),
    ("glm", "openai-chat", 400, "Prompt exceeds max length"),
    ("glm", "anthropic", 400, "{n} input tokens exceeds the model's maximum context length {w}"),
    ("minimax", "openai-chat", 400, "invalid params, context window exceeds limit (2013)"),
    ("dashscope", "openai-chat", 400, "Range of input length should be [1, {w}]"),
    ("mistral", "openai-chat", 400, "{n} tokens and 0 draft tokens, too large for model with {w}"),
    ("xai", "openai-chat", 400, "maximum prompt length is {w} but the request contains {n} tokens"),
    ("groq", "openai-chat", 413, "per minute (TPM): Limit {w}, Requested {n}, please reduce"),
    ("cerebras", "openai-chat", 400, "Current length is {n} while limit is {w}"),
    ("openrouter", "openai-chat", 400, "you requested about {n} tokens ({n} of text input)"),
    ("copilot", "openai-chat", 400, "prompt token count of {n} exceeds the limit of {w}"),
    ("github-models", "openai-chat", 413, "Max size: {w} tokens."),
    ("generic", "openai-chat", 400, "model max length exceeded, max length: {w}"),
    ("vllm", "openai-chat", 400, "at least {w1} input tokens, for a total of at least {w1}"),
    ("vllm-2024", "openai-chat", 400, "However, you requested {n} tokens ({n} in the messages"),
    ("tgi", "openai-chat", 422, "must be <= {w}. Given: {n} `inputs` tokens"),
    ("llamacpp", "openai-chat", 400, "({n} tokens) exceeds the available context size ({w}"),
    ("llamacpp", "anthropic", 400, "({n} tokens) exceeds the available context size ({w}"),
    ("llamacpp-2025", "openai-chat", 500, "the request exceeds the available context size."),
    ("llama-cpp-python", "openai-chat", 400, "length is {w} tokens. However, you requested {n}"),
    ("lmstudio", "openai-chat", 400, "Trying to keep the first {n} tokens"),
    ("anthropic", "anthropic", 400, "prompt is too long: {n} tokens > {w} maximum"),
    ("anthropic-413", "anthropic", 413, "Request size exceeds model context window"),
    ("bedrock", "bedrock", 400, "Input is too long for requested model."),
    ("bedrock-numbers", "bedrock", 400, "prompt is too long: {n} tokens > {w} maximum"),
    ("gemini", "gemini", 400, "count ({n}) exceeds the maximum number of tokens allowed ({w})."),
    ("gemini-codeassist", "gemini", 400, "The input token count ({n}) exceeds"),
]  # fmt: skip


@pytest.mark.parametrize(("style", "format", "status", "words"), OVERFLOWS)
def test_an_overflow_is_refused_in_the_words_of_its_provider(style, format, status, words):
    body = request(format, LONG)
    provider = StrictProvider(window=1_000, style=style)
    got, answer = told(provider, format, body)
    expected = words.format(w=1_000, n=size(body, format), w1=1_001)
    assert got == status
    assert expected in json.dumps(answer, ensure_ascii=False)


def test_numbers_stay_numbers_where_the_body_has_them_as_fields():
    body = request("openai-chat", LONG)
    provider = StrictProvider(window=1_000, style="llamacpp")
    error = told(provider, "openai-chat", body)[1]["error"]
    assert (error["n_prompt_tokens"], error["n_ctx"]) == (size(body, "openai-chat"), 1_000)


@pytest.mark.parametrize("style", ["llama-cpp-python", "lmstudio"])
def test_a_local_server_lets_an_overflow_stream_end_before_it_began(style):
    provider = StrictProvider(window=1_000, style=style)
    assert send(provider, "openai-chat", request("openai-chat", LONG), stream=True) == (200, b"")
    assert provider.requests[0].refusal == "overflow"


def test_an_overflow_of_responses_fails_inside_the_stream():
    provider = StrictProvider(window=1_000)
    status, raw = send(provider, "openai-responses", request("openai-responses", LONG), stream=True)
    names = re.findall(r"event: (\S+)", raw.decode())
    assert (status, names) == (
        200,
        ["response.created", "response.in_progress", "response.failed"],
    )
    last = json.loads(raw.decode().strip().rpartition("data: ")[2])
    assert last["response"]["error"]["code"] == "context_length_exceeded"


@FORMATS
def test_every_format_can_say_an_overflow_inside_a_stream(format):
    provider = StrictProvider(window=1_000, overflow_as="in-stream")
    status, raw = send(provider, format, request(format, LONG), stream=True)
    assert status == 200
    assert provider.requests[0].refusal == "overflow"
    words = error_response(
        style_for(None, format), format, "overflow", {}, shape="in-stream"
    ).message
    assert words.partition("{")[0].encode() in raw


def test_ollama_forgets_the_oldest_messages_in_silence():
    history = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "Yes."}]
    body = {"messages": [*history, {"role": "user", "content": "And now?"}]}
    provider = StrictProvider(["fine"], window=1_000, style="ollama")
    status, answer = told(provider, "openai-chat", body)
    record = provider.requests[0]
    assert (status, answer["choices"][0]["message"]["content"]) == (200, "fine")
    assert answer["usage"]["prompt_tokens"] == record.tokens <= 1_000
    assert record.truncated > 1_000
    assert record.tokens + record.truncated == size(body, "openai-chat")


def test_an_overflow_can_show_in_nothing_but_the_reason_to_stop():
    provider = StrictProvider(window=1_000, style="zai")
    choice = told(provider, "openai-chat", request("openai-chat", LONG))[1]["choices"][0]
    assert choice["finish_reason"] == "model_context_window_exceeded"
    assert choice["message"]["content"] is None


@FORMATS
def test_what_fit_makes_of_a_long_conversation_is_accepted(format):
    short = StrictProvider(["ok"], window=1_200)
    body = request(format, LONG, output=100)
    assert send(short, format, body)[0] == 400
    fitted = trimtab.fit(
        body, window=1_200, format=format, settings=trimtab.Settings(counter="o200k")
    )
    assert send(short, format, fitted.request)[0] == 200, short.requests[-1].refusal


# --- bytes, results, images ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format", "status"), [("anthropic", 413), ("gemini", 400), ("bedrock", 400)]
)
def test_a_body_of_too_many_bytes_is_refused(format, status):
    body = request(format, LONG)
    exact = len(json.dumps(body).encode())
    assert send(StrictProvider(request_bytes=exact), format, body)[0] == 200
    assert send(StrictProvider(request_bytes=exact - 1), format, body)[0] == status


def history(format: str, result: str = "a result", call_id: str = "call_1") -> dict[str, Any]:
    """A request whose last turn is the result of one call."""
    body = request(format)
    if format == "openai-chat":
        call = {"id": call_id, "type": "function", "function": {"name": "read", "arguments": "{}"}}
        body["messages"] += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": call_id, "content": result},
        ]
    elif format == "openai-responses":
        call = {"type": "function_call", "call_id": call_id, "name": "read", "arguments": "{}"}
        output = {"type": "function_call_output", "call_id": call_id, "output": result}
        body["input"] += [call, output]
    elif format == "anthropic":
        call = {"type": "tool_use", "id": call_id, "name": "read", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": call_id, "content": result}
        body["messages"] += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [answer]},
        ]
    elif format == "bedrock":
        call = {"toolUse": {"toolUseId": call_id, "name": "read", "input": {}}}
        answer = {"toolResult": {"toolUseId": call_id, "content": [{"text": result}]}}
        body["messages"] += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [answer]},
        ]
    else:
        call = {"functionCall": {"name": "read", "args": {}}, "thoughtSignature": "c2ln"}
        answer = {"functionResponse": {"name": "read", "response": {"result": result}}}
        body["contents"] += [
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [answer]},
        ]
    return body


def items(body: Any) -> list[Any]:
    return next(body[key] for key in ("messages", "input", "contents") if key in body)


@FORMATS
def test_the_text_of_one_result_has_a_limit_in_characters(format):
    body = history(format, "x" * 501)
    assert send(StrictProvider(result_chars=501), format, body)[0] == 200
    provider = StrictProvider(result_chars=500)
    status, raw = send(provider, format, body)
    assert (status, provider.requests[0].refusal) == (400, "string_too_long")
    assert b"500" in raw


def test_too_many_images_are_counted_as_the_provider_counts_them():
    source = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    body = request("anthropic")
    body["messages"][0]["content"] = [{"type": "image", "source": source}] * 3
    status, answer = told(StrictProvider(images=2), "anthropic", body)
    assert status == 400
    assert answer["error"]["message"] == "too many images and documents: 3 + 0 > 2"


# --- rules -----------------------------------------------------------------------------------

ORPHANS = {
    "openai-chat": "messages with role 'tool' must be a response to a preceeding message",
    "openai-responses": "No tool call found for function call output with call_id call_1.",
    "anthropic": "messages.1.content.0: unexpected `tool_use_id` found in `tool_result`",
    "bedrock": "The number of toolResult blocks at messages.2.content exceeds",
    "gemini": "function response turn comes immediately after a function call turn.",
}
MISSING = {
    "openai-chat": "did not have response messages: call_1",
    "openai-responses": "No tool output found for function call call_1.",
    "anthropic": "ids were found without `tool_result` blocks immediately after: call_1.",
    "bedrock": "Expected toolResult blocks at messages.2.content for the following Ids: call_1",
    "gemini": "number of function response parts is equal to the number of function call parts",
}


@FORMATS
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_half_a_pair_is_refused_in_the_words_of_the_provider(format, stream):
    body = history(format)
    provider = StrictProvider()
    assert send(provider, format, body)[0] == 200
    said = {"role": "assistant", "content": [{"text": "Yes."}]}
    for gone, words in ((len(items(body)) - 2, ORPHANS), (len(items(body)) - 1, MISSING)):
        half = copy.deepcopy(body)
        del items(half)[gone]
        if words is MISSING and format in ("bedrock", "gemini", "anthropic"):
            items(half).append(items(request(format))[0])  # a user speaks instead
        elif format == "bedrock":
            items(half).insert(gone, said)  # roles must alternate
        status, raw = send(provider, format, half, stream=stream)
        assert status == 400
        assert words[format] in json.dumps(json.loads(raw), ensure_ascii=False)
        assert provider.requests[-1].violations


@pytest.mark.parametrize("format", formats.FORMATS)
def test_every_rule_that_is_refused_has_a_refusal(format):
    facts = {"message": "words of the rule"}
    for row in formats.FORMATS[format].rules.rows:
        if row.sure in ("certain", "refused"):
            made = error_response(style_for(None, format), format, f"rule:{row.name}", facts)
            assert 400 <= made.status < 500
            assert made.message


@pytest.mark.parametrize("name", styles())
def test_no_style_leaves_a_name_unfilled(name):
    facts = {
        key: 1
        for row in _table()[1].values()
        for key in re.findall(r"\{([a-z_]+)\}", str(row["body"]))
    }
    for style, format, when in _table()[1]:
        if style == name:
            made = error_response(styles()[name], format, when.removesuffix("@stream"), facts)
            assert not re.search(r"\{[a-z_]+\}", json.dumps(made.body)), when


def test_a_fifth_cache_breakpoint_is_refused():
    body = request("anthropic")
    part = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}
    body["messages"][0]["content"] = [part] * 5
    status, answer = told(StrictProvider(), "anthropic", body)
    assert status == 400
    assert (
        answer["error"]["message"]
        == "A maximum of 4 blocks with cache_control may be provided. Found 5."
    )


@pytest.mark.parametrize("body", [[], "text", 5, {"messages": ["no message"]}, {"messages": 3}, {}])
def test_nonsense_is_refused_and_never_an_error_of_the_provider(body):
    for path in PATHS.values():
        response = StrictProvider().respond("POST", path, "", {}, json.dumps(body).encode())
        assert 400 <= response.status < 500, (path, response)
    response = StrictProvider().respond("POST", PATHS["anthropic"], "", {}, b"\xff{")
    assert response.status == 400


def test_an_unknown_path_is_not_found():
    assert StrictProvider().respond("POST", "/v1/embeddings", "", {}, b"{}").status == 404
    assert StrictProvider().respond("GET", "/v1/messages", "", {}, b"").status == 404


# --- thinking --------------------------------------------------------------------------------


def thought(format: str, provider: StrictProvider, model: str = "") -> dict[str, Any]:
    """A request that carries thinking as this provider signed it, behind a first answer."""
    body = request(format)
    if model:
        body["model"] = model
    answer = told(provider, format, body)[1]
    said = answer["content"] if format == "anthropic" else answer["output"]["message"]["content"]
    text: Any = "Go on." if format == "anthropic" else [{"text": "Go on."}]
    body["messages"] += [{"role": "assistant", "content": said}, {"role": "user", "content": text}]
    return body


THINKS = [Answer("Hello.", thinking="They greet me.")]
SIGNS = pytest.mark.parametrize("format", ["anthropic", "bedrock"])


def tool_changed(body: Any) -> None:
    tools = body.get("tools") or body["toolConfig"]["tools"]
    tools.append(copy.deepcopy(tools[0]))


def system_added(body: Any) -> None:
    body["system"] = [{"text": "Be kind."} | ({"type": "text"} if "tools" in body else {})]


def first_message_changed(body: Any) -> None:
    other = request("bedrock" if "toolConfig" in body else "anthropic", "Hullo")
    body["messages"][0] = other["messages"][0]


@SIGNS
@pytest.mark.parametrize("change", [tool_changed, system_added, first_message_changed])
def test_thinking_is_refused_once_anything_before_it_has_changed(format, change):
    provider = StrictProvider(THINKS)
    body = thought(format, provider)
    assert send(provider, format, body)[0] == 200
    change(body)
    status, raw = send(provider, format, body)
    assert status == 400
    assert (
        b"messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound" in raw
    )


@SIGNS
def test_thinking_whose_text_was_edited_is_refused(format):
    provider = StrictProvider(THINKS)
    body = json.loads(json.dumps(thought(format, provider)).replace("greet me", "greet you"))
    status, raw = send(provider, format, body)
    assert (status, provider.requests[-1].refusal) == (400, "thinking_modified")
    assert b"cannot be modified" in raw


def test_what_changes_no_meaning_leaves_thinking_bound():
    provider = StrictProvider(THINKS)
    body = thought("anthropic", provider)
    body["messages"][0]["content"] = [
        {"type": "text", "text": "Hello", "cache_control": {"type": "ephemeral"}}
    ]
    assert send(provider, "anthropic", body)[0] == 200


def test_models_that_do_not_bind_take_thinking_behind_an_edit():
    provider = StrictProvider(THINKS)
    body = thought("anthropic", provider, "claude-opus-4-5")
    first_message_changed(body)
    assert send(provider, "anthropic", body)[0] == 200
    free = StrictProvider(THINKS, bind_thinking=False)
    body = thought("anthropic", free)
    first_message_changed(body)
    assert send(free, "anthropic", body)[0] == 200


def test_thinking_of_another_provider_says_nothing_here():
    provider = StrictProvider(THINKS)
    body = thought("anthropic", provider)
    body["messages"][1]["content"][0]["signature"] = "RXJyb3I="
    assert send(provider, "anthropic", body)[0] == 200


def test_drop_block_drops_what_moved_and_reports_it():
    provider = StrictProvider(THINKS)
    body = thought("anthropic", provider)
    first_message_changed(body)
    option = {"block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    status, answer = told(
        provider, "anthropic", {**body, "thinking": {"type": "adaptive", **option}}
    )
    assert status == 200
    gone = {
        "type": "thinking_dropped",
        "path": "messages.1.content.0",
        "reason": "prefix_binding_mismatch",
    }
    assert answer["input_transformations"] == [gone]
    assert provider.requests[-1].dropped == ("messages.1.content.0",)


def test_what_fit_does_to_signed_thinking_is_accepted():
    script = [
        Answer("", [Call("read", {"n": n})], thinking=f"I need file {n}, I think.")
        for n in range(6)
    ]
    provider = StrictProvider([*script, "done"])
    body = request("anthropic", "Read six files.", output=100)
    session = trimtab.Session(window=2_500, settings=trimtab.Settings(counter="o200k"))
    for n in range(6):
        answer = told(provider, "anthropic", session.fit(body).request)[1]
        call = answer["content"][-1]
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"line {n}\n" * 150}
        body["messages"] += [
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": [result]},
        ]
    assert [record.refusal for record in provider.requests] == [""] * 6
    assert len(session.journal["edits"]) > 0


def test_encrypted_reasoning_that_was_tampered_with_is_refused():
    provider = StrictProvider(THINKS)
    body = request("openai-responses")
    output = told(provider, "openai-responses", body)[1]["output"]
    body["input"] += [*output, {"role": "user", "content": "Go on."}]
    assert send(provider, "openai-responses", body)[0] == 200
    reasoning = next(item for item in body["input"] if item.get("type") == "reasoning")
    reasoning["summary"][0]["text"] = "Something else."
    status, answer = told(provider, "openai-responses", body)
    assert (status, answer["error"]["code"]) == (400, "invalid_encrypted_content")


# --- the prefix cache ------------------------------------------------------------------------


def grown(body: Any, format: str) -> Any:
    """The same request with one more exchange behind it."""
    more = copy.deepcopy(body)
    said = "Yes." if format != "bedrock" else [{"text": "Yes."}]
    if format == "gemini":
        more["contents"] += [
            {"role": "model", "parts": [{"text": "Yes."}]},
            *request(format)["contents"],
        ]
    else:
        items(more).extend([{"role": "assistant", "content": said}, *items(request(format))])
    return more


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses"])
def test_a_prefix_is_cached_in_steps_of_128_tokens(format):
    body = request(format, LONG)
    provider = StrictProvider()
    for one in (body, grown(body, format)):
        send(provider, format, one)
    tokens = size(body, format)
    assert [record.cached_tokens for record in provider.requests] == [0, tokens - tokens % 128]


def test_gemini_caches_from_its_own_minimum():
    short, long = request("gemini", LONG), request("gemini", LONG * 2)
    for body, cached in ((short, False), (long, True)):
        provider = StrictProvider()
        for one in (body, grown(body, "gemini")):
            usage = told(provider, "gemini", one)[1]["usageMetadata"]
        assert ("cachedContentTokenCount" in usage) is cached


def test_a_short_prompt_is_never_cached():
    provider = StrictProvider()
    for _ in range(2):
        send(provider, "openai-chat", request("openai-chat"))
    assert provider.requests[1].cached_tokens == 0


def test_a_change_in_front_breaks_the_cache_behind_it():
    body = request("openai-chat", LONG)
    provider = StrictProvider()
    send(provider, "openai-chat", body)
    body["tools"][0]["function"]["description"] = "Reads."
    send(provider, "openai-chat", body)
    assert provider.requests[1].cached_tokens == 0


def marked(body: Any, format: str) -> Any:
    """With a breakpoint on the last message."""
    body = copy.deepcopy(body)
    last = body["messages"][-1]
    if format == "bedrock":
        last["content"].append({"cachePoint": {"type": "default"}})
    else:
        mark = {"cache_control": {"type": "ephemeral"}}
        last["content"] = [{"type": "text", "text": last["content"], **mark}]
    return body


USAGE = {
    "anthropic": ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens"),
    "bedrock": ("cacheReadInputTokens", "cacheWriteInputTokens", "inputTokens"),
}


@SIGNS
def test_claude_caches_at_breakpoints_and_bills_what_is_written(format):
    body, provider = request(format, LONG), StrictProvider()
    longer = grown(body, format)
    tokens = [size(body, format), size(longer, format)]
    sent = (body, marked(body, format), marked(longer, format), longer)
    usages = [told(provider, format, one)[1]["usage"] for one in sent]
    bills = [[usage[key] for key in USAGE[format]] for usage in usages]
    assert bills == [
        [0, 0, tokens[0]],
        [0, tokens[0], 0],
        [tokens[0], tokens[1] - tokens[0], 0],
        [0, 0, tokens[1]],
    ]


def test_entries_expire_only_by_a_clock_that_is_given():
    now = [0.0]
    provider = StrictProvider(clock=lambda: now[0])
    body = marked(request("anthropic", LONG), "anthropic")
    for seconds in (0, 200, 299, 301):  # each use lets it live five minutes more
        now[0] += seconds
        send(provider, "anthropic", body)
    assert [bool(record.cached_tokens) for record in provider.requests] == [
        False,
        True,
        True,
        False,
    ]


def test_entries_that_expired_are_let_go_of():
    now = [0.0]
    cache, most = PrefixCache(clock=lambda: now[0]), 0
    for number in range(5_000):
        now[0] += 1
        cache.take("m", [PromptPart(0, (), None, "", str(number), 10)], CacheRule(1))
        most = max(most, len(cache))
    assert most == 1_000  # those of 300 seconds, and those that wait for the next clearing
    last = PromptPart(0, (), None, "", "4999", 10)
    assert cache.take("m", [last], CacheRule(1)).cached == 10


def test_models_share_no_cache():
    provider, body = StrictProvider(), request("openai-chat", LONG)
    for model in ("gpt-5.1", "gpt-5-mini"):
        send(provider, "openai-chat", {**body, "model": model})
    assert provider.requests[1].cached_tokens == 0


# --- scripts and faults ----------------------------------------------------------------------


def test_a_script_is_answered_in_order_and_then_its_last_word():
    provider = StrictProvider(["one", Answer("two")], answer="the rest")
    body = request("openai-chat")
    said = [
        told(provider, "openai-chat", body)[1]["choices"][0]["message"]["content"] for _ in range(4)
    ]
    assert said == ["one", "two", "the rest", "the rest"]


def test_a_script_may_be_a_function_of_the_request():
    provider = StrictProvider(lambda record: f"{record.format} {record.number}")
    answer = told(provider, "openai-chat", request("openai-chat"))[1]
    assert answer["choices"][0]["message"]["content"] == "openai-chat 1"


def test_a_refused_request_uses_up_no_answer():
    provider = StrictProvider(["the answer"], window=1_000)
    assert send(provider, "openai-chat", request("openai-chat", LONG))[0] == 400
    answer = told(provider, "openai-chat", request("openai-chat"))[1]
    assert answer["choices"][0]["message"]["content"] == "the answer"


@FORMATS
def test_requests_are_refused_k_times_and_then_answered(format):
    provider = StrictProvider([Refuse("overflow", times=3), "now"], window=5_000)
    statuses = [send(provider, format, request(format))[0] for _ in range(4)]
    assert statuses == [400, 400, 400, 200]
    assert [record.refusal for record in provider.requests] == ["overflow"] * 3 + [""]


FAULTS = [
    ("rate", "openai-chat", 429), ("rate", "anthropic", 429), ("rate", "bedrock", 429),
    ("rate", "gemini", 429), ("rate_size", "openai-chat", 429), ("rate_size", "anthropic", 429),
    ("server_error", "openai-responses", 500), ("server_error", "bedrock", 500),
    ("overloaded", "anthropic", 529), ("overloaded", "gemini", 503),
]  # fmt: skip


@pytest.mark.parametrize(("when", "format", "status"), FAULTS)
def test_a_scripted_fault_has_its_status_and_may_say_when_to_come_back(when, format, status):
    provider = StrictProvider([Refuse(when, retry_after=1.5)])
    body = json.dumps(request(format)).encode()
    response = provider.respond("POST", PATHS[format], "", {}, body)
    assert response.status == status
    assert ("retry-after", "1.5") in response.headers
    plain = StrictProvider([Refuse(when)]).respond("POST", PATHS[format], "", {}, body)
    assert not [name for name, _ in plain.headers if name == "retry-after"]


def test_a_rate_error_that_is_really_size_names_more_than_the_limit():
    provider = StrictProvider([Refuse("rate_size")], style="groq")
    status, answer = told(provider, "openai-chat", request("openai-chat", LONG))
    found = re.search(r"Limit (\d+), Requested (\d+)", answer["error"]["message"])
    assert status == 413
    assert found is not None
    assert int(found[2]) > int(found[1])


def test_a_refusal_may_have_any_status_and_body():
    provider = StrictProvider([Refuse("opaque", status=418, body={"error": "ERROR"})])
    assert told(provider, "openai-chat", request("openai-chat")) == (418, {"error": "ERROR"})


def test_an_unknown_kind_of_refusal_names_those_there_are():
    with pytest.raises(InvalidSetting, match="overflow_output"):
        send(StrictProvider([Refuse("whatever")]), "openai-chat", request("openai-chat"))


def test_clients_that_loop_are_stopped():
    provider = StrictProvider(max_requests=2)
    assert [send(provider, "gemini", request("gemini"))[0] for _ in range(3)] == [200, 200, 400]


# --- what it remembers -----------------------------------------------------------------------


def test_a_previous_response_stands_for_its_history():
    provider = StrictProvider([Answer("", [Call("read", {})]), "done"])
    first = told(provider, "openai-responses", request("openai-responses"))[1]
    call_id = first["output"][0]["call_id"]
    output = {"type": "function_call_output", "call_id": call_id, "output": "text"}
    body = {"model": "gpt-5.1", "previous_response_id": first["id"], "input": [output]}
    assert told(provider, "openai-responses", body)[1]["output"][0]["content"][0]["text"] == "done"
    assert provider.requests[1].tokens > provider.requests[0].tokens - 30
    other = {**body, "previous_response_id": "resp_unknown"}
    status, answer = told(provider, "openai-responses", other)
    assert (status, answer["error"]["code"]) == (400, "previous_response_not_found")


COUNTS = {
    "anthropic": ("/v1/messages/count_tokens", "input_tokens"),
    "openai-responses": ("/v1/responses/input_tokens", "input_tokens"),
    "gemini": ("/v1beta/models/gemini-3.5-pro:countTokens", "totalTokens"),
    "bedrock": ("/model/anthropic.claude-opus-5-5/count-tokens", "inputTokens"),
}


@pytest.mark.parametrize("format", COUNTS)
def test_tokens_can_be_counted_and_the_same_rules_hold(format):
    path, key = COUNTS[format]
    provider = StrictProvider(window=10)
    whole, half = history(format), history(format)
    del items(half)[-2]

    def wrap(body: Any) -> Any:
        return {"input": {"converse": body}} if format == "bedrock" else body

    status, answer = told(provider, format, wrap(whole), path=path)
    assert (status, answer[key]) == (200, size(whole, format))
    assert send(provider, format, wrap(half), path=path)[0] == 400
    assert [record.operation for record in provider.requests] == ["count", "count"]


def test_equal_runs_get_equal_bytes():
    def run() -> list[bytes]:
        provider = StrictProvider([Answer("x", [Call("read")], thinking="hm")] * 10)
        return [
            send(provider, format, request(format), stream=stream)[1]
            for format in PATHS
            for stream in (False, True)
        ]

    assert run() == run()


def test_the_log_says_what_became_of_each_request():
    provider = StrictProvider(window=1_000)
    send(provider, "anthropic", request("anthropic", output=7))
    record = provider.requests[0]
    assert (record.format, record.operation, record.path) == (
        "anthropic",
        "generate",
        "/v1/messages",
    )
    assert (record.model, record.output, record.stream) == ("claude-opus-5-5", 7, False)
    assert (record.status, record.refusal, record.violations) == (200, "", ())
    assert record.body == request("anthropic", output=7)


# --- over HTTP -------------------------------------------------------------------------------


def post(url: str, body: Any) -> tuple[int, bytes]:
    data = json.dumps(body).encode()
    sent = urllib.request.Request(url, data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(sent, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def test_two_providers_listen_side_by_side_and_stop():
    body = request("anthropic")
    with StrictProvider(["a"]) as one, StrictProvider(["b"], window=5) as other:
        assert one.url != other.url
        assert post(f"{one.url}/v1/messages", body)[0] == 200
        assert post(f"{other.url}/v1/messages", body)[0] == 400
        url = one.url
    with pytest.raises(OSError, match="refused"):
        post(f"{url}/v1/messages", body)
    with pytest.raises(RuntimeError, match="not started"):
        _ = one.url


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
def test_a_cut_answer_breaks_the_connection(stream):
    body = {**request("openai-chat"), "stream": stream}
    with (
        StrictProvider([Cut(100, "a long answer " * 50)]) as provider,
        pytest.raises((http.client.IncompleteRead, ConnectionError)) as caught,
    ):
        post(f"{provider.url}/v1/chat/completions", body)
    if isinstance(caught.value, http.client.IncompleteRead):
        assert len(caught.value.partial) <= 100


def test_a_slow_answer_keeps_the_client_waiting():
    with StrictProvider([Slow(first=5.0)]) as provider:
        sent = urllib.request.Request(
            f"{provider.url}/v1/chat/completions", json.dumps(request("openai-chat")).encode()
        )
        with pytest.raises(TimeoutError):
            urllib.request.urlopen(sent, timeout=0.3)


def test_a_script_that_raises_is_a_crash_and_no_refusal():
    def script(record: Any) -> Any:
        raise KeyError("my own mistake")

    with StrictProvider(script) as provider:
        assert post(f"{provider.url}/v1/messages", request("anthropic"))[0] == 500
        assert "my own mistake" in provider.crashes[0]


def test_without_a_server_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'trimtab[testing]'")):
        StrictProvider().start()


@pytest.mark.parametrize("wrong", [{"style": "nobody"}, {"window": 0}, {"request_bytes": -1}])
def test_settings_that_make_no_sense_are_refused_at_once(wrong):
    with pytest.raises(InvalidSetting):
        StrictProvider(**wrong)


def test_the_module_serves_a_script_from_a_file(tmp_path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps([
        {"text": "Reading.", "calls": [{"name": "read", "arguments": {"path": "a"}}]},
        {"refuse": "rate", "times": 1},
        "done",
    ]))  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "trimtab_lab.testing",
        "--script",
        str(script),
        "--window",
        "900",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        url = run.stdout.readline().strip()
        body = request("anthropic")
        answers = [post(f"{url}/v1/messages", body) for _ in range(3)]
        long = post(f"{url}/v1/messages", request("anthropic", LONG))
        run.send_signal(signal.SIGTERM)
        log = run.communicate(timeout=10)[1]
    assert [status for status, _ in answers] == [200, 429, 200]
    assert json.loads(answers[0][1])["stop_reason"] == "tool_use"
    assert long[0] == 400
    assert "400 anthropic" in log
    assert run.returncode == 0


def test_a_provider_that_answers_nobody_stops_at_once() -> None:
    began = time.monotonic()
    for _ in range(10):
        with StrictProvider() as provider:
            connection = http.client.HTTPConnection(provider.url.removeprefix("http://"))
            connection.request("GET", "/v1/models")
            connection.getresponse().read()  # the connection stays open
    assert time.monotonic() - began < 1, "uvicorn's own stop takes 0.2 s"


def test_a_provider_that_stops_gives_the_answer_it_has_begun() -> None:
    body = json.dumps({"model": "gpt-5.1", "messages": [{"role": "user", "content": "Hi"}]})
    statuses = list[int]()

    def ask() -> None:
        connection.request(
            "POST", "/v1/chat/completions", body, {"content-type": "application/json"}
        )
        statuses.append(connection.getresponse().status)

    with StrictProvider([Slow(first=0.4)]) as provider:
        connection = http.client.HTTPConnection(provider.url.removeprefix("http://"), timeout=9)
        asking = threading.Thread(target=ask)
        asking.start()
        while not provider.requests:
            time.sleep(0.01)
    asking.join()
    assert statuses == [200]
