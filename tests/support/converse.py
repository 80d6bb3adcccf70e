"""Messages of Bedrock's Converse in few words, and the hard cases as such messages.

Knows the wire format; does not know the library under test.
"""

from __future__ import annotations

from typing import Any

MODELS = (
    *("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "eu.anthropic.claude-opus-4-6-v1"),
    *("anthropic.claude-opus-5-5-v1:0", "us.amazon.nova-pro-v1:0", "moonshot.kimi-k2-thinking"),
    *("us.meta.llama3-3-70b-instruct-v1:0", "mistral.mistral-large-2402-v1:0"),
    "us.deepseek.r1-v1:0",
)
POINT = {"cachePoint": {"type": "default"}}


def text(words: str) -> dict[str, Any]:
    """A text block."""
    return {"text": words}


def use(call_id: str, arguments: Any = None, tool: str = "Read") -> dict[str, Any]:
    """A call."""
    arguments = {"path": "a.py"} if arguments is None else arguments
    return {"toolUse": {"toolUseId": call_id, "name": tool, "input": arguments}}


def result(call_id: str, *content: Any, **more: Any) -> dict[str, Any]:
    """A result: "ok" where no content is given."""
    return {"toolResult": {"toolUseId": call_id, "content": list(content) or [text("ok")], **more}}


def thought(words: str, signature: str | None = "c2lnbmVk") -> dict[str, Any]:
    """A reasoning block; ``None``: unsigned."""
    signed = {"signature": signature} if signature is not None else {}
    return {"reasoningContent": {"reasoningText": {"text": words, **signed}}}


def user(*content: Any) -> dict[str, Any]:
    """A message of the user."""
    return {"role": "user", "content": list(content)}


def model(*content: Any) -> dict[str, Any]:
    """A message of the model."""
    return {"role": "assistant", "content": list(content)}


def document(kind: str, data: str = "JVBERi0xLjQK") -> dict[str, Any]:
    """A document block of this format."""
    return {"document": {"name": "Report", "format": kind, "source": {"bytes": data}}}


IMAGE = {"image": {"format": "png", "source": {"bytes": "iVBORw0KGgo" * 40}}}
TOOLS = {
    "tools": [
        {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}}}
        for name in ("Read", "Bash")
    ]
}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    """A request to Claude 4.5 with tools declared, unless said otherwise."""
    keys = {"modelId": MODELS[0], "messages": list(messages), "toolConfig": TOOLS, **more}
    return {key: value for key, value in keys.items() if value is not None}


def from_anthropic(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages of the hard cases as Converse messages."""
    return [
        {"role": m["role"], "content": [_block(part) for part in _parts(m["content"])]}
        for m in messages
    ]


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _block(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "tool_use":
        return use(part["id"], part["input"], part["name"])
    if part["type"] == "tool_result":
        return result(part["tool_use_id"], text(part["content"]))
    return text(part["text"])
