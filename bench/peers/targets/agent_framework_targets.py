"""Microsoft Agent Framework: its strategies over messages whose annotations are kept."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import (
    Content,
    ContextWindowCompactionStrategy,
    Message,
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
    apply_compaction,
)
from common import SUMMARY, Body, room, tokens_of


class _Exact:
    def count_tokens(self, text: str) -> int:
        return tokens_of(text)


class _History:
    """Messages as an agent keeps them; each call adds the new ones and compacts."""

    def __init__(self, window: int, strategy: Any) -> None:
        self._window, self._strategy = window, strategy
        self._kept: list[Message] = []
        self._taken = 0

    def __call__(self, request: Body) -> Body:
        self._kept += [_message(one) for one in request["messages"][self._taken :]]
        self._taken = len(request["messages"])
        strategy = self._strategy(room(request, self._window))
        sent = asyncio.run(apply_compaction(self._kept, strategy=strategy, tokenizer=_Exact()))
        return {**request, "messages": [body for one in sent for body in _bodies(one)]}


def _message(one: Body) -> Message:
    contents = [Content.from_text(one["content"])] if one.get("content") else []
    if one["role"] == "tool":
        contents = [Content.from_function_result(one["tool_call_id"], result=one["content"])]
    for call in one.get("tool_calls") or ():
        made = call["function"]
        contents.append(
            Content.from_function_call(call["id"], made["name"], arguments=made["arguments"])
        )
    return Message(one["role"], contents)


def _bodies(one: Message) -> list[Body]:
    """As its OpenAI client writes a message."""
    found: list[Body] = []
    text = "".join(part.text or "" for part in one.contents if part.type == "text")
    calls = [
        {"id": p.call_id, "type": "function",
         "function": {"name": p.name, "arguments": p.arguments}}
        for p in one.contents
        if p.type == "function_call"
    ]  # fmt: skip
    if calls:
        found.append({"role": "assistant", "content": text or None, "tool_calls": calls})
    elif text:
        found.append({"role": str(one.role), "content": text})
    found += [
        {"role": "tool", "tool_call_id": part.call_id, "content": str(part.result)}
        for part in one.contents
        if part.type == "function_result"
    ]
    return found


class _Client:
    """Answers every prompt with one summary."""

    async def get_response(self, *rest: Any, **more: Any) -> Any:
        from agent_framework import ChatResponse

        return ChatResponse(messages=[Message("assistant", [Content.from_text(SUMMARY)])])


def context_window(window: int) -> _History:
    """``ContextWindowCompactionStrategy``: evicts results at 50 %, truncates at 80 %."""

    def strategy(tokens: int) -> Any:
        return ContextWindowCompactionStrategy(
            max_context_window_tokens=tokens, max_output_tokens=0, tokenizer=_Exact()
        )

    return _History(window, strategy)


def summarize(window: int) -> _History:
    """``SummarizationStrategy`` under ``TokenBudgetComposedStrategy``."""

    def strategy(tokens: int) -> Any:
        return TokenBudgetComposedStrategy(
            token_budget=tokens, tokenizer=_Exact(),
            strategies=[SummarizationStrategy(client=_Client())],
        )  # fmt: skip

    return _History(window, strategy)
