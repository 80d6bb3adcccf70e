"""The request formats by name.  A new one is a folder beside this file, and a line in ``FORMATS``
and in ``FormatName``."""

from __future__ import annotations

from functools import cache
from typing import Literal

from trimtab.formats import (
    anthropic,
    bedrock,
    gemini,
    gemini_interactions,
    openai_chat,
    openai_responses,
)
from trimtab.formats.engine.api_path import ApiPath, model_in
from trimtab.formats.engine.base import Format

FORMATS: dict[str, Format] = {
    folder.FORMAT.name: folder.FORMAT
    for folder in (gemini_interactions, openai_responses, bedrock, anthropic, gemini, openai_chat)
}
"""In the order of detection: the more distinctive shape first."""

FormatName = Literal[
    "openai-chat", "openai-responses", "anthropic", "bedrock", "gemini",
    "gemini-interactions",
    "openai-chat:openai", "openai-chat:azure", "openai-chat:deepseek", "openai-chat:kimi",
    "openai-chat:glm", "openai-chat:minimax", "openai-chat:mistral", "openai-chat:mistral-v3",
    "openai-chat:xiaomi", "openai-chat:openrouter", "openai-chat:vllm", "openai-chat:llamacpp",
    "openai-chat:groq", "openai-chat:cerebras", "openai-chat:dashscope", "openai-chat:other",
    "anthropic:2023-06-01", "anthropic:2026-10-21",
]  # fmt: skip
"""What ``format=`` accepts: a format, optionally with one of its dialects or a version of its
API."""

MESSAGE_LISTS = tuple(dict.fromkeys(format.messages_key for format in FORMATS.values()))
"""The keys under which the formats keep a request's messages."""


@cache
def in_variant(format: Format, variant: str) -> Format:
    """The format in a dialect, or as a version of its API takes it: one object for each, so that
    messages cached by format are found again."""
    return format.in_variant(variant)


def api_path_at(path: str) -> tuple[Format, ApiPath, str | None] | None:
    """(format, api_path, the model that the path names) of a path without its query."""
    for format in FORMATS.values():
        for api_path in format.api_paths:
            if match := api_path.match(path):
                return format, api_path, model_in(match)
    return None
