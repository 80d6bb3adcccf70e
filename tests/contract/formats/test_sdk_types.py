"""The SDKs' own request types take what we send: the seven hard cases, fitted to a quarter.

Knows the types of openai, anthropic and google-genai (botocore's model judges in test_bedrock).
"""

from __future__ import annotations

from typing import Any

import pytest
from hard_cases import CASES, conversation
from pydantic import TypeAdapter

import trimtab


def fitted(name: str, format: str) -> list[dict[str, Any]]:
    """One hard case in this format, fitted to a quarter of its size."""
    chat = trimtab.repair(conversation(name, "openai-chat"), format="openai-chat").request
    body: Any = chat if format == "openai-chat" else {"messages": chat, "model": "gpt-4o"}
    if format != "openai-chat":
        body = trimtab.convert(body, to=format).request
    size = trimtab.measure(body, format=format, counter="o200k").total
    sent = trimtab.fit(
        body, window=size // 4, reserve=0, format=format, settings=trimtab.Settings(counter="o200k")
    ).request
    if isinstance(sent, list):
        return sent
    return next(sent[key] for key in ("messages", "input", "contents") if key in sent)


@pytest.mark.parametrize("name", CASES)
def test_openai_takes_our_chat_messages(name: str) -> None:
    from openai.types.chat import ChatCompletionMessageParam

    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(fitted(name, "openai-chat"))


@pytest.mark.parametrize("name", CASES)
def test_openai_takes_our_response_items(name: str) -> None:
    from openai.types.responses import ResponseInputParam

    TypeAdapter(ResponseInputParam).validate_python(fitted(name, "openai-responses"))


@pytest.mark.parametrize("name", CASES)
def test_anthropic_takes_our_messages(name: str) -> None:
    from anthropic.types import MessageParam

    TypeAdapter(list[MessageParam]).validate_python(fitted(name, "anthropic"))


@pytest.mark.parametrize("name", CASES)
def test_google_takes_our_contents(name: str) -> None:
    from google.genai.types import Content

    for content in fitted(name, "gemini"):
        read = Content.model_validate(content)
        assert len(read.parts or []) == len(content["parts"])


@pytest.mark.parametrize("format", ["openai-chat", "openai-responses", "anthropic", "gemini"])
def test_the_types_refuse_what_is_not_theirs(format: str) -> None:
    """The judges can say no: another format's messages do not pass."""
    from anthropic.types import MessageParam
    from google.genai.types import Content
    from openai.types.chat import ChatCompletionMessageParam
    from openai.types.responses import ResponseInputParam

    types: dict[str, Any] = {
        "openai-chat": list[ChatCompletionMessageParam],
        "openai-responses": ResponseInputParam,
        "anthropic": list[MessageParam],
        "gemini": list[Content],
    }
    other = "gemini" if format != "gemini" else "anthropic"
    with pytest.raises(ValueError, match="validation error"):
        TypeAdapter(types[format]).validate_python(fitted(CASES[0], other))
