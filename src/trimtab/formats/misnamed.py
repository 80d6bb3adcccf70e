"""What to say of a ``format=`` that does not exist, or that is not the format of the body."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Any

from trimtab.errors import InvalidSetting, shown
from trimtab.formats.engine.base import MESSAGE_LISTS

_MEANT: dict[str, tuple[str, ...]] = {
    "openai": ("openai-chat", "openai-responses"),
    "gpt": ("openai-chat", "openai-responses"),
    "chatgpt": ("openai-chat", "openai-responses"),
    "chat": ("openai-chat",),
    "completions": ("openai-chat",),
    "chat-completions": ("openai-chat",),
    "responses": ("openai-responses",),
    "codex": ("openai-responses",),
    "azure": ("openai-chat:azure", "openai-responses"),
    "claude": ("anthropic",),
    "messages": ("anthropic",),
    "aws": ("bedrock",),
    "amazon": ("bedrock",),
    "converse": ("bedrock",),
    "boto3": ("bedrock",),
    "google": ("gemini", "gemini-interactions"),
    "genai": ("gemini", "gemini-interactions"),
    "google-genai": ("gemini", "gemini-interactions"),
    "generate-content": ("gemini",),
    "interactions": ("gemini-interactions",),
    "vertex": ("gemini", "anthropic"),
    "vertexai": ("gemini", "anthropic"),
}
"""What providers, their models and their addresses are called → the formats that are meant."""
_OF_DIALECT = {"ollama": "llamacpp", "llama.cpp": "llamacpp", "moonshot": "kimi", "zhipu": "glm",
               "lmstudio": "llamacpp", "litellm": "other"}  # fmt: skip
_FIRST = 50
"""Messages that are looked at: a body of another format shows itself early."""


def no_format(name: str, formats: Collection[str], dialects: Collection[str]) -> InvalidSetting:
    """The error for a name of no format; it says which was probably meant."""
    plain = name.strip().lower().replace("_", "-").replace(" ", "-")
    dialect = _OF_DIALECT.get(plain, plain)
    meant = _MEANT.get(plain, ()) or ((plain,) if plain in formats else ())
    if not meant and dialect in dialects:
        meant = (f"openai-chat:{dialect}",)
    if not meant and (near := get_close_matches(plain, [*formats, *_MEANT], n=1)):
        meant = _MEANT.get(near[0], (near[0],))
    hint = f"did you mean {' or '.join(map(repr, meant))}? " if meant else ""
    return InvalidSetting(f"no format {shown(name)}: {hint}choose one of {', '.join(formats)}")


def is_foreign(tree: Any, name: str) -> bool:
    """Whether a body has what no request of the format ``name`` has.

    Only what is certain: a body that two formats may read is whatever its caller says.
    """
    messages = tree
    if isinstance(tree, dict):
        keys = [key for key in MESSAGE_LISTS if isinstance(tree.get(key), list)]
        if len(keys) != 1:
            return False
        if keys[0] != _KEYS.get(name, "messages"):
            return True
        messages = tree[keys[0]]
    found = [one for one in messages[:_FIRST] if isinstance(one, dict)]
    if name == "gemini" and found and not any("parts" in one for one in found):
        return True
    return any((may := _formats_of(one)) is not None and name not in may for one in found)


_KEYS = {"openai-responses": "input", "gemini-interactions": "input", "gemini": "contents"}
"""Format → the key of its messages, if it is not ``messages``."""
_BLOCKS = ("tool_use", "tool_result", "server_tool_use")
_STEPS = ("user_input", "model_output", "function_result")


def _formats_of(message: dict[str, Any]) -> tuple[str, ...] | None:
    """The formats that can have this message; None if that is not certain."""
    kind, role = message.get("type"), message.get("role")
    if role in ("tool", "function") or message.get("tool_calls"):
        return ("openai-chat",)
    if "parts" in message and "content" not in message:
        return ("gemini",)
    if role is None and isinstance(kind, str):
        if kind in _STEPS:
            return ("gemini-interactions",)
        if kind.endswith("_call_output"):
            return ("openai-responses",)
        if kind == "function_call":
            return ("openai-responses" if "call_id" in message else "gemini-interactions",)
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        if "type" not in part and ("toolUse" in part or "toolResult" in part):
            return ("bedrock",)
        if part.get("type") in _BLOCKS:
            return "anthropic", "openai-chat"
    return None
