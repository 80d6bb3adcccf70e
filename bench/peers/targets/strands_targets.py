"""Strands: a real agent whose model refuses what is above the window, as a provider does.

The agent's loop asks its conversation manager to make room and sends again.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncIterator
from typing import Any

from common import SUMMARY, Body
from strands import Agent, tool
from strands.agent.conversation_manager import (
    SlidingWindowConversationManager,
    SummarizingConversationManager,
)
from strands.models import Model
from strands.types.exceptions import ContextWindowOverflowException

from trimtab_lab.testing.conformance.properties import weigh
from trimtab_lab.testing.conformance.stories import TOOLS

logging.getLogger("strands").setLevel(logging.CRITICAL)


MAX_REFUSALS = 60
"""Of one request; each one is a call that a user pays for in time, and a summary in money."""


class _Provider(Model):
    """Refuses a prompt above the window; keeps the last one that it took."""

    def __init__(self, window: int) -> None:
        self.window, self.request, self.took = window, {}, None
        self.refused = 0

    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    async def structured_output(self, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        yield {"output": None}

    async def stream(self, messages: Any, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        last = messages[-1]["content"] if messages else []
        is_summary = any("summarize" in part.get("text", "")[:200].lower() for part in last)
        if not is_summary:
            plain = [{"role": m["role"], "content": m["content"]} for m in messages]
            body = {**self.request, "messages": copy.deepcopy(plain)}
            if weigh(body, "bedrock").tokens > self.window:
                self.refused += 1
                if self.refused > MAX_REFUSALS:
                    raise RuntimeError(f"refused {MAX_REFUSALS} times, and sent once more")
                raise ContextWindowOverflowException("prompt is too long")
            self.took = body
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": SUMMARY if is_summary else "OK"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


class _Agent:
    def __init__(self, window: int, manager: Any) -> None:
        self._model = _Provider(window)
        self._agent = Agent(
            model=self._model, conversation_manager=manager, callback_handler=None,
            tools=[tool(name=name, description=name)(_done) for name in TOOLS],
        )  # fmt: skip
        self._taken = 0

    def __call__(self, request: Body) -> Body:
        given = request["messages"]
        self._agent.messages += copy.deepcopy(given[self._taken :])
        self._taken = len(given)
        self._model.request, self._model.took, self._model.refused = request, None, 0
        self._agent()
        self._agent.messages.pop()  # its reply
        assert self._model.took is not None
        return self._model.took


def _done(path: str = "") -> str:
    """Never run."""
    return "done"


def sliding(window: int) -> _Agent:
    """``SlidingWindowConversationManager``, 40 messages, its default."""
    return _Agent(window, SlidingWindowConversationManager())


def summarizing(window: int) -> _Agent:
    """``SummarizingConversationManager`` with a model that answers one summary."""
    return _Agent(window, SummarizingConversationManager())
