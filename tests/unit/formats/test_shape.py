"""What ``check`` says of a body's shape; and that ``fit`` is not bound by it."""

from __future__ import annotations

from typing import Any

import pytest

import trimtab
from trimtab_lab.testing import StrictProvider

WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("openai-chat", {"messages": [{"role": "usr", "content": "x"}]}, "unknown_role",
     "Supported values are: 'system'"),
    ("openai-chat", {"messages": [{"content": "x"}]}, "missing_key", "'messages[0].role'"),
    ("openai-chat", {"messages": [{"role": "user", "content": 5}]}, "content_type",
     "Invalid type for 'messages[0].content'"),
    ("openai-chat", {"messages": [{"role": "user", "content": [5]}]}, "content_type",
     "'messages[0].content[0]'"),
    ("openai-responses", {"input": [{"role": "usr", "content": "x"}]}, "unknown_role",
     "'assistant', 'system', 'developer'"),
    ("openai-responses", {"input": [{"type": "message", "content": "x"}]}, "missing_key",
     "'input[0].role'"),
    ("anthropic", {"model": "claude-opus-5", "messages": [{"role": "user", "content": "x"}]},
     "missing_key", "max_tokens: Field required"),
    ("anthropic", {"messages": [{"role": "usr", "content": "x"}]}, "unknown_role",
     'Unexpected role "usr"'),
    ("anthropic", {"messages": [{"role": "user", "content": [5]}]}, "content_type",
     "messages.0.content.0"),
    ("anthropic", {"model": "claude-opus-5", "max_tokens": "9",
                   "messages": [{"role": "user", "content": "x"}]}, "content_type",
     "Input should be a valid integer"),
    ("bedrock", {"messages": [{"role": "user", "content": [{"text": "x"}]},
                              {"role": "usr", "content": [{"text": "x"}]}]},
     "unknown_role", "enum value set"),
    ("gemini", {"contents": [{"role": "usr", "parts": [{"text": "x"}]}]}, "invalid_role",
     "valid role"),
    ("gemini-interactions", {"input": [{"role": "usr", "content": "x"}]}, "unknown_role",
     "valid role"),
]  # fmt: skip


@pytest.mark.parametrize(("format", "body", "rule", "words"), WRONG)
def test_check_names_what_is_wrong_with_the_shape(
    format: Any, body: dict[str, Any], rule: str, words: str
) -> None:
    found = [one for one in trimtab.check(body, format=format) if one.rule == rule]
    assert found
    assert words in found[0].message


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "critic", "content": "x"}, {"role": "user", "content": "y"}]},
        {"messages": [{"role": "user", "content": [{"type": "hologram", "data": "x"}]}]},
    ],
)
def test_fit_carries_what_it_does_not_know(body: dict[str, Any]) -> None:
    assert trimtab.fit(body, window=9_000, format="openai-chat").request is body


def test_fit_warns_of_what_no_repair_can_mend() -> None:
    body = {"messages": [{"role": "asistant", "content": "x"}, {"role": "user", "content": 5}]}
    (warning,) = trimtab.fit(body, window=9_000, format="openai-chat").report.warnings
    assert warning.startswith("messages[0].role: 'asistant' is no role of the openai-chat format")
    assert "; did you mean assistant?, and 1 more; it is sent unchanged" in warning


def test_fit_does_not_warn_of_a_key_that_a_part_of_a_body_need_not_have() -> None:
    body = {"model": "claude-opus-5", "messages": [{"role": "user", "content": "x"}]}
    assert trimtab.fit(body, window=9_000, format="anthropic").report.warnings == ()


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
UNREAD_RESULTS: list[tuple[str, dict[str, Any]]] = [
    ("openai-chat", {"messages": [
        {"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tol", "tool_call_id": "c1", "content": "done"}, {"role": "user", "content": "y"},
    ]}),
    ("openai-responses", {"input": [
        {"role": "user", "content": "x"},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_ouput", "call_id": "c1", "output": "done"},
        {"role": "user", "content": "y"},
    ]}),
    ("anthropic", {"messages": [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "c1", "name": "f", "input": {}}]},
        {"role": "usr", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "done"}]},
        {"role": "user", "content": "y"},
    ]}),
    ("bedrock", {"messages": [
        {"role": "user", "content": [{"text": "x"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "f",
                                                       "input": {}}}]},
        {"role": "user", "content": [{"toolRslt": {"toolUseId": "c1"}}]},
    ]}),
    ("gemini", {"contents": [
        {"role": "user", "parts": [{"text": "x"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {}}}]},
        {"role": "user", "parts": [{"functionRspnse": {"id": "c1", "name": "f"}}]},
    ]}),
    ("gemini-interactions", {"input": [
        {"type": "user_input", "content": [{"type": "text", "text": "x"}]},
        {"type": "function_call", "id": "c1", "name": "f", "arguments": {}},
        {"type": "function_reslt", "call_id": "c1", "name": "f", "result": "done"},
    ]}),
]  # fmt: skip


@pytest.mark.parametrize(("format", "body"), UNREAD_RESULTS, ids=lambda one: str(one)[:12])
def test_no_result_is_invented_beside_one_that_we_cannot_read(
    format: Any, body: dict[str, Any]
) -> None:
    assert "No result" not in str(trimtab.fit(body, window=9_000, format=format).request)


def test_an_unknown_part_is_no_violation() -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "hologram", "data": "x"}]}]}
    assert trimtab.check(body) == ()


def test_the_strict_provider_refuses_it_in_the_same_words() -> None:
    import httpx

    with StrictProvider() as provider:
        body = {"model": "gpt-5.6", "messages": [{"role": "usr", "content": "x"}]}
        answer = httpx.post(f"{provider.url}/v1/chat/completions", json=body)
    assert answer.status_code == 400
    assert "'usr'" in answer.json()["error"]["message"]
