"""LangChain: ``trim_messages`` and its two middlewares."""

from __future__ import annotations

from typing import Any

from common import SUMMARY, TRIGGER, nulled, room, tokens_of


def trim(request: dict[str, Any], window: int) -> Any:
    """``trim_messages`` as its documentation shows it, with an exact counter."""
    from langchain_core.messages import (
        convert_to_messages,
        convert_to_openai_messages,
        trim_messages,
    )

    def count(messages: Any) -> int:
        total = 0
        for one in messages if isinstance(messages, list) else [messages]:
            calls = getattr(one, "tool_calls", None) or ()
            total += 4 + tokens_of(str(one.content)) + (10 if one.type == "tool" else 0)
            total += sum(10 + tokens_of(call["name"] + str(call["args"])) for call in calls)
        return total

    kept = trim_messages(
        convert_to_messages(request["messages"]), max_tokens=room(request, window),
        token_counter=count, strategy="last", start_on="human", end_on=("human", "tool"),
        include_system=True,
    )  # fmt: skip
    return {**request, "messages": nulled(convert_to_openai_messages(kept))}


def clear(window: int) -> Any:
    """``ContextEditingMiddleware`` with ``ClearToolUsesEdit``."""
    from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

    return ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=int(TRIGGER * window))])


def summarize(window: int) -> Any:
    """``SummarizationMiddleware``; it keeps 20 messages, its default."""
    from langchain.agents.middleware import SummarizationMiddleware

    return SummarizationMiddleware(stub(), trigger=("tokens", int(TRIGGER * window)))


def stub() -> Any:
    """A model that answers everything with one summary."""
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    return FakeListChatModel(responses=[SUMMARY])
