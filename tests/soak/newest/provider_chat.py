"""What the servers of Chat Completions refuse, in their words; what none names passes.

Sources: developers.openai.com, api-docs.deepseek.com, docs.mistral.ai and mistral-common,
console.groq.com, inference-docs.cerebras.ai, DashScope, llama.cpp's templates, and refusals
quoted in public issues.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any


def refusal(
    body: dict[str, Any], headers: dict[str, str] | None = None, dialect: str = "openai"
) -> str | None:
    """The provider's words, or None where it answers."""
    return next(_problems(body, dialect.removeprefix("chat-")), None)


def _problems(body: dict[str, Any], dialect: str) -> Iterator[str]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1"
        return
    yield from _contents(messages, dialect)
    yield from _pairs(messages)
    yield from {
        "openai": _openai, "deepseek": _deepseek, "mistral": _mistral,
        "groq": _no_reasoning_content,
        "cerebras": _no_reasoning_content, "qwen": _json_arguments, "kimi": _kimi,
        "gemini": _gemini, "openrouter": _openai, "llamacpp": _qwen_template,
        "alternating": _alternating,
    }[dialect](body, messages)  # fmt: skip


def _calls(message: dict[str, Any]) -> list[dict[str, Any]]:
    return list(message.get("tool_calls") or ())


def _contents(messages: list[Any], dialect: str) -> Iterator[str]:
    for n, message in enumerate(messages):
        content = message.get("content")
        if content is None and not (message["role"] == "assistant" and _calls(message)):
            yield f"Invalid value for 'content': expected a string, got null. (messages.[{n}])"
        if content is not None and not isinstance(content, str | list):
            yield f"Invalid type for 'messages[{n}].content'"
        if isinstance(content, list) and not content:
            yield f"Invalid 'messages[{n}].content': empty array"
        if "tool_calls" in message and not message["tool_calls"]:
            yield f"[] is too short - 'messages.{n}.tool_calls'"


def _pairs(messages: list[Any]) -> Iterator[str]:
    owed: dict[str, int] = {}
    answered: set[str] = set()
    for n, message in enumerate(messages):
        if message["role"] == "tool":
            id = message.get("tool_call_id")
            if id in owed:
                del owed[id]
                answered.add(id)
            elif id in answered and not owed:
                yield f"Duplicate value for 'tool_call_id' of {id} in message[{n}]"
            else:
                yield (
                    f"messages with role 'tool' must be a response to a preceeding message with "
                    f"'tool_calls'. (messages.[{n}].role)"
                )
            continue
        if owed:
            break
        answered = set()
        owed = {call["id"]: n for call in _calls(message)}
    if owed:
        yield (
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            + ", ".join(owed)
        )


def _openai(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    for n, message in enumerate(messages):
        for call in _calls(message):
            name = (call.get("function") or call.get("custom") or {}).get("name", "")
            if len(call["id"]) > 40:
                yield f"Invalid 'messages[{n}].tool_calls[0].id': too long. maximum length 40"
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
                yield (
                    f"Invalid 'messages[{n}].tool_calls[0].function.name': string does not match "
                    "pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
                )


def _spans(messages: list[Any]) -> Iterator[list[tuple[int, Any]]]:
    """Runs of messages between two of the user."""
    span = list[tuple[int, Any]]()
    for n, message in enumerate(messages):
        if message["role"] == "user":
            yield span
            span = []
        else:
            span.append((n, message))
    yield span


def _deepseek(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    """Between two user messages in which a tool was called, all of it is sent back."""
    for span in _spans(messages):
        said = [(n, m) for n, m in span if m["role"] == "assistant"]
        if any(_calls(m) for _, m in said):
            for _, message in said:
                if not message.get("reasoning_content"):
                    yield (
                        "The `reasoning_content` in the thinking mode must be passed back to the "
                        "API."
                    )
    yield from _json_arguments(body, messages)


def _kimi(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    for n, message in enumerate(messages):
        if _calls(message) and not message.get("reasoning_content"):
            yield (
                "thinking is enabled but reasoning_content is missing in assistant tool call "
                f"message at index {n}"
            )


def _no_reasoning_content(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    for n, message in enumerate(messages):
        if "reasoning_content" in message:
            yield f"'messages.{n}' : property 'reasoning_content' is unsupported"


def _json_arguments(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    for message in messages:
        for call in _calls(message):
            text = (call.get("function") or {}).get("arguments")
            try:
                json.loads(text if isinstance(text, str) else "{}")
            except ValueError:
                yield (
                    '<400> InternalError.Algo.InvalidParameter: The "function.arguments" parameter '
                    "of the code model must be in JSON format."
                )


def _mistral(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    for before, message in zip([None, *messages], messages, strict=False):
        role, last = message["role"], before["role"] if before else ""
        wrong = (
            (role == "user" and last == "tool")
            or (role == "system" and last not in ("", "system"))
            or (role == "assistant" and last == "assistant")
            or (role == "tool" and last not in ("assistant", "tool"))
        )
        if wrong:
            yield f"Unexpected role '{role}' after role '{last}'"
        if role == "assistant" and not message.get("content") and not _calls(message):
            yield "Assistant message must have either content or tool_calls, but not none."
        for call in _calls(message):
            if not re.fullmatch(r"[a-zA-Z0-9]{9}", call["id"]):
                yield (
                    f"Tool call id was {call['id']} but must be a-z, A-Z, 0-9, with a length of 9."
                )
        if "reasoning_content" in message:
            yield "Extra inputs are not permitted: reasoning_content"
    ids = [call["id"] for message in messages for call in _calls(message)]
    if len(ids) != len(set(ids)):
        yield "Duplicate tool call id"
    if messages[-1]["role"] not in ("user", "tool"):
        yield (
            "Expected last role User or Tool (or Assistant with prefix True) for serving but got "
            f"{messages[-1]['role']}"
        )


def _gemini(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    """The first call of each step of the current turn carries its signature."""
    for n, message in list(_spans(messages))[-1]:
        calls = _calls(message)
        if calls and "thought_signature" not in json.dumps(calls[0]):
            yield (
                "Function call is missing a thought_signature in functionCall parts. Additional "
                f"data, function call `{calls[0]['function']['name']}`, position {n}."
            )


def _qwen_template(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    for message in messages[1:]:
        if message["role"] in ("system", "developer"):
            yield "Jinja Exception: System message must be at the beginning."
    if not any(message["role"] == "user" for message in messages):
        yield "Jinja Exception: No user query found in messages."
    if [message["role"] for message in messages[-2:]] == ["assistant", "assistant"]:
        yield "Cannot have 2 or more assistant messages at the end of the list."
    for message in messages:
        for call in _calls(message):
            try:
                json.loads(call["function"]["arguments"])
            except ValueError:
                yield "Failed to parse tool call arguments as JSON"


def _alternating(body: dict[str, Any], messages: list[Any]) -> Iterator[str]:
    said = messages[1:] if messages[0]["role"] == "system" else messages
    for n, message in enumerate(said):
        if message["role"] != ("user", "assistant")[n % 2]:
            yield (
                "Jinja Exception: Conversation roles must alternate "
                "user/assistant/user/assistant/..."
            )


def channels(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(channel, text) of everything said."""
    named = {"user": "user", "assistant": "model", "tool": "tool"}
    for message in body.get("messages") or ():
        channel = named.get(message["role"], "system")
        if message.get("content"):
            yield channel, json.dumps(message["content"], ensure_ascii=False)
        for call in _calls(message):
            yield "arguments", json.dumps(call.get("function") or call.get("custom"))
        for name in ("reasoning_content", "reasoning", "reasoning_details"):
            if message.get(name):
                yield "thinking", json.dumps(message[name], ensure_ascii=False)


def state(body: dict[str, Any]) -> set[str]:
    """Chat has no tool state."""
    return set()
