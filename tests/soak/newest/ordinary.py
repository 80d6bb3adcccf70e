"""Ordinary requests for the runner of false signals: conversations that every provider takes.

Each has what a signal could be about: tool results, images, reasoning, a dotted tool name, a late
system message.  No two conversations begin alike.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from soak.newest.words import PIXEL, Words

TURNS = 12


@dataclass(frozen=True)
class Ordinary:
    """One request: of which conversation, the n-th of it, and its body."""

    conversation: int
    turn: int
    body: dict[str, Any]


def requests(format: str, conversations: int, model: str, seed: int = 7) -> Iterator[Ordinary]:
    """Turn by turn, the conversations taking turns; conversation 0 is always the first."""
    made = {"anthropic": _anthropic, "openai-chat": _chat, "openai-responses": _responses}[format]
    talks = [made(random.Random(seed * 1_000 + n), model) for n in range(conversations)]
    for turn in range(TURNS):
        for n, (head, key, steps) in enumerate(talks):
            messages = [message for step in steps[: turn + 1] for message in step]
            yield Ordinary(n, turn, copy.deepcopy({**head, key: messages}))


Made = tuple[dict[str, Any], str, list[list[Any]]]


def _output(words: Words, rng: random.Random) -> str:
    return words.output(rng.choice((4, 15, 40, 90)))


def _chat(rng: random.Random, model: str) -> Made:
    words = Words(rng)
    schema = {"type": "object", "properties": {}}
    head = {
        "model": model, "max_tokens": 4_000,
        "tools": [{"type": "function",
                   "function": {"name": "exec.command", "parameters": schema}}],
    }  # fmt: skip
    url = {"url": f"data:image/png;base64,{PIXEL}"}
    first: list[Any] = [
        {"role": "system", "content": words.prose("s", 2)},
        {"role": "user", "content": [{"type": "text", "text": words.prose("u")},
                                     *[{"type": "image_url", "image_url": url}] * 3]},
    ]  # fmt: skip
    steps = [first]
    for n in range(TURNS):
        id = f"call_{words.id(20)}"
        call = {
            "id": id,
            "type": "function",
            "function": {"name": "exec.command", "arguments": json.dumps(words.arguments())},
        }
        said = {"role": "assistant", "content": words.prose("m"), "tool_calls": [call],
                "reasoning_content": words.prose("r")}  # fmt: skip
        step: list[Any] = [
            said,
            {"role": "tool", "tool_call_id": id, "content": _output(words, rng)},
        ]
        if n == 1:
            step += [{"role": "assistant", "content": words.prose("m"),
                      "reasoning_content": words.prose("r")},
                     {"role": "system", "content": words.prose("s")},
                     {"role": "user", "content": words.prose("u")}]  # fmt: skip
        steps.append(step)
    return head, "messages", steps


def _anthropic(rng: random.Random, model: str) -> Made:
    words = Words(rng)
    schema = {"type": "object", "properties": {}}
    head = {"model": model, "max_tokens": 4_000, "system": words.prose("s", 2),
            "tools": [{"name": "read", "input_schema": schema}]}  # fmt: skip
    source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
    image = {"type": "image", "source": source}
    steps: list[list[Any]] = [
        [{"role": "user", "content": [*[image] * 3, {"type": "text", "text": words.prose("u")}]}]
    ]
    for n in range(TURNS):
        use = {"type": "tool_use", "id": f"toolu_{words.id(20)}", "name": "read",
               "input": words.arguments()}  # fmt: skip
        thought = {"type": "thinking", "thinking": words.prose("r"), "signature": words.id(40)}
        done = {"type": "tool_result", "tool_use_id": use["id"], "content": _output(words, rng)}
        step: list[Any] = [
            {
                "role": "assistant",
                "content": [thought, {"type": "text", "text": words.prose("m")}, use],
            },
            {"role": "user", "content": [done]},
        ]
        if n == 1:
            step.append({"role": "system", "content": words.prose("s")})
        steps.append(step)
    return head, "messages", steps


def _responses(rng: random.Random, model: str) -> Made:
    words = Words(rng)
    head = {
        "model": model,
        "max_output_tokens": 4_000,
        "instructions": words.prose("s", 2),
        "store": False,
        "tools": [{"type": "function", "name": "read", "parameters": {}}],
    }
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
    steps: list[list[Any]] = [
        [{"role": "user",
          "content": [{"type": "input_text", "text": words.prose("u")}, *[image] * 3]}]
    ]  # fmt: skip
    for _ in range(TURNS):
        key = words.id(10)
        call = {"type": "function_call", "id": f"fc_{key}", "call_id": f"call_{key}",
                "name": "read",
                "arguments": json.dumps(words.arguments())}  # fmt: skip
        thought = {"type": "reasoning", "id": f"rs_{key}", "encrypted_content": words.id(40),
                   "summary": [{"type": "summary_text", "text": words.prose("r")}]}  # fmt: skip
        steps.append(
            [thought, call,
             {"type": "function_call_output", "call_id": f"call_{key}",
              "output": _output(words, rng)}]
        )  # fmt: skip
    return head, "input", steps
