"""A tool loop with a model that only talks: the calls are scripted, its words are kept as they are.

Knows the three APIs of a llama.cpp server.  Asserts nothing.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

MODEL = "gemma-3-270m"
OUTPUT = 4
"""Tokens the model may say; it is small, and its words are not what is tested."""
_WORDS = [
    "parser",
    "flag",
    "module",
    "colour",
    "value",
    "index",
    "table",
    "cache",
    "line",
    "token",
    "number",
    "error",
    "path",
]


def result(step: int, format: str) -> str:
    """Some 440 tokens, no two alike: the server remembers prompts of other conversations too."""
    dice = random.Random(f"{format} {step}")
    return "\n".join(
        f"src/{dice.choice(_WORDS)}_{step}.py:{n * 7}: {' '.join(dice.choices(_WORDS, k=6))}"
        for n in range(22)
    )


@dataclass(frozen=True)
class Billed:
    """Tokens of the prompt, and how many of them came from the cache."""

    prompt: int
    cached: int


class Loop(ABC):
    """One conversation; ``body`` is the next request, ``take`` appends an answer and a result."""

    format: str
    path: str

    def __init__(self) -> None:
        asked = f"Which module sets the flag of {self.format}?"
        self.items: list[Any] = [{"role": "user", "content": asked}]
        self.steps = 0

    @property
    def given(self) -> str:
        """What the tool of this step says."""
        return result(self.steps, self.format)

    @property
    @abstractmethod
    def body(self) -> dict[str, Any]:
        """The next request."""

    @abstractmethod
    def take(self, answer: Any) -> Billed:
        """Keep what the model said, call the tool for it, and give the result."""


class WithMessages(Loop):
    """A request whose history is ``messages``."""

    @property
    def body(self) -> dict[str, Any]:
        """The next request."""
        return {
            "model": MODEL,
            "messages": list(self.items),
            "max_tokens": OUTPUT,
            "temperature": 0,
        }


class Chat(WithMessages):
    """OpenAI Chat Completions."""

    format, path = "openai-chat", "/v1/chat/completions"

    def take(self, answer: Any) -> Billed:
        call = {
            "id": f"call_{self.steps}", "type": "function",
            "function": {"name": "grep", "arguments": f'{{"step": {self.steps}}}'},
        }  # fmt: skip
        said = answer["choices"][0]["message"]["content"]
        self.items.append({"role": "assistant", "content": said, "tool_calls": [call]})
        given = {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": self.given,
        }
        self.items.append(given)
        self.steps += 1
        usage = answer["usage"]
        return Billed(usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"])


class Messages(WithMessages):
    """Anthropic Messages."""

    format, path = "anthropic", "/v1/messages"

    def take(self, answer: Any) -> Billed:
        said = [part for part in answer["content"] if part.get("text", "").strip()]
        call = {"type": "tool_use", "id": f"toolu_{self.steps}", "name": "grep",
                "input": {"step": self.steps}}  # fmt: skip
        given = {
            "type": "tool_result",
            "tool_use_id": call["id"],
            "content": self.given,
        }
        self.items.append({"role": "assistant", "content": [*said, call]})
        self.items.append({"role": "user", "content": [given]})
        self.steps += 1
        usage = answer["usage"]
        cached = usage.get("cache_read_input_tokens") or 0
        return Billed(usage["input_tokens"] + cached, cached)


class Responses(Loop):
    """OpenAI Responses."""

    format, path = "openai-responses", "/v1/responses"

    @property
    def body(self) -> dict[str, Any]:
        return {
            "model": MODEL,
            "input": list(self.items),
            "max_output_tokens": OUTPUT,
            "temperature": 0,
        }

    def take(self, answer: Any) -> Billed:
        self.items += [item for item in answer["output"] if item["type"] == "message"]
        call_id = f"call_{self.steps}"
        self.items += [
            {"type": "function_call", "call_id": call_id, "name": "grep",
             "arguments": f'{{"step": {self.steps}}}'},
            {"type": "function_call_output", "call_id": call_id, "output": self.given},
        ]  # fmt: skip
        self.steps += 1
        usage = answer["usage"]
        return Billed(usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"])


LOOPS = [Chat, Messages, Responses]
