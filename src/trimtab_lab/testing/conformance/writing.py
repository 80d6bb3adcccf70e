"""Writes a story as a request body of each format, including the story's defects."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from typing import Any

from trimtab_lab.testing.conformance.stories import (
    CODE,
    DEFERRED,
    SEARCH,
    TOOLS,
    Story,
    StoryCall,
    StoryTurn,
)

Body = dict[str, Any]

_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("path", "command", "content")},
}
_ABOUT = "Reads, runs, searches or writes."

MODELS = {
    "openai-chat": "gpt-4o",
    "openai-responses": "gpt-5.4",
    "anthropic": "claude-opus-5",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "gemini": "gemini-2.5-pro",
    "gemini-interactions": "gemini-3.8-flash",
}
"""The model that each format's requests name."""


def write(story: Story, format: str) -> Body:
    """The request body."""
    return _WRITERS[format](story)


def _ordered(turn: StoryTurn, said: list[Body], results: list[Body]) -> list[Body]:
    """What a turn's model said and its results, in the order that the story gives them."""
    if turn.lost:
        return results
    return [*results, *said] if turn.early else [*said, *results]


def sealed(text: str) -> str:
    """A fake signature or encrypted payload for a text."""
    return base64.b64encode(hashlib.sha512(text.encode()).digest()).decode()


# --- OpenAI Chat Completions -----------------------------------------------------------------


def _chat(story: Story) -> Body:
    messages: list[Body] = [{"role": "system", "content": story.system}]
    for turn in story.turns:
        messages += _chat_turn(turn)
    tools = [{"type": "function", "function": _function(name, "parameters")} for name in TOOLS]
    return {"model": MODELS["openai-chat"], "tools": tools, "messages": messages}


def _function(name: str, schema: str) -> Body:
    return {"name": name, "description": _ABOUT, schema: _SCHEMA}


def _chat_turn(turn: StoryTurn) -> list[Body]:
    if turn.speaker != "model":
        return [{"role": turn.speaker, "content": turn.text}]
    message: Body = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function",
             "function": {"name": call.tool, "arguments": json.dumps(call.arguments)}}
            for call in turn.calls
        ]  # fmt: skip
    results = [
        {"role": "tool", "tool_call_id": call.id, "content": call.result} for call in turn.results
    ]
    return _ordered(turn, [message], results)


# --- OpenAI Responses ------------------------------------------------------------------------


def _responses(story: Story) -> Body:
    items: list[Body] = []
    if story.summary:
        items.append({"type": "compaction", "id": f"cmp_{0:048x}",
                      "encrypted_content": sealed(story.summary)})  # fmt: skip
    for number, turn in enumerate(story.turns):
        items += _responses_turn(number, turn)
    tools = [{"type": "function", **_function(name, "parameters")} for name in TOOLS]
    if SEARCH in story.offers:
        tools += [{"type": "tool_search"}, *map(_deferred_function, DEFERRED)]
    return {"model": MODELS["openai-responses"], "instructions": story.system, "tools": tools,
            "store": False, "input": items}  # fmt: skip


def _deferred_function(name: str) -> Body:
    return {"type": "function", **_function(name, "parameters"), "defer_loading": True}


def _responses_turn(number: int, turn: StoryTurn) -> list[Body]:
    if turn.speaker != "model":
        return [_item(turn.speaker, {"type": "input_text", "text": turn.text})]
    items: list[Body] = []
    if turn.thinking:
        items.append({"type": "reasoning", "id": f"rs_{number:08}", "summary": [],
                      "encrypted_content": sealed(turn.thinking)})  # fmt: skip
    if turn.text:
        message = _item("assistant", {"type": "output_text", "text": turn.text})
        items.append({**message, "id": f"msg_{number:08}"} if turn.thinking else message)
    for place, call in enumerate(turn.calls):
        if call.finds:
            items += _responses_search(call)
            continue
        item_id = {"id": f"fc_{number:06}{place:02}"} if turn.thinking else {}
        items.append({"type": "function_call", **item_id, "call_id": call.id, "name": call.tool,
                      "arguments": json.dumps(call.arguments)})  # fmt: skip
    results = [_responses_result(call) for call in turn.results]
    return _ordered(turn, items, results)


def _responses_search(call: StoryCall) -> list[Body]:
    ran = {"execution": "server" if call.by_server else "client", "status": "completed",
           "call_id": None if call.by_server else call.id}  # fmt: skip
    search = {"type": "tool_search_call", **ran, "arguments": call.arguments}
    return [search, _responses_result(call)] if call.by_server else [search]


def _responses_result(call: StoryCall) -> Body:
    if not call.finds:
        return {"type": "function_call_output", "call_id": call.id, "output": call.result}
    return {"type": "tool_search_output", "status": "completed",
            "execution": "server" if call.by_server else "client",
            "call_id": None if call.by_server else call.id,
            "tools": [_deferred_function(call.finds)]}  # fmt: skip


def _item(role: str, part: Body) -> Body:
    return {"type": "message", "role": role, "content": [part]}


# --- Anthropic Messages ----------------------------------------------------------------------


def _anthropic(story: Story) -> Body:
    messages: list[Body] = []
    if story.summary:
        block = {"type": "compaction", "content": story.summary,
                 "encrypted_content": sealed(story.summary)}  # fmt: skip
        messages.append({"role": "assistant", "content": [block]})
    for turn in story.turns:
        messages += _claude_turn(turn, _claude_part, _claude_result)
    tools: list[Body] = [_function(name, "input_schema") for name in TOOLS]
    if CODE in story.offers:
        tools.append({"type": _CODE_TYPE, "name": CODE})
    if SEARCH in story.offers:
        deferred = [{**_function(one, "input_schema"), "defer_loading": True} for one in DEFERRED]
        search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
        tools += [search, _function(SEARCH, "input_schema"), *deferred]
    return {"model": MODELS["anthropic"], "max_tokens": 64, "system": story.system,
            "tools": tools, "messages": messages}  # fmt: skip


def _claude_turn(
    turn: StoryTurn, part: Callable[[str, Any], Body], result: Callable[[StoryCall], Body]
) -> list[Body]:
    """A turn in Anthropic's and Bedrock's form: results are in a user message."""
    if turn.speaker == "user":
        return [{"role": "user", "content": [part("text", turn.text)]}]
    if turn.speaker == "system":
        directives = {"output_config": {"effort": turn.effort}} if turn.effort else {}
        content = [part("text", turn.text)] if turn.text else []
        return [{"role": "system", "content": content, **directives}]
    parts = [_server_result(call) for call in turn.answered]
    parts += [part("thinking", turn.thinking)] if turn.thinking else []
    parts += [part("text", turn.text)] if turn.text else []
    for call in turn.calls:
        parts.append(part("call", call))
        if call.by_server and call.finds:
            parts.append(_server_result(call))
    results = [{"role": "user", "content": [result(call) for call in turn.results]}]
    return _ordered(
        turn, [{"role": "assistant", "content": parts}], results if turn.results else []
    )


_CODE_TYPE = "code_execution_20260120"


def _claude_part(kind: str, value: Any) -> Body:
    if kind == "thinking":
        return {"type": "thinking", "thinking": value, "signature": sealed(value)}
    if kind == "call":
        return _claude_call(value)
    return {"type": "text", "text": value}


def _claude_call(call: StoryCall) -> Body:
    if not call.by_server:
        return {"type": "tool_use", "id": call.id, "name": call.tool, "input": call.arguments}
    name = "tool_search_tool_regex" if call.finds else call.tool
    return {"type": "server_tool_use", "id": f"srvtoolu_{call.id}", "name": name,
            "input": call.arguments}  # fmt: skip


def _server_result(call: StoryCall) -> Body:
    kind = "tool_search_tool_result" if call.finds else "code_execution_tool_result"
    content: Body = {"type": "code_execution_result", "stdout": call.result, "stderr": "",
                     "return_code": 0, "content": []}  # fmt: skip
    if call.finds:
        found = [_reference(call.finds)]
        content = {"type": "tool_search_tool_search_result", "tool_references": found}
    return {"type": kind, "tool_use_id": f"srvtoolu_{call.id}", "content": content}


def _reference(tool: str) -> Body:
    return {"type": "tool_reference", "tool_name": tool}


def _claude_result(call: StoryCall) -> Body:
    failed = {"is_error": True} if call.error else {}
    content = [_reference(call.finds)] if call.finds else call.result
    return {"type": "tool_result", "tool_use_id": call.id, "content": content, **failed}


# --- Bedrock Converse ------------------------------------------------------------------------


def _bedrock(story: Story) -> Body:
    messages: list[Body] = []
    for turn in story.turns:
        messages += _claude_turn(turn, _bedrock_part, _bedrock_result)
    specs = [
        {"toolSpec": {"name": name, "description": _ABOUT, "inputSchema": {"json": _SCHEMA}}}
        for name in TOOLS
    ]
    return {"modelId": MODELS["bedrock"], "system": [{"text": story.system}],
            "toolConfig": {"tools": specs}, "messages": messages}  # fmt: skip


def _bedrock_part(kind: str, value: Any) -> Body:
    if kind == "thinking":
        return {"reasoningContent": {"reasoningText": {"text": value, "signature": sealed(value)}}}
    if kind == "call":
        return {"toolUse": {"toolUseId": value.id, "name": value.tool, "input": value.arguments}}
    return {"text": value}


def _bedrock_result(call: StoryCall) -> Body:
    status = {"status": "error"} if call.error else {}
    return {"toolResult": {"toolUseId": call.id, "content": [{"text": call.result}], **status}}


# --- Gemini ----------------------------------------------------------------------------------


def _gemini(story: Story) -> Body:
    contents: list[Body] = []
    for turn in story.turns:
        contents += _gemini_turn(turn)
    declared = [_function(name, "parameters") for name in TOOLS]
    return {"systemInstruction": {"parts": [{"text": story.system}]},
            "tools": [{"functionDeclarations": declared}], "contents": contents}  # fmt: skip


def _gemini_turn(turn: StoryTurn) -> list[Body]:
    if turn.speaker == "user":
        return [{"role": "user", "parts": [{"text": turn.text}]}]
    parts: list[Body] = [{"text": turn.text}] if turn.text else []
    signed = {"thoughtSignature": sealed(turn.thinking)} if turn.thinking else {}
    for call in turn.calls:
        function = {"id": call.id, "name": call.tool, "args": call.arguments}
        parts.append({"functionCall": function, **signed})
        signed = {}
    results = [
        {"functionResponse": {"id": call.id, "name": call.tool,
                              "response": {"error" if call.error else "result": call.result}}}
        for call in turn.results
    ]  # fmt: skip
    answered = [{"role": "user", "parts": results}] if results else []
    return _ordered(turn, [{"role": "model", "parts": parts}], answered)


def _interactions(story: Story) -> Body:
    steps: list[Body] = []
    for turn in story.turns:
        steps += _interactions_turn(turn)
    tools = [{"type": "function", **_function(name, "parameters")} for name in TOOLS]
    return {"model": MODELS["gemini-interactions"], "system_instruction": story.system,
            "tools": tools, "store": False, "input": steps}  # fmt: skip


def _interactions_turn(turn: StoryTurn) -> list[Body]:
    text = [{"type": "text", "text": turn.text}]
    if turn.speaker == "user":
        return [{"type": "user_input", "content": text}]
    steps: list[Body] = []
    if turn.thinking:
        steps.append({"type": "thought", "signature": sealed(turn.thinking)})
    if turn.text:
        steps.append({"type": "model_output", "content": text})
    steps += [
        {"type": "function_call", "id": c.id, "name": c.tool, "arguments": c.arguments}
        for c in turn.calls
    ]
    results = [
        {"type": "function_result", "call_id": c.id, "name": c.tool, "result": c.result,
         **({"is_error": True} if c.error else {})}
        for c in turn.results
    ]  # fmt: skip
    return _ordered(turn, steps, results)


_WRITERS: dict[str, Callable[[Story], Body]] = {
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "bedrock": _bedrock,
    "gemini": _gemini,
    "gemini-interactions": _interactions,
}
FORMATS = tuple(_WRITERS)

MESSAGES_KEY = {
    "openai-chat": "messages",
    "openai-responses": "input",
    "anthropic": "messages",
    "bedrock": "messages",
    "gemini": "contents",
    "gemini-interactions": "input",
}
"""Format → the key of a body that has its messages."""
