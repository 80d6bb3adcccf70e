"""``wrap`` around functions like LiteLLM's, sync and async, whole and as streams.

Knows their arguments and errors as LiteLLM has them; LiteLLM itself is in world/test_litellm.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from litellm_errors import BadRequestError
from tool_calls import Step, conversation

from trimtab.clients.guard import Guard
from trimtab.clients.litellm import guarded_call

LIMIT, SAID = 20_000, ["", "fine", ", thanks"]
MESSAGES = conversation(
    "openai-chat", *(Step("read", {"path": f"{n}.py"}, f"line {n} " * 150) for n in range(40))
)["messages"]


class Provider:
    """Refuses what is long; ``sizes``: characters of what it was sent."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def answer(self, messages: list[Any], stream: bool) -> list[dict[str, Any]]:
        self.sizes.append(sum(len(str(message)) for message in messages))
        if self.sizes[-1] > LIMIT:
            raise BadRequestError(
                "This model's maximum context length is 4000 tokens. However, your messages "
                "resulted in 9000 tokens."
            )
        return [{"choices": [{"delta": {"content": text}}]} for text in SAID]

    def completion(self, model: str, messages: list[Any], **more: Any) -> Any:
        parts = self.answer(messages, "stream" in more)
        return iter(parts) if more.get("stream") else parts[1]

    async def acompletion(self, model: str, messages: list[Any], **more: Any) -> Any:
        parts = self.answer(messages, "stream" in more)

        async def pieces() -> AsyncIterator[Any]:
            for part in parts:
                yield part

        return pieces() if more.get("stream") else parts[1]


def answered(function: Callable[..., Any], stream: bool) -> list[str]:
    """The words of an answer, whichever way it comes."""
    call = guarded_call(function, Guard(window=100_000))

    async def asynchronous() -> list[Any]:
        answer = await call("gpt-4o", messages=MESSAGES, stream=stream)
        return [part async for part in answer] if stream else [answer]

    if asyncio.iscoroutinefunction(function):
        parts = asyncio.run(asynchronous())
    else:
        answer = call("gpt-4o", messages=MESSAGES, stream=stream)
        parts = list(answer) if stream else [answer]
    return [part["choices"][0]["delta"]["content"] for part in parts]


@pytest.mark.row("A9", "A12")
@pytest.mark.parametrize("name", ["completion", "acompletion"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_refused_call_is_sent_again_smaller_and_its_whole_answer_comes(
    name: str, stream: bool
) -> None:
    provider = Provider()
    assert answered(getattr(provider, name), stream) == (SAID if stream else SAID[1:2])
    refused, sent = provider.sizes
    assert refused > LIMIT >= sent


@pytest.mark.parametrize("name", ["completion", "acompletion"])
def test_another_error_reaches_the_caller_after_one_send(name: str) -> None:
    calls = list[str]()

    def completion(model: str, messages: list[Any], **more: Any) -> Any:
        calls.append(model)
        raise ValueError("boom")

    async def acompletion(model: str, messages: list[Any], **more: Any) -> Any:
        completion(model, messages)

    with pytest.raises(ValueError, match="boom"):
        answered({"completion": completion, "acompletion": acompletion}[name], False)
    assert calls == ["gpt-4o"]
