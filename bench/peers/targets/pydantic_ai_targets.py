"""Pydantic AI: a real agent with a history processor; what its model gets is what counts."""

from __future__ import annotations

import json
from typing import Any

from common import SUMMARY, TRIGGER, Body
from pydantic_ai import Agent
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.profiles.openai import openai_model_profile
from pydantic_ai_summarization import (
    create_sliding_window_processor,
    create_summarization_processor,
)


class _History:
    def __init__(self, processor: Any) -> None:
        self._got: list[ModelMessage] = []
        model = FunctionModel(self._answer, profile=openai_model_profile("gpt-4o"))
        self._agent = Agent(model, capabilities=[ProcessHistory(processor)])
        self._history: list[ModelMessage] = []
        self._names: dict[str, str] = {}
        self._taken = 0

    def _answer(self, messages: list[ModelMessage], info: Any) -> ModelResponse:
        self._got = list(messages)
        return ModelResponse([TextPart("OK")])

    def __call__(self, request: Body) -> Body:
        for one in request["messages"][self._taken :]:
            self._add(one)
        self._taken = len(request["messages"])
        self._agent.run_sync(message_history=list(self._history))
        return {**request, "messages": [body for one in self._got for body in _bodies(one)]}

    def _add(self, one: Body) -> None:
        if one["role"] == "assistant":
            parts: list[Any] = [TextPart(one["content"])] if one["content"] else []
            for call in one.get("tool_calls") or ():
                made = call["function"]
                self._names[call["id"]] = made["name"]
                parts.append(ToolCallPart(made["name"], made["arguments"], call["id"]))
            self._history.append(ModelResponse(parts))
            return
        if one["role"] == "tool":
            name = self._names.get(one["tool_call_id"], "read")
            part: Any = ToolReturnPart(name, one["content"], one["tool_call_id"])
        else:
            kind = SystemPromptPart if one["role"] == "system" else UserPromptPart
            part = kind(one["content"])
        last = self._history[-1] if self._history else None
        if isinstance(last, ModelRequest):
            self._history[-1] = ModelRequest([*last.parts, part])
        else:
            self._history.append(ModelRequest([part]))


def _bodies(one: ModelMessage) -> list[Body]:
    """As its OpenAI model writes a message."""
    if isinstance(one, ModelResponse):
        text = "\n\n".join(part.content for part in one.parts if isinstance(part, TextPart))
        calls = [
            {"id": p.tool_call_id, "type": "function",
             "function": {"name": p.tool_name, "arguments": p.args_as_json_str()}}
            for p in one.parts
            if isinstance(p, ToolCallPart)
        ]  # fmt: skip
        said: Body = {"role": "assistant", "content": text or None}
        return [said | ({"tool_calls": calls} if calls else {})]
    found: list[Body] = []
    for part in one.parts:
        if isinstance(part, ToolReturnPart):
            text = part.model_response_str()
            found.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": text})
        elif isinstance(part, RetryPromptPart):
            text = part.model_response()
            found.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": text})
        else:
            role = "system" if isinstance(part, SystemPromptPart) else "user"
            text = part.content if isinstance(part.content, str) else json.dumps(part.content)
            found.append({"role": role, "content": text})
    return found


def plain(window: int) -> _History:
    """No processor: what the framework itself does to a history."""
    return _History(lambda messages: messages)


def sliding(window: int) -> _History:
    """summarization-pydantic-ai's sliding window: from 90 % of the window down to half."""
    return _History(
        create_sliding_window_processor(
            trigger=("tokens", int(TRIGGER * window)), keep=("tokens", window // 2)
        )
    )


def summarizing(window: int) -> _History:
    """summarization-pydantic-ai's summaries, by a model that answers one summary."""
    model = FunctionModel(lambda messages, info: ModelResponse([TextPart(SUMMARY)]))
    return _History(
        create_summarization_processor(
            model, trigger=("tokens", int(TRIGGER * window)), keep=("messages", 20)
        )
    )
