"""The usage that the providers' own clients hand out, as objects."""

from __future__ import annotations

from typing import Any

import pytest
from sdk_clients import anthropic, genai, openai  # skips where they are not installed

from trimtab.pricing.reported_usage import ReportedUsage as Usage
from trimtab.pricing.reported_usage import read_usage

CHAT = openai.types.CompletionUsage.model_validate(
    {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930,
     "prompt_tokens_details": {"cached_tokens": 640}}
)  # fmt: skip
RESPONSES = openai.types.responses.ResponseUsage.model_validate(
    {"input_tokens": 900, "output_tokens": 30, "total_tokens": 930,
     "input_tokens_details": {"cached_tokens": 640, "cache_write_tokens": 0},
     "output_tokens_details": {"reasoning_tokens": 5}}
)  # fmt: skip
ANTHROPIC = anthropic.types.Usage.model_validate(
    {"input_tokens": 60, "output_tokens": 30, "cache_read_input_tokens": 640,
     "cache_creation_input_tokens": 200}
)  # fmt: skip
GEMINI = genai.types.GenerateContentResponse.model_validate(
    {"usageMetadata": {"promptTokenCount": 900, "candidatesTokenCount": 20,
                       "thoughtsTokenCount": 10, "cachedContentTokenCount": 640,
                       "totalTokenCount": 930}}
)  # fmt: skip
ANSWERS: dict[str, tuple[Any, Usage]] = {
    "chat": (CHAT, Usage(900, 30, 640)),
    "responses": (RESPONSES, Usage(900, 30, 640)),
    "responses event": (
        {"type": "response.completed", "response": {"usage": RESPONSES}},
        Usage(900, 30, 640),
    ),
    "anthropic": (ANTHROPIC, Usage(900, 30, 640, 200)),
    "gemini": (GEMINI, Usage(900, 30, 640)),
}


@pytest.mark.parametrize(("answer", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_the_whole_prompt_is_read_from_a_clients_own_usage(answer: Any, expected: Usage) -> None:
    assert read_usage(answer) == expected
