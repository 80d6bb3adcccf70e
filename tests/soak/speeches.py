"""How a client speaks each of the six formats: asks, takes an answer, gives results.

A history is a list of the format's own messages; an answer goes back into it as it came.  Knows
the wire formats alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
Wire = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A call of the model: its id ("" where there is none), its tool, and what it was given."""

    id: str
    tool: str
    given: str


@dataclass(frozen=True)
class Speech:
    """``key``: where the history stands in a body; ``said``: the messages of an answer."""

    format: str
    model: str
    path: str
    key: str
    head: Wire
    user: Callable[[str], Wire]
    said: Callable[[Any], list[Wire]]
    calls: Callable[[Wire], Iterator[Asked]]
    results: Callable[[Sequence[tuple[Asked, str]]], list[Wire]]

    def body(self, messages: list[Wire]) -> Wire:
        """A request."""
        return {**self.head, self.key: messages}


def _chat_calls(message: Wire) -> Iterator[Asked]:
    for call in message.get("tool_calls") or ():
        yield Asked(call["id"], call["function"]["name"], call["function"]["arguments"])


CHAT = Speech(
    "openai-chat", "gpt-5.1", "/v1/chat/completions", "messages",
    {"model": "gpt-5.1", "max_completion_tokens": 1_000, "tools": [
        {"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]},
    lambda text: {"role": "user", "content": text},
    lambda answer: [answer["choices"][0]["message"]],
    _chat_calls,
    lambda given: [{"role": "tool", "tool_call_id": call.id, "content": text}
                   for call, text in given],
)  # fmt: skip


def _response_calls(item: Wire) -> Iterator[Asked]:
    if item["type"] == "function_call":
        yield Asked(item["call_id"], item["name"], item["arguments"])


RESPONSES = Speech(
    "openai-responses", "gpt-5.1", "/v1/responses", "input",
    {"model": "gpt-5.1", "max_output_tokens": 1_000, "store": False,
     "include": ["reasoning.encrypted_content"],
     "tools": [{"type": "function", "name": "bash", "parameters": SCHEMA, "strict": False}]},
    lambda text: {"type": "message", "role": "user", "content": text},
    lambda answer: list(answer["output"]),
    _response_calls,
    lambda given: [{"type": "function_call_output", "call_id": call.id, "output": text}
                   for call, text in given],
)  # fmt: skip


def _claude_calls(message: Wire) -> Iterator[Asked]:
    for part in message["content"]:
        if part["type"] == "tool_use":
            yield Asked(part["id"], part["name"], json.dumps(part["input"]))


CLAUDE = Speech(
    "anthropic", "claude-opus-5-5", "/v1/messages", "messages",
    {"model": "claude-opus-5-5", "max_tokens": 1_000,
     "tools": [{"name": "bash", "input_schema": SCHEMA}]},
    lambda text: {"role": "user", "content": text},
    lambda answer: [{"role": "assistant", "content": answer["content"]}],
    _claude_calls,
    lambda given: [{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": call.id, "content": text} for call, text in given]}],
)  # fmt: skip


def _converse_calls(message: Wire) -> Iterator[Asked]:
    for part in message["content"]:
        if use := part.get("toolUse"):
            yield Asked(use["toolUseId"], use["name"], json.dumps(use["input"]))


_CONVERSE_MODEL = "us.anthropic.claude-opus-5-5-v1:0"
CONVERSE = Speech(
    "bedrock", _CONVERSE_MODEL, f"/model/{_CONVERSE_MODEL}/converse", "messages",
    {"inferenceConfig": {"maxTokens": 1_000}, "toolConfig": {"tools": [
        {"toolSpec": {"name": "bash", "inputSchema": {"json": SCHEMA}}}]}},
    lambda text: {"role": "user", "content": [{"text": text}]},
    lambda answer: [answer["output"]["message"]],
    _converse_calls,
    lambda given: [{"role": "user", "content": [
        {"toolResult": {"toolUseId": call.id, "content": [{"text": text}]}}
        for call, text in given]}],
)  # fmt: skip


def _gemini_calls(message: Wire) -> Iterator[Asked]:
    for part in message.get("parts") or ():
        if call := part.get("functionCall"):
            yield Asked(call.get("id") or "", call["name"], json.dumps(call.get("args") or {}))


def _gemini_result(call: Asked, text: str) -> Wire:
    named = {"id": call.id} if call.id else {}
    return {"functionResponse": {**named, "name": call.tool, "response": {"result": text}}}


_GEMINI_MODEL = "gemini-3.5-pro"
GEMINI = Speech(
    "gemini", _GEMINI_MODEL, f"/v1beta/models/{_GEMINI_MODEL}:generateContent", "contents",
    {"generationConfig": {"maxOutputTokens": 1_000}, "tools": [
        {"functionDeclarations": [{"name": "bash", "parameters": SCHEMA}]}]},
    lambda text: {"role": "user", "parts": [{"text": text}]},
    lambda answer: [answer["candidates"][0]["content"]],
    _gemini_calls,
    lambda given: [{"role": "user", "parts": [_gemini_result(*one) for one in given]}],
)  # fmt: skip


def _step_calls(step: Wire) -> Iterator[Asked]:
    if step["type"] == "function_call":
        yield Asked(step["id"], step["name"], json.dumps(step["arguments"]))


INTERACTIONS = Speech(
    "gemini-interactions", _GEMINI_MODEL, "/v1beta/interactions", "input",
    {"model": _GEMINI_MODEL, "store": False, "generation_config": {"max_output_tokens": 1_000},
     "tools": [{"type": "function", "name": "bash", "parameters": SCHEMA}]},
    lambda text: {"type": "user_input", "content": [{"type": "text", "text": text}]},
    lambda answer: list(answer["steps"]),
    _step_calls,
    lambda given: [{"type": "function_result", "call_id": call.id, "name": call.tool,
                    "result": text} for call, text in given],
)  # fmt: skip

SPEECHES = (CLAUDE, CHAT, RESPONSES, CONVERSE, GEMINI, INTERACTIONS)
