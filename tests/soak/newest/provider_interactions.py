"""What Gemini's Interactions refuse, in their words; steps that they do not name pass.

Sources: ai.google.dev, the types of google-genai 3.6, js-genai #1735, inspect-robots #380.
Where no refusal is public the words are ours: pairs, and the first and last step.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def refusal(
    body: dict[str, Any], headers: dict[str, str] | None = None, dialect: str = ""
) -> str | None:
    """The provider's words, or None where it answers."""
    return next(_problems(body), None)


def _problems(body: dict[str, Any]) -> Iterator[str]:
    steps = body.get("input")
    if not isinstance(steps, list) or not steps:
        yield "Invalid input received: input is empty"
        return
    waiting: dict[Any, str] = {}
    done: set[Any] = set()
    for n, step in enumerate(steps):
        kind = str(step.get("type", ""))
        if not kind:
            yield f"Invalid input received: input[{n}].type is required"
        if kind == "thought" and not step.get("signature"):
            yield "Request contains an invalid argument. (thought without signature)"
        if kind in ("user_input", "model_output") and not step.get("content"):
            yield f"Invalid input received: input[{n}].content is empty"
        for part in step.get("content") or ():
            if part.get("type") == "text" and not part.get("text"):
                yield f"Invalid input received: input[{n}].content: empty text"
        if kind == "user_input" and waiting:
            yield f"Function call {next(iter(waiting))} has no function_result."
        if kind.endswith("_call"):
            if step["id"] in waiting or step["id"] in done:
                yield f"Duplicate call id {step['id']}"
            waiting[step["id"]] = kind
        elif kind.endswith("_result"):
            if waiting.pop(step.get("call_id"), "") != f"{kind.removesuffix('_result')}_call":
                yield f"{kind} {step.get('call_id')} has no matching call."
            done.add(step.get("call_id"))
            if kind == "function_result" and not step.get("name"):
                yield "Invalid input received: function_result.name is required"
            if kind == "function_result" and "result" not in step:
                yield "Invalid input received: function_result.result is required"
    if waiting:
        yield f"Function call {next(iter(waiting))} has no function_result."
    if steps[0].get("type") != "user_input":
        yield "The first step must be a user_input."
    if steps[-1].get("type") not in ("user_input", "function_result"):
        yield "The last step must be a user_input or a function_result."


def channels(body: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(channel, text) of everything said."""
    for step in body.get("input") or ():
        kind, text = str(step.get("type")), json.dumps(step, ensure_ascii=False)
        if kind == "thought":
            yield "thinking", text
        elif kind.endswith("_call"):
            yield "arguments", text
        elif kind.endswith("_result"):
            yield "tool", text
        else:
            yield ("user" if kind == "user_input" else "model"), text


def state(body: dict[str, Any]) -> set[str]:
    """Tools that a search has found."""
    return {
        tool["name"]
        for step in body.get("input") or ()
        if step.get("type") == "tool_search_result"
        for tool in step.get("result") or ()
    }
