"""The formats as HTTP APIs, and which of them a path belongs to.

Knows the order in which they are asked.  Does not know their shapes.
"""

from __future__ import annotations

from trimtab.testing.wire import anthropic, bedrock, gemini, openai_chat, openai_responses
from trimtab.testing.wire.base import Bill, Reply, Route, Wire

WIRES: dict[str, Wire] = {
    wire.format: wire for wire in (openai_chat, openai_responses, anthropic, bedrock, gemini)
}
"""By the name of the format."""


def find(path: str, query: str) -> tuple[Wire, Route] | None:
    """The wire that answers at this path, and what is asked for."""
    for wire in WIRES.values():
        if route := wire.route(path, query):
            return wire, route
    return None


__all__ = ["WIRES", "Bill", "Reply", "Route", "Wire", "find"]
