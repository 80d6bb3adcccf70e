"""How a chat request is recognised, also beside Anthropic's, which differs from it in little."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trimtab.formats.openai_chat.format import ROLES

_KEYS = (
    *("max_completion_tokens", "frequency_penalty", "presence_penalty", "logit_bias", "logprobs"),
    *("top_logprobs", "n", "response_format", "seed", "stop", "stream_options", "modalities"),
    *("parallel_tool_calls", "reasoning_effort", "functions", "function_call", "prediction"),
    *("verbosity", "prompt_cache_key", "enable_thinking"),
)
"""Keys of a body that Chat Completions (or a compatible server) has and Anthropic does not."""
_PARTS = ("image_url", "input_audio", "file")
_CLAUDE = re.compile(r"claude|anthropic")
_OPENAI = re.compile(r"(^|[/.])(gpt-|chatgpt|o\d)")


_BLOCKS = ("tool_use", "tool_result", "server_tool_use")
"""Types of Anthropic's blocks that gateways take in chat messages."""


def detect(tree: Any) -> str | None:
    """A ``messages`` list (or a bare list) whose items have a role this format uses."""
    messages = tree if isinstance(tree, list) else tree.get("messages")
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        return None
    for message in messages:
        for key in ("tool_calls", "function_call", "tool_call_id", "reasoning_content"):
            if message.get(key) is not None:
                return f"a message has {key}"
        if message.get("role") in ("tool", "function", "developer"):
            return f"a message has the role {message['role']}"
    if isinstance(tree, dict) and _chat_tools(tree.get("tools")):
        return "tools are declared as functions"
    if messages and all(m.get("role") in ROLES for m in messages):
        return "messages with role and content"
    return None


def _chat_tools(tools: Any) -> bool:
    return isinstance(tools, list) and any(
        isinstance(tool, dict) and tool.get("type") in ("function", "custom") and "name" not in tool
        for tool in tools
    )


def not_anthropic(tree: Any) -> str | None:
    """The reason why this can only be Chat Completions; None if there is none."""
    if not isinstance(tree, dict) or not isinstance(tree.get("messages"), list):
        return None
    messages = [message for message in tree["messages"] if isinstance(message, dict)]
    if _anthropic_only(tree, messages):
        return None
    own_key = next((key for key in _KEYS if tree.get(key) is not None), None)
    if own_key:
        return f"the body has {own_key}"
    choice = tree.get("tool_choice")
    if isinstance(choice, str) or (isinstance(choice, dict) and choice.get("type") == "function"):
        return "tool_choice as Chat Completions has it"
    for message in messages:
        for part in _parts(message):
            if part.get("type") in _PARTS:
                return f"a message has a part of type {part['type']}"
    return _by_model(tree, messages)


def _parts(message: Any) -> Iterator[Any]:
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict):
            yield part


def _anthropic_only(tree: Any, messages: list[Any]) -> bool:
    """Whether there are tools with ``input_schema``, or Anthropic's blocks and no chat messages."""
    tools = tree.get("tools")
    if any(
        isinstance(tool, dict) and "input_schema" in tool
        for tool in (tools if isinstance(tools, list) else ())
    ):
        return True
    chat = any(m.get("tool_calls") or m.get("role") in ("tool", "function") for m in messages)
    blocks = ("tool_use", "tool_result", "server_tool_use", "redacted_thinking")
    return not chat and any(p.get("type") in blocks for m in messages for p in _parts(m))


def _by_model(tree: Any, messages: list[Any]) -> str | None:
    """The reason, if the model is no Claude and the body lacks what Anthropic's API requires."""
    model = str(tree.get("model") or "").lower()
    if not model or _CLAUDE.search(model):
        return None
    if messages and messages[0].get("role") == "system":
        return f"a first message of the system, and the model {model}"
    thinking = tree.get("thinking")
    budget = isinstance(thinking, dict) and "budget_tokens" in thinking
    beside = isinstance(tree.get("system"), list) or budget
    if _OPENAI.search(model) or (tree.get("max_tokens") is None and not beside):
        return f"the model {model}"
    return None


def is_own(message: Mapping[str, Any]) -> bool:
    """A message of a tool, one with calls, or one with Anthropic's blocks."""
    if message.get("role") in ("tool", "function") or message.get("tool_calls"):
        return True
    return any(part.get("type") in _BLOCKS for part in _parts(message))
