"""What a provider can say that is learned from: a limit, a name, a field, a count.

Each as a refusal in a real provider's words, and as the condition under which it would be true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

Body = dict[str, Any]


def tokens_of(body: Body) -> int:
    """What a provider counts that has the tokenizer o200k, without images."""
    return len(_tokenizer().encode(re.sub(r"[A-Za-z0-9+/=]{80,}", "", "\n".join(_texts(body)))))


@cache
def _tokenizer() -> Any:
    import splintr

    return splintr.Tokenizer.from_pretrained("o200k_base")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _results(body: Body) -> Iterator[str]:
    for message in body.get("messages") or body.get("input") or ():
        if message.get("role") == "tool" or str(message.get("type")).endswith("_output"):
            yield "".join(_texts(message.get("content") or message.get("output") or ""))
        for part in (
            message.get("content") or () if isinstance(message.get("content"), list) else ()
        ):
            if part.get("type") == "tool_result":
                yield "".join(_texts(part.get("content")))


def longest_result(body: Body) -> int:
    """Characters of the longest tool result."""
    return max(map(len, _results(body)), default=0)


def bytes_of(body: Body) -> int:
    """Bytes of a body without spaces between its values: no encoding has fewer."""
    return len(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())


def images_of(body: Body) -> int:
    """Images of a body."""
    return len(re.findall(r'"type": "(?:image|image_url|input_image)"', json.dumps(body)))


def _openai_error(message: str, **more: Any) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


def _claude_error(message: str, kind: str = "invalid_request_error") -> Any:
    return {"type": "error", "error": {"type": kind, "message": message}}


@dataclass(frozen=True)
class Signal:
    """Something that a provider says.

    ``says(body)``: (status, JSON) of the refusal, for this body; None where a true limit lets it
    pass.  ``counts``: instead, the tokens that an answer claims.
    """

    name: str
    format: str
    host: str
    model: str
    says: Callable[[Body], tuple[int, Any]] | None = None
    holds: Callable[[Body], bool] | None = None
    counts: Callable[[int], int] | None = None
    window: int | None = 200_000
    sends: int = 3
    everywhere: bool = True
    """Whether a true limit is known for other conversations, too: a size, a count, a name."""


def _window(body: Body) -> tuple[int, Any]:
    size = tokens_of(body)
    return 400, _openai_error(
        f"This model's maximum context length is 3000 tokens. However, your messages resulted in "
        f"{max(size, 3_400)} tokens. Please reduce the length of the messages.",
        param="messages", code="context_length_exceeded",
    )  # fmt: skip


def _claude_window(body: Body) -> tuple[int, Any]:
    size = max(tokens_of(body), 3_400)
    return 400, _claude_error(f"prompt is too long: {size} tokens > 3000 maximum")


def _unnamed_window(body: Body) -> tuple[int, Any]:
    return 400, _openai_error(
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.", code="context_length_exceeded",
    )  # fmt: skip


def _bytes(body: Body) -> tuple[int, Any]:
    size = bytes_of(body)
    return 400, _openai_error(f"total message size {max(size, 12_001)} exceeds limit 12000")


def _bare(body: Body) -> tuple[int, Any]:
    metadata = {"raw": "ERROR", "provider_name": "X"}
    return 400, {"error": {"message": "Provider returned error", "code": 400, "metadata": metadata}}


def _images(body: Body) -> tuple[int, Any]:
    count = max(images_of(body), 3)
    return 400, _openai_error(f"The request contains {count} images, exceeding the maximum of 2")


def _claude_images(body: Body) -> tuple[int, Any]:
    count = max(images_of(body), 3)
    return 400, _claude_error(f"messages: too many images and documents: {count} + 0 > 2")


def _long_string(body: Body) -> tuple[int, Any]:
    n, size = max(
        ((n, len(m["content"])) for n, m in enumerate(body["messages"])
         if isinstance(m.get("content"), str)), key=lambda row: row[1],
    )  # fmt: skip
    return 400, _openai_error(
        f"Invalid 'messages[{n}].content': string too long. Expected a string with maximum length "
        f"2000, but got a string with length {size} instead.", code="string_above_max_length",
    )  # fmt: skip


def _field(body: Body) -> tuple[int, Any]:
    n = next((n for n, m in enumerate(body["messages"]) if "reasoning_content" in m), 0)
    return 400, _openai_error(f"'messages.{n}' : property 'reasoning_content' is unsupported")


def _name(body: Body) -> tuple[int, Any]:
    return 400, _openai_error(
        "Invalid 'tools[0].function.name': string does not match pattern. Expected a string that "
        "matches the pattern '^[a-zA-Z0-9_-]+$'.", param="tools[0].function.name",
        code="invalid_value",
    )  # fmt: skip


def _output(body: Body) -> tuple[int, Any]:
    asked = body.get("max_tokens")
    return 400, _openai_error(
        f"max_tokens is too large: {asked}. This model supports at most 1024 completion tokens, "
        f"whereas you provided {asked}.", param="max_tokens",
    )  # fmt: skip


def _system(body: Body) -> tuple[int, Any]:
    return 400, _openai_error("Jinja Exception: System message must be at the beginning.")


def _roles(body: Body) -> tuple[int, Any]:
    return 500, _openai_error(
        "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."
    )


def _orphan(body: Body) -> tuple[int, Any]:
    return 400, _openai_error(
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
        param="messages.[3].role",
    )  # fmt: skip


def _ids(body: Body) -> tuple[int, Any]:
    return 400, _openai_error(
        "Tool call id was call_abc but must be a-z, A-Z, 0-9, with a length of 9."
    )


def _thinking(body: Body) -> tuple[int, Any]:
    return 400, _claude_error(
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
        "different conversation."
    )


def _reasoning_item(body: Body) -> tuple[int, Any]:
    item = next((i for i in body["input"] if i.get("type") == "function_call"), {"id": "fc_x"})
    return 400, _openai_error(
        f"Item '{item.get('id')}' of type 'function_call' was provided without its required "
        "'reasoning' item: 'rs_x'."
    )


def _late_system(body: Body) -> bool:
    return any(m["role"] == "system" for m in body["messages"][1:])


_CHAT = ("openai-chat", "https://api.together.example/v1/chat/completions", "some-model")
_CLAUDE = ("anthropic", "https://api.anthropic.com/v1/messages", "claude-opus-5")
_RESPONSES = ("openai-responses", "https://api.openai.com/v1/responses", "gpt-5.6")
_LOOPBACK = ("openai-chat", "http://127.0.0.1:9/v1/chat/completions", "some-model")

SIGNALS = (
    Signal("window", *_CHAT, _window, lambda b: tokens_of(b) > 3_000),
    Signal("window-claude", *_CLAUDE, _claude_window, lambda b: tokens_of(b) > 3_000),
    Signal("window-unnamed", *_RESPONSES, _unnamed_window, lambda b: tokens_of(b) > 3_000),
    Signal("bytes", *_CHAT, _bytes, lambda b: bytes_of(b) > 12_000),
    Signal("bare-error", *_CHAT, _bare, lambda b: longest_result(b) > 2_000),
    Signal("images", *_CHAT, _images, lambda b: images_of(b) > 2),
    Signal("images-claude", *_CLAUDE, _claude_images, lambda b: images_of(b) > 2),
    Signal("long-string", *_CHAT, _long_string,
           lambda b: any(len(t) > 2_000 for t in _results(b))),
    Signal("output-limit", *_CHAT, _output, lambda b: b.get("max_tokens", 0) > 1_024),
    Signal("field", *_CHAT, _field, lambda b: "reasoning_content" in json.dumps(b), sends=2),
    Signal("name", *_CHAT, _name, lambda b: "exec.command" in json.dumps(b), sends=2),
    Signal("ids", *_CHAT, _ids,
           lambda b: any(len(c["id"]) != 9 or not c["id"].isalnum() for m in b["messages"]
                         for c in m.get("tool_calls") or ()), sends=2),
    Signal("system-first", *_CHAT, _system, _late_system, sends=2, everywhere=False),
    Signal("roles-alternate", *_CHAT, _roles),
    Signal("pairing", *_CHAT, _orphan),
    Signal("thinking", *_CLAUDE, _thinking,
           lambda b: '"thinking"' in json.dumps(b["messages"]), sends=2, everywhere=False),
    Signal("reasoning-item", *_RESPONSES, _reasoning_item),
    Signal("count-high", *_CHAT, counts=lambda n: 3 * n, window=20_000),
    Signal("count-low", *_CHAT, counts=lambda n: n // 4, window=9_000),
    Signal("count-short-loopback", *_LOOPBACK, counts=lambda n: n // 4, window=20_000),
)  # fmt: skip
