"""Requests as Claude Code sends them in a long session.  Knows nothing of the proxy."""

from __future__ import annotations

import json

JSON = {"content-type": "application/json", "anthropic-version": "2023-06-01"}


def long_session(steps: int = 30, model: str = "claude-opus-4-8", most: int = 128_000) -> bytes:
    """What Claude Code sends: 128,000 output tokens asked for, about 60,000 in the prompt."""
    messages: list[object] = [{"role": "user", "content": "Find out why the build fails."}]
    for n in range(steps):
        text = "\n".join(f"{n}:{i}: value_{i * 7919 % 10007} of the listing" for i in range(130))
        call = {"type": "tool_use", "id": f"t{n}", "name": "bash", "input": {"command": f"ls {n}"}}
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": text}
        said, got = {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}
        messages += [said, got]
    tools = [{"name": "bash", "input_schema": {"type": "object"}}]
    body = {"model": model, "max_tokens": most, "tools": tools, "messages": messages}
    return json.dumps(body).encode()
