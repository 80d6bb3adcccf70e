"""The usage of several rounds as one.  Knows what rewriters tell a client."""

from __future__ import annotations

import pytest

from trimtab.formats.bedrock.answers import BedrockRewriter
from trimtab.formats.engine.answers import added, summed
from trimtab.formats.openai_chat.answers import OpenAIChatRewriter

FIRST = {
    "prompt_tokens": 100, "completion_tokens": 5, "total_tokens": 105, "service_tier": "a",
    "prompt_tokens_details": {"cached_tokens": 0}, "total_time": 0.5, "new": None,
}  # fmt: skip
SECOND = {
    "prompt_tokens": 120, "completion_tokens": 7, "total_tokens": 127, "service_tier": "b",
    "prompt_tokens_details": {"cached_tokens": 90}, "total_time": 0.25, "other": 1, "new": 2,
}  # fmt: skip


def test_every_number_of_two_usages_is_added():
    assert summed(FIRST, SECOND) == {
        "prompt_tokens": 220, "completion_tokens": 12, "total_tokens": 232, "service_tier": "b",
        "prompt_tokens_details": {"cached_tokens": 90}, "total_time": 0.75, "other": 1, "new": 2,
    }  # fmt: skip


def test_gemini_s_rows_are_added_by_modality():
    rows = [{"modality": "TEXT", "tokenCount": 5}]
    more = [{"modality": "IMAGE", "tokenCount": 7}, {"modality": "TEXT", "tokenCount": 3}]
    assert summed({"d": rows}, {"d": more}) == {
        "d": [{"modality": "TEXT", "tokenCount": 8}, {"modality": "IMAGE", "tokenCount": 7}]
    }


@pytest.mark.parametrize("empty", [None, {}])
def test_a_round_without_usage_adds_nothing(empty):
    assert summed(FIRST, empty) == FIRST
    assert summed(empty, FIRST) == FIRST


def test_a_client_that_reads_how_full_the_window_is_is_told_the_last_prompt():
    told = added(FIRST, SECOND, OpenAIChatRewriter.answers.tokens)
    assert (told["prompt_tokens"], told["completion_tokens"]) == (120, 12)


def test_the_time_of_a_converse_answer_is_that_of_all_rounds():
    rewriter = BedrockRewriter()
    for milliseconds in (40, 60):
        rewriter.begin()
        rewriter.take_full_response(
            {"output": {"message": {"content": []}}, "metrics": {"latencyMs": milliseconds}}
        )
    assert rewriter.answer()["metrics"] == {"latencyMs": 100}
