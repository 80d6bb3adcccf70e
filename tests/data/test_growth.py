"""The Claude factors against what was billed in recorded sessions.

Walks Anthropic messages by itself: nothing here depends on the formats or the rules.
``meta.prompt_tokens`` holds [index, billed tokens of the prompt messages[:index]]; between two of
them system and tools cancel out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from trimtab.transcript.tokens import (
    IMAGE_TOKENS,
    MESSAGE_TOKENS,
    Counter,
    counter_for,
)

pytestmark = pytest.mark.data
GREW = 10_000

Record = dict[str, Any]


def part_tokens(part: dict[str, Any], count: Counter) -> int:
    kind = part.get("type")
    if kind in ("text", "thinking"):
        return count(part[kind])
    if kind == "image":
        return count.scaled(IMAGE_TOKENS)
    if kind == "tool_use":
        arguments = json.dumps(part["input"], separators=(",", ":"), ensure_ascii=False)
        return count(part["name"]) + count(arguments) + count.call_tokens
    if kind == "tool_result":
        return content_tokens(part.get("content") or "", count) + count.call_tokens
    return count(json.dumps(part, separators=(",", ":"), ensure_ascii=False))


def content_tokens(content: str | list[dict[str, Any]], count: Counter) -> int:
    if isinstance(content, str):
        return count(content)
    return sum(part_tokens(part, count) for part in content)


def sessions(data: list[tuple[str, Record]]) -> Iterator[tuple[Record, list[list[int]]]]:
    """(record, its bills) of every Anthropic session that grew by more than ``GREW``."""
    for _, record in data:
        billed = record["meta"].get("prompt_tokens") or []
        if record["format"] == "anthropic" and billed and billed[-1][1] - billed[0][1] > GREW:
            yield record, billed


def test_claude_up_to_4_6_is_counted_at_least_as_billed_in_85_percent_of_sessions(
    data: list[tuple[str, Record]],
) -> None:
    enough, short = 0, []
    for record, ((first, paid_first), *_, (last, paid_last)) in sessions(data):
        if not re.search(r"claude-(haiku|sonnet|opus)-4-[0-6](-|$)", record["model"]):
            continue
        count = counter_for(None, model=record["model"], format="anthropic")
        ours = sum(
            content_tokens(message["content"], count) + count.scaled(MESSAGE_TOKENS)
            for message in record["messages"][first:last]
        )
        if ours >= paid_last - paid_first:
            enough += 1
        else:
            short.append((record["id"], ours, paid_last - paid_first))
    assert enough + len(short) >= 100, "too few sessions to judge by"
    assert enough >= 0.85 * (enough + len(short)), short
    lowest = min((ours / paid for _, ours, paid in short), default=1.0)
    assert lowest > 0.85, "and never far below"


def test_later_claudes_need_the_signatures_counted(data: list[tuple[str, Record]]) -> None:
    with_text, with_signatures, seen = 0, 0, 0
    for record, ((first, paid_first), *_, (last, paid_last)) in sessions(data):
        if not re.search(r"claude-(opus-4-[78]|\w+-5)(-|$)", record["model"]):
            continue
        count = counter_for(None, model=record["model"], format="anthropic")
        messages = record["messages"][first:last]
        text = sum(
            content_tokens(message["content"], count) + count.scaled(MESSAGE_TOKENS)
            for message in messages
        )
        hidden = sum(
            count.signature(len(part["signature"]))
            for message in messages
            for part in message["content"]
            if isinstance(part, dict) and part.get("signature")
        )
        seen += 1
        with_text += text >= paid_last - paid_first
        with_signatures += text + hidden >= paid_last - paid_first
    assert seen >= 20, "too few sessions to judge by"
    assert with_text < 0.5 * seen, "text alone would do: drop the signature rate"
    assert with_signatures >= 0.85 * seen
