"""The seven hard cases of hard_cases.py as input items of OpenAI Responses.

Knows how the chat messages of a case become items.  Does not know trimtab.
"""

from __future__ import annotations

from typing import Any

from hard_cases import CASES, conversation

__all__ = ["CASES", "input_items"]


def input_items(name: str, *, thinking: bool = False, seed: int = 1) -> list[dict[str, Any]]:
    """The items of one case; with ``thinking`` each step begins with an encrypted reasoning
    item, and all the model's items carry ids."""
    items: list[dict[str, Any]] = []
    for number, message in enumerate(conversation(name, "openai-chat", seed)):
        if message["role"] == "tool":
            items.append({
                "type": "function_call_output", "call_id": message["tool_call_id"],
                "output": message["content"],
            })  # fmt: skip
        elif message["role"] == "assistant":
            items += _step(number, message, thinking)
        else:
            role = {"system": "developer"}.get(message["role"], message["role"])
            part = {"type": "input_text", "text": message["content"]}
            items.append({"type": "message", "role": role, "content": [part]})
    return items


def _step(number: int, message: dict[str, Any], thinking: bool) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if thinking:
        items.append({
            "type": "reasoning", "id": f"rs_{number}", "summary": [],
            "encrypted_content": "gAAAA" + f"{number:03}" * 200,
        })  # fmt: skip
    if message["content"]:
        said = [{"type": "output_text", "text": message["content"]}]
        items.append({"type": "message", "id": f"msg_{number}", "role": "assistant",
                      "content": said})  # fmt: skip
    items += [
        {
            "type": "function_call", "id": f"fc_{number}_{index}", "call_id": call["id"],
            "name": call["function"]["name"], "arguments": call["function"]["arguments"],
        }
        for index, call in enumerate(message["tool_calls"])
    ]  # fmt: skip
    if thinking:
        return items
    return [{key: value for key, value in item.items() if key != "id"} for item in items]
