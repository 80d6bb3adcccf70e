"""System messages in mid-conversation keep a place that the provider allows, whatever is cut.

The judge and the conversations are written from the provider's documentation, not from our rules.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import trimtab

Messages = list[dict[str, Any]]


def misplaced(messages: Messages) -> list[str]:
    """What the API says of each system message that stands where it must not."""
    found = []
    for number, message in enumerate(messages):
        if message["role"] != "system" or (message["content"] == [] and "output_config" in message):
            continue
        before = messages[number - 1] if number else None
        behind = messages[number + 1] if number + 1 < len(messages) else None
        if before is None:
            found.append(f"{number}: first")
        elif before["role"] == "system":
            found.append(f"{number}: two in a row")
        elif before["role"] == "assistant" and not _ends_at_the_server(before):
            found.append(f"{number}: must follow a user message")
        if behind is not None and behind["role"] != "assistant":
            found.append(f"{number}: must precede an assistant message")
    return found


def _ends_at_the_server(message: dict[str, Any]) -> bool:
    content = message["content"]
    last = content[-1] if isinstance(content, list) and content else {}
    return str(last.get("type", "")).endswith("_tool_result")


def conversation(seed: int, *, bedrock: bool = False) -> Messages:
    """Steps of one or two calls, some with the user's words beside results, some failed; a system
    message behind about every third result."""
    chance = random.Random(seed)

    def said(text: str) -> Any:
        return [{"text": text}] if bedrock else text

    def text(words: str) -> dict[str, Any]:
        return {"text": words} if bedrock else {"type": "text", "text": words}

    def call(name: str) -> dict[str, Any]:
        given = {"path": f"{name}.py"}
        if bedrock:
            return {"toolUse": {"toolUseId": name, "name": "read", "input": given}}
        return {"type": "tool_use", "id": name, "name": "read", "input": given}

    def result(name: str, out: str, failed: bool) -> dict[str, Any]:
        if bedrock:
            status = "error" if failed else "success"
            inner = {"toolUseId": name, "content": [{"text": out}], "status": status}
            return {"toolResult": inner}
        given = {"type": "tool_result", "tool_use_id": name, "content": out}
        return {**given, "is_error": True} if failed else given

    messages: Messages = [{"role": "user", "content": said("Fix it. Never touch vendor/.")}]
    if chance.random() < 0.6:
        messages.append({"role": "system", "content": said("Agents: a, b.")})
    for step in range(chance.choice([10, 20, 35])):
        names = [f"t{step}_{n}" for n in range(chance.choice([1, 1, 2]))]
        words = [text(f"step {step}")] if chance.random() < 0.5 else []
        messages.append({"role": "assistant", "content": [*words, *map(call, names)]})
        results = []
        for name in names:
            lines = range(chance.choice([5, 60, 90]))
            out = "\n".join(f"{line}: id-{chance.randrange(10**6)}" for line in lines)
            results.append(result(name, out, chance.random() < 0.2))
        if chance.random() < 0.1:
            results.append(text("and please hurry"))
        messages.append({"role": "user", "content": results})
        if chance.random() < 0.3:
            messages.append({"role": "system", "content": said("Reminder: stay calm. " * 5)})
        if chance.random() < 0.08:
            messages.append({"role": "assistant", "content": said(f"done {step}")})
            messages.append({"role": "user", "content": said(f"go on {step}")})
            if chance.random() < 0.4:
                messages.append({"role": "system", "content": said("Reminder again.")})
    return messages


def _tips(messages: Messages) -> Iterator[int]:
    """Where the client may ask the model: behind the user, and behind a system message."""
    for end in range(1, len(messages) + 1):
        models_turn = end == len(messages) or messages[end]["role"] == "assistant"
        if models_turn and messages[end - 1]["role"] != "assistant":
            yield end


def body(messages: Messages, *, bedrock: bool = False) -> dict[str, Any]:
    schema = {"type": "object"}
    if bedrock:
        tool = {"toolSpec": {"name": "read", "inputSchema": {"json": schema}}}
        model = "anthropic.claude-opus-5-v1:0"
        return {"modelId": model, "messages": messages, "toolConfig": {"tools": [tool]}}
    tool = {"name": "read", "description": "r", "input_schema": schema}
    return {"model": "claude-opus-5", "max_tokens": 1_000, "tools": [tool], "messages": messages}


@pytest.mark.parametrize("bedrock", [False, True], ids=["anthropic", "bedrock"])
@pytest.mark.parametrize("seed", range(10))
def test_no_cut_separates_a_system_message_from_its_place(seed: int, bedrock: bool) -> None:
    messages = conversation(seed, bedrock=bedrock)
    assert not misplaced(messages)
    for window in (3_000, 5_000, 8_000, 14_000):
        session, cut = trimtab.Session(window=window), 0
        for end in list(_tips(messages))[::4]:
            try:
                fitted = session.fit(body(messages[:end], bedrock=bedrock))
            except trimtab.CannotFit:
                continue
            sent = fitted.request["messages"]
            assert not misplaced(sent)
            assert not [text for text in fitted.report.warnings if "failed" in text]
            cut += len(sent) < end
        assert cut or window > 5_000


def test_a_step_between_two_system_messages_leaves_one_message_of_each_speaker() -> None:
    """Neither a note of the user's nor one of the model's alone would be allowed there."""
    failed = {"type": "tool_result", "tool_use_id": "t1", "content": "no " * 4_000}
    failed |= {"is_error": True}
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "read", "input": {}} for n in (1, 2)]
    messages = [
        {"role": "user", "content": "Fix it."},
        {"role": "system", "content": "One."},
        {"role": "assistant", "content": calls[:1]},
        {"role": "user", "content": [failed]},
        {"role": "system", "content": "Two."},
        {"role": "assistant", "content": calls[1:]},
        {"role": "user", "content": [{**failed, "tool_use_id": "t2", "content": "short"}]},
    ]
    fitted = trimtab.fit(body(messages), window=1_500, reserve=0)
    assert not misplaced(fitted.request["messages"])
