"""The request in the arguments of LiteLLM's functions: chat completions, Messages, Responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trimtab.clients.request_target import RequestTarget
from trimtab.formats.registry import FormatName
from trimtab.retry.learned_limits import key_for


@dataclass(frozen=True, slots=True)
class CallKind:
    """One kind of call: its format, and the arguments that make up its body.  ``messages``: the one
    with the history."""

    format: FormatName
    messages: str
    arguments: tuple[str, ...]


CHAT = CallKind(
    "openai-chat", "messages",
    ("messages", "model", "tools", "functions", "max_tokens", "max_completion_tokens"),
)  # fmt: skip
MESSAGES = CallKind(
    "anthropic", "messages",
    ("messages", "model", "system", "tools", "thinking", "max_tokens", "context_management"),
)  # fmt: skip
RESPONSES = CallKind(
    "openai-responses", "input",
    ("input", "model", "instructions", "tools", "max_output_tokens", "previous_response_id",
     "conversation", "store", "context_management"),
)  # fmt: skip
DECISIVE = ("tool_choice", "response_format", "text", "n", "store")
"""Further arguments that decide whether a request can have a tool of ours."""
KINDS = {
    "completion": CHAT, "acompletion": CHAT, "anthropic_messages": MESSAGES,
    "responses": RESPONSES, "aresponses": RESPONSES,
}  # fmt: skip
"""By the name of LiteLLM's function."""


def body_of(arguments: Mapping[str, Any], kind: CallKind = CHAT) -> dict[str, Any]:
    """The request in the arguments, with messages that are objects turned into dicts."""
    body = {key: arguments[key] for key in kind.arguments if arguments.get(key) is not None}
    messages = body.get(kind.messages)
    if isinstance(messages, (list, tuple)):
        plain = [as_dict(message) for message in messages]
        same = all(old is new for old, new in zip(messages, plain, strict=True))
        body[kind.messages] = messages if same and isinstance(messages, list) else plain
    return body


def with_body(
    arguments: Mapping[str, Any], body: Mapping[str, Any], kind: CallKind
) -> dict[str, Any]:
    """The arguments with another request."""
    gone = {key for key in kind.arguments if arguments.get(key) is not None and key not in body}
    return {**{key: arguments[key] for key in arguments if key not in gone}, **body}


def as_dict(value: Any) -> Any:
    """A message or an answer as JSON."""
    if isinstance(value, Mapping) or not hasattr(value, "model_dump"):
        return value
    return value.model_dump(exclude_none=True)


def request_target(arguments: Mapping[str, Any], kind: CallKind = CHAT) -> RequestTarget:
    """Where a request goes."""
    model = str(arguments.get("model") or "")
    host = str(arguments.get("api_base") or arguments.get("base_url") or "litellm")
    key = key_for(host, model, str(arguments.get("api_key") or ""))
    return RequestTarget(kind.format, key, None, bool(arguments.get("stream")))
