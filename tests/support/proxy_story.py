"""Sessions for the dashboard: an agent that reads much, through a proxy before a strict provider.

Knows Anthropic's format and nothing of the pages.
"""

from __future__ import annotations

import json
from typing import Any

from proxies import ask

from trimtab_lab.testing import Answer, Call

WINDOW = 60_000
JSON = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
TOOLS = [{"name": "bash", "input_schema": {"type": "object", "properties": {}}}]
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    '"><svg onload=document.title="owned">\u202egnp.exe\x1b[31m</pre></section>'
)


def listing(step: int, lines: int = 160) -> str:
    """What a command prints."""
    rows = (f"src/part_{step}/module_{n}.py:{n * 13 % 97}: value_{n * 7919 % 10007} changed"
            for n in range(lines))  # fmt: skip
    return "\n".join(rows)


def answers(record: Any) -> Answer:
    """A call on each turn, until the user asks no more."""
    step = len(record.body["messages"]) // 2
    return Answer(f"Step {step}.", [Call("bash", {"command": f"grep -rn part_{step} src"})])


def turn_by_turn(
    url: str, turns: int, *, name: str = "review", lines: int = 160, hostile: bool = False
) -> list[Any]:
    """Drive one session; its messages at the end."""
    messages: list[Any] = [{"role": "user", "content": f"Go through the parts of {name}."}]
    headers = {**JSON, "x-claude-code-session-id": name, "user-agent": "claude-cli/2.1.330"}
    for step in range(turns):
        body = {
            "model": "claude-opus-5-5", "max_tokens": 4_000, "tools": TOOLS, "messages": messages,
        }  # fmt: skip
        status, _, answer = ask(url, "POST", "/v1/messages", json.dumps(body), headers)
        if status != 200:
            raise RuntimeError(answer.decode())
        content = json.loads(answer)["content"]
        told = listing(step, lines) + (HOSTILE if hostile else "")
        results = [
            {"type": "tool_result", "tool_use_id": part["id"], "content": told}
            for part in content
            if part["type"] == "tool_use"
        ]
        for message in messages[1:]:
            for part in message["content"]:
                part.pop("cache_control", None)
        results[-1]["cache_control"] = {"type": "ephemeral"}
        messages = [*messages, {"role": "assistant", "content": content},
                    {"role": "user", "content": results}]  # fmt: skip
    return messages
