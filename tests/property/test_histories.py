"""What the made-up histories of the property tests have to have, format by format."""

from __future__ import annotations

import json
from typing import Any

import histories
import pytest
from pairs import orphans
from soak.story import SIX
from wounds import items_of

SEEN: dict[str, list[str]] = {
    "openai-chat": [
        '"tool_calls"', '"function_call"', '"role": "function"', '"image_url"', "input_audio_ref",
        '"reasoning_content"', '"cache_control"', '"role": "system"', '"x_trace"',
        '"content": null', '"content": []', '"tool_call_id": ""',
    ],
    "anthropic": [
        '"tool_use"', '"tool_result"', '"thinking"', '"redacted_thinking"', '"server_tool_use"',
        '"web_search_tool_result"', '"image"', '"container_upload"', '"tool_reference"',
        '"cache_control"', '"is_error"', '"role": "system"', '"content": null', '"text": ""',
    ],
    "bedrock": [
        '"toolUse"', '"toolResult"', '"reasoningText"', '"redactedContent"', '"image"',
        '"document"', '"guardContent"', '"cachePoint"', '"json"', '"status": "error"', "docx",
        '"content": "plain words"', '"toolUseId": ""',
    ],
    "gemini": [
        '"functionCall"', '"functionResponse"', '"function_call"', '"thoughtSignature"',
        '"thought": true', '"inlineData"', '"fileData"', '"executableCode"', '"toolCall"',
        '"role": "function"', '"role": "assistant"', '"parts": []', '"response": {}',
        '"response": "plain text"',
    ],
    "openai-responses": [
        '"function_call_output"', '"shell_call"', '"shell_call_output"', '"custom_tool_call"',
        '"custom_tool_call_output"', '"reasoning"', '"encrypted_content"', '"web_search_call"',
        '"input_image"', "input_dream", '"developer"', '"content": null',
    ],
    "gemini-interactions": [
        '"function_call"', '"function_result"', '"thought"', '"google_search_call"', '"image"',
        '"document"', "dream", '"is_error"', '"model_output"',
    ],
}  # fmt: skip


def several_calls(item: Any) -> bool:
    """Whether a message has two calls or more."""
    text = json.dumps(item)
    return (
        text.count('"tool_use"')
        + text.count('"toolUse"')
        + text.count('"functionCall"')
        + (len(item.get("tool_calls") or ()))
        > 1
        or text.count("function_call") > 1
    )


@pytest.mark.parametrize("format", SIX)
def test_histories_have_every_kind_of_block_and_of_fault(format: str) -> None:
    drawn = [histories.harmed(seed, format).request for seed in range(400)]
    text = json.dumps(drawn)
    assert [words for words in SEEN[format] if words not in text] == []
    assert max(len(json.dumps(request)) for request in drawn) > 100_000
    broken = [orphans(items_of(request)) for request in drawn]
    assert sum(map(bool, broken)) > 100
    assert any(not request for request in broken)
    several = (item for request in drawn for item in items_of(request) if several_calls(item))
    assert format in ("openai-responses", "gemini-interactions") or any(several)


@pytest.mark.parametrize("format", SIX)
def test_most_unharmed_histories_are_legal_by_the_judge(format: str) -> None:
    legal = sum(histories.whole(seed, format).is_legal for seed in range(100))
    assert legal >= (20 if format == "bedrock" else 50)  # Bedrock's models refuse many mixtures
