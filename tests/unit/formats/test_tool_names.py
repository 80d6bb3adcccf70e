"""Tool names that a provider's pattern refuses, arguments that were cut off, and cache marks."""

from __future__ import annotations

import json
from typing import Any

import pytest

import trimtab
from trimtab import formats
from trimtab.formats import rules
from trimtab.formats.repair.tool_names import respelled

BAD = "exec.command now"
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


def _function(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": SCHEMA}}


CHAT = {
    "model": "gpt-5.6",
    "tools": [_function(BAD), _function("fine")],
    "tool_choice": {"type": "function", "function": {"name": BAD}},
    "messages": [
        {"role": "user", "content": "x", "name": "a user"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": BAD, "arguments": "{}"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "no"},
    ],
}  # fmt: skip
RESPONSES = {
    "model": "gpt-5.6",
    "tools": [{"type": "function", "name": BAD, "parameters": SCHEMA}],
    "tool_choice": {"type": "function", "name": BAD},
    "input": [
        {"role": "user", "content": "x"},
        {"type": "function_call", "call_id": "c1", "name": BAD, "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "no"},
    ],
}
ANTHROPIC = {
    "model": "claude-opus-5",
    "max_tokens": 9,
    "tools": [{"name": BAD, "input_schema": SCHEMA}],
    "tool_choice": {"type": "tool", "name": BAD},
    "messages": [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "c1", "name": BAD, "input": {"name": "k e y"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "no"},
        ]},
    ],
}  # fmt: skip
GEMINI = {
    "tools": [{"functionDeclarations": [{"name": BAD}]}],
    "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": [BAD]}},
    "contents": [
        {"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"functionCall": {"name": BAD, "args": {"name": "k e y"}}}]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": BAD, "response": {"name": "k e y"}}},
        ]},
    ],
}  # fmt: skip
INTERACTIONS = {
    "model": "gemini-3",
    "tools": [{"type": "function", "name": BAD}],
    "input": [
        {"type": "user_input", "content": [{"type": "text", "text": "x"}]},
        {"type": "function_call", "id": "c1", "name": BAD, "arguments": {"name": "k e y"}},
        {"type": "function_result", "call_id": "c1", "name": BAD, "result": "no"},
    ],
}
BEDROCK = {
    "modelId": "anthropic.claude-opus-5-v1:0",
    "toolConfig": {
        "tools": [{"toolSpec": {"name": BAD, "inputSchema": {"json": SCHEMA}}}],
        "toolChoice": {"tool": {"name": BAD}},
    },
    "messages": [
        {"role": "user", "content": [{"text": "x"}]},
        {"role": "assistant", "content": [
            {"toolUse": {"toolUseId": "c1", "name": BAD, "input": {"name": "k e y"}}},
        ]},
        {"role": "user", "content": [
            {"toolResult": {"toolUseId": "c1", "content": [{"text": "no"}]}},
        ]},
    ],
}  # fmt: skip
EVERY = {
    "openai-chat": CHAT,
    "openai-responses": RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "gemini-interactions": INTERACTIONS,
    "bedrock": BEDROCK,
}


def repaired(request: Any, *refused: str, format: str | None = None) -> Any:
    found, _ = formats.find(request, format)
    transcript = formats.read(request, found)
    return rules.repair(request, found, transcript, refused=frozenset(refused))


@pytest.mark.parametrize("format", EVERY)
def test_a_refused_name_is_respelled_in_all_its_places_and_nowhere_else(format: str) -> None:
    request = EVERY[format]
    sent = json.dumps(repaired(request, "name_format", format=format).tree)
    assert BAD not in sent
    assert sent.count(respelled(BAD)) == json.dumps(request).count(BAD)
    assert sent.replace(respelled(BAD), BAD) == json.dumps(request)


@pytest.mark.parametrize("format", [name for name in EVERY if name != "bedrock"])
def test_a_name_is_respelled_only_after_a_refusal(format: str) -> None:
    request = EVERY[format]
    assert trimtab.fit(request, window=9_000, format=format).request is request  # type: ignore[arg-type]


def test_a_name_that_begins_with_a_digit_is_respelled_where_a_provider_refused_it() -> None:
    request = json.loads(json.dumps(CHAT).replace(BAD, "1st"))
    found, _ = formats.find(request, "openai-chat")
    read = formats.read(request, found)
    assert rules.repair(request, found, read).tree is request
    sent = rules.repair(request, found, read, refused=frozenset({"name_format"})).tree
    assert sent == json.loads(json.dumps(CHAT).replace(BAD, respelled("1st")))


def test_names_that_differ_stay_apart_and_long_ones_fit() -> None:
    names = ["a b", "a.b", "a_b", "1st", "x" * 90, "é", " "]
    spelled = [respelled(name) for name in names]
    assert len(set(spelled)) == len(names)
    assert all(len(name) <= 64 and name[0].isascii() and not name[0].isdigit() for name in spelled)


CUT = '{"path": "a.md", "text": "half of a t'


def test_arguments_that_were_cut_off_are_kept_inside_an_object() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "write", "arguments": CUT}}
    messages = [
        {"role": "user", "content": "write"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "error: cut off"},
        {"role": "user", "content": "go on"},
    ]
    for name in ("qwen3.5-plus", "gpt-5.6"):  # also where no row of this dialect knows of it
        request = {"model": name, "messages": messages}
        done = repaired(request, "arguments_cut")
        sent = done.tree["messages"][1]["tool_calls"][0]["function"]["arguments"]
        assert json.loads(sent) == {"text": CUT}
        assert [value for _, _, value in done.taken] == [CUT]
        assert trimtab.fit(request, window=9_000).request is request
    item = {"type": "function_call", "call_id": "c1", "name": "write", "arguments": CUT}
    output = {"type": "function_call_output", "call_id": "c1", "output": "error"}
    request = {"model": "qwen3.6", "input": [{"role": "user", "content": "x"}, item, output]}
    sent = repaired(request, "arguments_cut").tree["input"][1]["arguments"]
    assert json.loads(sent) == {"text": CUT}


HOUR, MINUTES = {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"}


def _marked(tool: Any, system: Any, message: Any) -> dict[str, Any]:
    text = {"type": "text", "text": "x"}
    return {
        "model": "claude-opus-5", "max_tokens": 9,
        "tools": [{"name": "a", "input_schema": {}, "cache_control": tool}],
        "system": [{**text, "cache_control": system}],
        "messages": [{"role": "user", "content": [{**text, "cache_control": message}]}],
    }  # fmt: skip


def test_a_mark_of_an_hour_behind_one_of_minutes_lasts_minutes() -> None:
    assert trimtab.check(_marked(HOUR, HOUR, MINUTES)) == ()
    request = _marked(HOUR, MINUTES, HOUR)
    (found,) = trimtab.check(request)
    assert found.rule == "mark_order"
    assert found.path == ("messages", 0, "content", 0)
    sent = trimtab.fit(request, window=9_000).request
    assert sent == _marked(HOUR, MINUTES, {**HOUR, "ttl": "5m"})
    inner = {"type": "text", "text": "r", "cache_control": HOUR}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [inner]}
    call = {"type": "tool_use", "id": "t", "name": "a", "input": {}}
    request = _marked(HOUR, HOUR, MINUTES)
    request["messages"] += [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    (found,) = trimtab.check(request)
    assert found.path == ("messages", 2, "content", 0, "content", 0)


def test_bedrock_has_the_same_order_and_no_cache_point_inside_a_result() -> None:
    point, hour = (
        {"cachePoint": {"type": "default"}},
        {"cachePoint": {"type": "default", "ttl": "1h"}},
    )
    use = {"toolUse": {"toolUseId": "t", "name": "a", "input": {}}}
    result = {"toolResult": {"toolUseId": "t", "content": [{"text": "r"}, point]}}
    request = {
        "modelId": "anthropic.claude-opus-5-v1:0",
        "toolConfig": {"tools": [{"toolSpec": {"name": "a", "inputSchema": {"json": {}}}}]},
        "system": [{"text": "s"}, hour],
        "messages": [
            {"role": "user", "content": [{"text": "x"}, point]},
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ],
    }
    assert trimtab.check(request) == ()
    sent = repaired(request, "nested_mark").tree["messages"][2]["content"]
    assert sent == [{"toolResult": {"toolUseId": "t", "content": [{"text": "r"}]}}, point]
    request["messages"][0]["content"][1] = hour
    request["system"] = [{"text": "s"}, point]
    assert [found.rule for found in trimtab.check(request)] == ["mark_order"]
