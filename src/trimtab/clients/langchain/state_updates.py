"""The messages of a fitted conversation that replace those in the agent's state.

LangGraph's reducer replaces a message by one with the same id.  Only shrunk messages are written
to the state.  Steps that were dropped or folded into notes stay whole there, because the next note
replaces the previous one and is made from the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

STALE_USAGE = "usage_before_trimtab"
"""Key of ``response_metadata`` for a usage that is no longer the size of the conversation."""


def replaced(before: Sequence[BaseMessage], after: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The results and answers that changed, with their ids; never a user's message."""
    by_id = {message.id: message for message in before if message.id is not None}
    changed = {
        message.id: message for message in after
        if isinstance(message, (AIMessage, ToolMessage)) and message.id in by_id
        and message is not by_id[message.id]
    }  # fmt: skip
    if changed and (answer := _stale(before, changed)) is not None:
        changed[str(answer.id)] = _usage_aside(answer)
    return list(changed.values())


def _stale(
    before: Sequence[BaseMessage], changed: dict[str, AIMessage | ToolMessage]
) -> AIMessage | None:
    """The newest answer if it has a usage and a message before it changed; else None."""
    last = next((n for n, m in reversed(list(enumerate(before))) if isinstance(m, AIMessage)), 0)
    if not any(message.id in changed for message in before[:last]):
        return None
    answer = changed.get(str(before[last].id), before[last])
    return answer if isinstance(answer, AIMessage) and answer.usage_metadata else None


def _usage_aside(answer: AIMessage) -> AIMessage:
    """``answer`` with its usage moved to its metadata: SummarizationMiddleware takes it for the
    conversation's size and would summarize a conversation that fits now."""
    metadata = {**answer.response_metadata, STALE_USAGE: dict(answer.usage_metadata or {})}
    return answer.model_copy(update={"usage_metadata": None, "response_metadata": metadata})
