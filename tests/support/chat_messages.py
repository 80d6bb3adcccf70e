"""Chat messages to convert: a body, calls, answers.

Knows the wire format; does not know the library under test.
"""

from __future__ import annotations

from typing import Any


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    """A chat body."""
    return {"messages": list(messages), **more}


def called(*calls: tuple[str, str, str], content: Any = None) -> dict[str, Any]:
    """An assistant message with calls (id, name, arguments)."""
    made = [
        {"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls
    ]
    return {"role": "assistant", "content": content, "tool_calls": made}


def answer(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    """A tool message."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


USER = {"role": "user", "content": "Look."}
