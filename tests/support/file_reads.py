"""An agent that reads one file a step, in Anthropic's format: one line in each file says something.

Does not know the library under test.
"""

from __future__ import annotations

from typing import Any

FILLER = "the quick brown fox jumps over the lazy dog again"


def step(number: int, result: str, command: str = "") -> list[dict[str, Any]]:
    made = {"command": command or f"cat file{number}.py"}
    use = {"type": "tool_use", "id": f"t{number}", "name": "bash", "input": made}
    back = {"type": "tool_result", "tool_use_id": f"t{number}", "content": result}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [back]}]


def request(steps: int, lines: int = 60) -> dict[str, Any]:
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Fix it."}]}]
    for number in range(steps):
        rows = [f"{FILLER} {number}" for _ in range(lines)]
        rows[lines // 2] = f"the parser calls load_config_{number:03d} before it starts"
        messages += step(number, "\n".join(f"{row} x{n}" for n, row in enumerate(rows)))
    return {"model": "claude-sonnet-4-5", "max_tokens": 1, "messages": messages}
