"""Parts that a provider refuses are taken out; a message left empty gets one short text."""

from __future__ import annotations

from typing import Any

import pytest
from chat_requests import said, text, user

import trimtab
from trimtab.formats.repair.content import PLACEHOLDER

EMPTY, STANDS, INSTEAD = text(""), text("stands"), text(PLACEHOLDER)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([EMPTY], [INSTEAD]),
        ([EMPTY, EMPTY, EMPTY], [INSTEAD]),
        ([EMPTY, STANDS, EMPTY], [STANDS]),
        ([STANDS], [STANDS]),
    ],
    ids=["one", "three", "around another", "none"],
)
def test_empty_texts_go_and_one_text_stands_where_nothing_else_would(
    parts: list[Any], expected: list[Any]
) -> None:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 9,
            "messages": [user("hi"), said("Hm."), user(parts)]}  # fmt: skip
    assert trimtab.repair(body).request["messages"][2]["content"] == expected


WITHOUT_ARGUMENTS: dict[str, Any] = {
    "anthropic": {
        "model": "claude-sonnet-4-5", "max_tokens": 10, "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ls"}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "a.txt"}]},
        ],
    },
    "openai-chat": {
        "model": "gpt-4o", "messages": [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "ls"}}]},
            {"role": "tool", "tool_call_id": "t1", "content": "a.txt"},
        ],
    },
    "openai-responses": {
        "model": "gpt-5.1", "input": [
            {"role": "user", "content": "Look."},
            {"type": "function_call", "call_id": "t1", "name": "ls"},
            {"type": "function_call_output", "call_id": "t1", "output": "a.txt"},
        ],
    },
    "bedrock": {
        "modelId": "anthropic.claude-sonnet-4", "toolConfig": {
            "tools": [{"toolSpec": {"name": "ls", "inputSchema": {"json": {}}}}]},
        "messages": [
            {"role": "user", "content": [{"text": "Look."}]},
            {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t1", "name": "ls"}}]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "t1", "content": [{"text": "a.txt"}]}}]},
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize("format", WITHOUT_ARGUMENTS)
def test_a_call_whose_arguments_were_left_out_gets_empty_ones(format: str) -> None:
    request = WITHOUT_ARGUMENTS[format]
    assert trimtab.check(request)
    repaired = trimtab.repair(request)
    assert not trimtab.check(repaired.request)
    assert len(repaired.report.repairs) == 1
