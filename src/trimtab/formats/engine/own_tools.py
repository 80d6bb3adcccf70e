"""What a provider does not take together with a tool of ours, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

STATE = "its provider keeps the conversation and adds every round to it"
LATER = "its answer is fetched later (background)"
FUNCTIONS = "it offers functions in the old way, and then no tool is accepted"
PREDICTED = "it predicts its answer (prediction), and then no tool is accepted"
PARTS = "its input is no list of steps"
PROMPT = "its tools are those of a prompt that the provider keeps"
CACHED = "its tools are those of content that the provider keeps"

WhyNoTool = Callable[[Mapping[str, Any]], str]
"""A body → why it gets no tool of ours; "" if it may."""


def none_beside(**reasons: str) -> WhyNoTool:
    """No tool of ours beside any of these fields, if it has a value that is true."""

    def why_no_tool(body: Mapping[str, Any]) -> str:
        return next((why for field, why in reasons.items() if body.get(field)), "")

    return why_no_tool
