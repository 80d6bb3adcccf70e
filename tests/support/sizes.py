"""How big a request is, counted without the library: tokens, bytes, result chars, images.

Tokens by the convention of every published figure: o200k tokens of each string that the model
reads, + 4 a message, + 10 a call or result, no factor.  Equal numbers here and in the library's
report are a finding, not a given: nothing of the library is imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

IMAGE_TOKENS = 1_600
MESSAGE_TOKENS = 4
PAIR_TOKENS = 10
KNOWN_KEYS = {
    *("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"),
    *("reasoning_content", "reasoning", "reasoning_details", "cache_control", "prefix"),
}
"""Keys of a message that mean something; whatever else stands there is read as JSON."""


@lru_cache(maxsize=1)
def o200k() -> Callable[[str], int]:
    """Counts o200k tokens of one string; equal strings are counted once."""
    import splintr

    encode = splintr.Tokenizer.from_pretrained("o200k_base").encode_ordinary

    @lru_cache(maxsize=200_000)
    def count(text: str) -> int:
        try:
            return len(encode(text))
        except UnicodeEncodeError:  # a lone surrogate has no UTF-8
            return len(encode(text.encode("utf-8", "replace").decode()))

    return count


def tokens(request: Any, format: str, count: Callable[[str], int] | None = None) -> int:
    """Tokens of every string the model reads, + 4 a message, + 10 a call or result."""
    count = count or o200k()
    return sum(count(part) if isinstance(part, str) else part for part in _read(request, format))


def _read(request: Any, format: str) -> Iterator[str | int]:
    body = request if isinstance(request, dict) else {"messages": request}
    if format == "anthropic":
        yield from _texts(body.get("system"))
    waits = format == "anthropic" and _takes_deferred(str(body.get("model") or ""))
    loaded = set(_loaded(body["messages"])) if waits else set()
    for tool in body.get("tools") or []:
        if not (waits and tool.get("defer_loading") is True) or tool.get("name") in loaded:
            yield compact(tool)
    for function in body.get("functions") or []:
        yield compact(function)
    for message in body["messages"]:
        yield MESSAGE_TOKENS
        yield from (compact(message[key]) for key in message if key not in KNOWN_KEYS)
        yield from _texts(message.get("content"))
        if format == "openai-chat":
            yield from _chat_extras(message)


def _takes_deferred(model: str) -> bool:
    """Claude 4 and later: "claude-" and no 3, 2, 1 or "instant" behind it."""
    _, claude, version = model.lower().rpartition("claude")
    old = version.lstrip("-").split("-")[0].split(".")[0].split(":")[0]
    return bool(claude) and old not in ("3", "2", "1", "v1", "v2", "v3", "instant")


def _loaded(value: Any) -> Iterator[str]:
    """Names of tools that a search, a tool result or an addition refers to."""
    if isinstance(value, list):
        for one in value:
            yield from _loaded(one)
    elif isinstance(value, dict):
        if value.get("type") == "tool_reference":
            yield str(value.get("tool_name"))
        if value.get("type") == "tool_addition":
            yield str(value["tool"].get("name"))
        for one in value.values():
            yield from _loaded(one)


def _texts(content: Any) -> Iterator[str | int]:
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else []:
        yield from _block_strings(block)


def _block_strings(block: Any) -> Iterator[str | int]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        yield block.get("text") or ""
    elif kind == "thinking":
        thinking = block.get("thinking")
        yield thinking if isinstance(thinking, str) else compact(thinking)
    elif kind == "redacted_thinking":
        yield len(block.get("data") or "") // 5
    elif kind == "tool_use":
        yield PAIR_TOKENS
        yield block.get("name") or ""
        yield _spelled(block.get("input"))
    elif kind == "tool_result":
        yield PAIR_TOKENS
        yield from _texts(block.get("content"))
    elif kind in ("image", "image_url"):
        yield IMAGE_TOKENS
    elif kind in ("document", "file"):
        source = block.get("source") or {}
        yield source["data"] if source.get("type") == "text" else IMAGE_TOKENS
    else:
        if str(kind).endswith(("_tool_use", "_tool_result")):
            yield PAIR_TOKENS  # run by the provider itself: an ordinary pair with unknown insides
        yield compact(block)


def _chat_extras(message: dict[str, Any]) -> Iterator[str | int]:
    for key in ("reasoning_content", "reasoning"):
        if isinstance(message.get(key), str):
            yield message[key]
    for detail in message.get("reasoning_details") or []:
        yield str(detail.get("text") or detail.get("summary") or "")
        yield len(detail.get("data") or "") // 5
    if message.get("role") in ("tool", "function"):
        yield PAIR_TOKENS
    for call in message.get("tool_calls") or []:
        yield PAIR_TOKENS
        inner = call.get("function") or call.get("custom") or {}
        yield inner.get("name") or ""
        yield _spelled(inner.get("arguments", inner.get("input")))
    if isinstance(message.get("function_call"), dict):
        yield PAIR_TOKENS
        yield message["function_call"].get("name") or ""
        yield _spelled(message["function_call"].get("arguments"))


def _spelled(arguments: Any) -> str:
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else compact(arguments)


def request_bytes(request: Any) -> int:
    """Bytes of the encoded body: as given for bytes, as compact UTF-8 JSON for anything else."""
    if isinstance(request, (bytes, bytearray)):
        return len(request)
    text = request if isinstance(request, str) else compact(request)
    return len(text.encode("utf-8", "surrogatepass"))


def result_chars(request: Any, format: str) -> list[int]:
    """Characters of the text in each tool result, in order."""
    found = []
    for message in messages_of(request):
        if format == "openai-chat" and message.get("role") in ("tool", "function"):
            found.append(_chars(message.get("content")))
        elif format == "anthropic":
            results = of_type(blocks_of(message.get("content")), "tool_result")
            found += [_chars(block.get("content")) for block in results]
    return found


def _chars(content: Any) -> int:
    return sum(len(block.get("text") or "") for block in of_type(blocks_of(content), "text"))


def images(request: Any, format: str) -> int:
    """How many images the request carries, those inside tool results included."""
    kind = {"openai-chat": "image_url", "anthropic": "image"}[format]
    return sum(
        block.get("type") == kind
        for message in messages_of(request)
        for block in inside(blocks_of(message.get("content")))
    )


# --- how a request is walked through --------------------------------------------------------------


def messages_of(request: Any) -> list[Any]:
    return request["messages"] if isinstance(request, dict) else request


def blocks_of(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def of_type(blocks: list[Any], *types: str) -> list[Any]:
    return [block for block in blocks if isinstance(block, dict) and block.get("type") in types]


def inside(blocks: list[Any]) -> Iterator[dict[str, Any]]:
    """Each block, and the blocks inside a tool result."""
    for block in blocks:
        if isinstance(block, dict):
            yield block
            if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                yield from inside(block["content"])


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
