"""Short conversations of tool calls and their results, the same in each of the five formats."""

from __future__ import annotations

from typing import Any, NamedTuple

from shapes import FORMATS, MODELS, Call, exchange, request, sealed, user

FLAGGED = tuple(format for format in FORMATS if format != "openai-chat")
"""Formats in which a result says by a flag that its call failed."""


class Step(NamedTuple):
    """One call and its result; ``arguments`` as text goes out as it is where text may stand."""

    tool: str
    arguments: Any
    result: Any
    error: bool = False
    id: str = ""


def conversation(format: str, *turns: Step | list[Step], last: str = "And now?") -> dict[str, Any]:
    """A question, one model turn for each item (several calls in a list), a last question."""
    items = user(format, "Please mend the parser.")
    for number, given in enumerate(turns):
        steps = given if isinstance(given, list) else [given]
        calls = [
            Call(one.id or f"call_{number}_{n}", one.tool, one.arguments, one.result, one.error)
            for n, one in enumerate(steps)
        ]
        items += sealed(exchange(format, calls), "c2lnbmVk")
    return request(format, items + user(format, last), MODELS[format])
