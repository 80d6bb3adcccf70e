"""OpenHands: its event log, its view and LLMSummarizingCondenser, as its agent uses them.

A prompt above the window is refused; the agent then asks for a condensation, as here.
"""

# ruff: noqa: E402
from __future__ import annotations

import contextlib
import logging
import time
from importlib import import_module
from types import SimpleNamespace
from typing import Any

# litellm 1.106 imports parts of itself in a thread; Python then may see a deadlock and raise.
for _ in range(5):
    with contextlib.suppress(RuntimeError):
        import_module("litellm")
        break
    time.sleep(1)

from common import SUMMARY, TRIGGER, Body, message_tokens, nulled, room
from openhands.sdk.context.condenser import LLMSummarizingCondenser
from openhands.sdk.context.view import View
from openhands.sdk.event import (
    ActionEvent,
    Condensation,
    CondensationRequest,
    Event,
    MessageEvent,
    ObservationEvent,
    SystemPromptEvent,
)
from openhands.sdk.event.base import LLMConvertibleEvent
from openhands.sdk.llm import LLM, Message, MessageToolCall, TextContent
from openhands.sdk.tool.schema import Observation

logging.disable(logging.CRITICAL)
ATTEMPTS = 5


class Text(Observation):
    """What a tool returned."""


def _bodies(messages: list[Message]) -> list[Body]:
    """As its LLM writes them for OpenAI's API."""
    written = [
        one.to_chat_dict(
            cache_enabled=False, vision_enabled=False, function_calling_enabled=True,
            force_string_serializer=True, send_reasoning_content=False,
        )
        for one in messages
    ]  # fmt: skip
    return nulled([{key: value for key, value in one.items() if key != "name"} for one in written])


def _count(self: Any, messages: list[Message], *rest: Any, **more: Any) -> int:
    return sum(map(message_tokens, _bodies(messages)))


def _summary(self: Any, *rest: Any, **more: Any) -> Any:
    said = Message(role="assistant", content=[TextContent(text=SUMMARY)])
    return SimpleNamespace(message=said, id="summary")


class _Log:
    def __init__(self, window: int) -> None:
        LLM.get_token_count, LLM.generate = _count, _summary  # neither a network nor a model
        llm = LLM(model="gpt-4o", api_key="x", usage_id="condenser")
        self._llm, self._window = llm, window
        self._condenser = LLMSummarizingCondenser(llm=llm, max_tokens=int(TRIGGER * window))
        self._events: list[Event] = []
        self._actions: dict[str, tuple[str, str]] = {}
        self._taken = 0

    def __call__(self, request: Body) -> Body:
        for one in request["messages"][self._taken :]:
            self._taken += 1
            self._events += self._read(one)
        for _ in range(ATTEMPTS):
            view = self._condenser.condense(View.from_events(self._events), agent_llm=self._llm)
            if isinstance(view, Condensation):
                self._events.append(view)
                continue
            if sum(map(message_tokens, self._messages())) <= room(request, self._window):
                break
            self._events.append(CondensationRequest())  # the provider refused
        return {**request, "messages": self._messages()}

    def _messages(self) -> list[Body]:
        view = View.from_events(self._events)
        return _bodies(LLMConvertibleEvent.events_to_messages(view.events))

    def _read(self, one: Body) -> list[Event]:
        said = [TextContent(text=one["content"])] if one.get("content") else []
        role = one["role"]
        if role == "system":
            return [SystemPromptEvent(system_prompt=said[0], tools=[])]
        if role == "tool":
            name, action = self._actions.get(one["tool_call_id"], ("read", "unknown"))
            return [ObservationEvent(
                tool_name=name, tool_call_id=one["tool_call_id"], action_id=action,
                observation=Text.from_text(one["content"]),
            )]  # fmt: skip
        calls = one.get("tool_calls") or ()
        if not calls:
            source = "user" if role == "user" else "agent"
            return [MessageEvent(source=source, llm_message=Message(role=role, content=said))]
        found: list[Event] = []
        for number, call in enumerate(calls):
            made = call["function"]
            action = ActionEvent(
                thought=said if number == 0 else [], tool_name=made["name"],
                tool_call_id=call["id"], llm_response_id=f"response-{self._taken}",
                tool_call=MessageToolCall(
                    id=call["id"], name=made["name"], arguments=made["arguments"],
                    origin="completion",
                ),
            )  # fmt: skip
            self._actions[call["id"]] = (made["name"], action.id)
            found.append(action)
        return found


def condenser(window: int) -> _Log:
    """One conversation."""
    return _Log(window)
