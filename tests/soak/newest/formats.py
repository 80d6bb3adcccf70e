"""The six formats: who writes their conversations, who judges them, where they are sent."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from soak.newest import (
    provider_anthropic,
    provider_bedrock,
    provider_chat,
    provider_gemini,
    provider_interactions,
    provider_responses,
    write_anthropic,
    write_bedrock,
    write_chat,
    write_gemini,
    write_interactions,
    write_responses,
)
from soak.newest.talk import Talk

_ROOMS: dict[str, tuple[ModuleType, ModuleType]] = {
    "anthropic": (write_anthropic, provider_anthropic),
    "openai-chat": (write_chat, provider_chat),
    "openai-responses": (write_responses, provider_responses),
    "bedrock": (write_bedrock, provider_bedrock),
    "gemini": (write_gemini, provider_gemini),
    "gemini-interactions": (write_interactions, provider_interactions),
}
FORMATS = tuple(_ROOMS)


def talk_of(seed: int, format: str = "") -> Talk:
    """The conversation of a seed; Anthropic and chat have every other one between them."""
    rng = random.Random(seed)
    shares = ("anthropic", "openai-chat", "openai-responses", "anthropic", "bedrock", "openai-chat",
              "gemini", "gemini-interactions")  # fmt: skip
    name = format or shares[seed % len(shares)]
    talk: Talk = _ROOMS[name][0].talk(rng, rng.choice((2, 4, 6, 9, 12, 16)))
    return talk


def provider(format: str) -> ModuleType:
    """``refusal``, ``channels`` and ``state`` of a format."""
    return _ROOMS[format][1]


def sign(body: dict[str, Any], text: str) -> str:
    """Only Anthropic's signatures are checked; other formats have none to fill in."""
    return provider_anthropic.sign(body, text)


def url_of(talk: Talk, base: str = "") -> str:
    """Where the request goes: the provider's own host, or under another base."""
    hosts = {
        "anthropic": "https://api.anthropic.com", "openai-responses": "https://api.openai.com",
        "bedrock": "https://bedrock-runtime.us-east-1.amazonaws.com",
        "gemini": "https://generativelanguage.googleapis.com",
        "gemini-interactions": "https://generativelanguage.googleapis.com",
    }  # fmt: skip
    path = {
        "anthropic": "/v1/messages", "openai-responses": "/v1/responses",
        "bedrock": f"/model/{talk.model}/converse",
        "gemini": f"/v1beta/models/{talk.model}:generateContent",
        "gemini-interactions": "/v1beta/interactions", "openai-chat": "/v1/chat/completions",
    }[talk.format]  # fmt: skip
    if not base and talk.format == "openai-chat":
        host = write_chat.HOSTS[talk.dialect.removeprefix("chat-")]
        return f"{host}/chat/completions"
    return f"{base or hosts[talk.format]}{path}"


def answer_of(format: str, tokens: int | None = None) -> dict[str, Any]:
    """A short answer of the provider's; with ``tokens``, what it says the prompt took."""
    if format == "anthropic":
        usage = {} if tokens is None else {"usage": {"input_tokens": tokens, "output_tokens": 2}}
        return {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                "content": [{"type": "text", "text": "Done."}], "stop_reason": "end_turn",
                "stop_sequence": None, **usage}  # fmt: skip
    if format == "openai-chat":
        counted = {
            "prompt_tokens": tokens,
            "completion_tokens": 2,
            "total_tokens": (tokens or 0) + 2,
        }
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop",
                             "message": {"role": "assistant", "content": "Done."}}],
                **({} if tokens is None else {"usage": counted})}  # fmt: skip
    if format == "openai-responses":
        counted = {"input_tokens": tokens, "output_tokens": 2, "total_tokens": (tokens or 0) + 2}
        part = {"type": "output_text", "text": "Done.", "annotations": []}
        return {"id": "resp_1", "object": "response", "created_at": 1, "model": "m",
                "status": "completed", "parallel_tool_calls": True, "tool_choice": "auto",
                "tools": [], "output": [{"type": "message", "id": "msg_1", "role": "assistant",
                                         "status": "completed", "content": [part]}],
                **({} if tokens is None else {"usage": counted})}  # fmt: skip
    if format == "bedrock":
        counted = {"inputTokens": tokens, "outputTokens": 2, "totalTokens": (tokens or 0) + 2}
        message = {"role": "assistant", "content": [{"text": "Done."}]}
        return {"output": {"message": message}, "stopReason": "end_turn",
                **({} if tokens is None else {"usage": counted})}  # fmt: skip
    if format == "gemini":
        counted = {"promptTokenCount": tokens, "candidatesTokenCount": 2}
        content = {"role": "model", "parts": [{"text": "Done."}]}
        return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
                **({} if tokens is None else {"usageMetadata": counted})}  # fmt: skip
    counted = {"total_input_tokens": tokens, "total_output_tokens": 2}
    text = [{"type": "text", "text": "Done."}]
    return {"id": "v1_a", "object": "interaction", "status": "completed", "model": "m",
            "steps": [{"type": "model_output", "content": text}],
            **({} if tokens is None else {"usage": counted})}  # fmt: skip
