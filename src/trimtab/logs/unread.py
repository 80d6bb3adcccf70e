"""Names the logs of agents that are recognised and not read, and says what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_KIMI = ("_checkpoint", "_usage", "_system_prompt")


_AGENTS: dict[str, Callable[[Mapping[str, Any]], bool]] = {
    "Kimi": lambda line: (
        line.get("role") in _KIMI or (line.get("type") == "metadata" and "protocol_version" in line)
    ),
    "droid": lambda line: line.get("type") == "session_start" and "id" in line and "cwd" in line,
    "Amp": lambda line: (
        str(line.get("id")).startswith("T-") and line.keys() >= {"v", "created", "messages"}
    ),
    "Antigravity": lambda line: "step_index" in line and "created_at" in line,
    "Cursor": lambda line: (
        "role" in line and isinstance(line.get("message"), dict) and "type" not in line
    ),
    "VS Code's chat": lambda line: "requesterUsername" in line and "requests" in line,
}
"""Agent → whether it wrote a line."""
_HEAD = 20


def unread_agent(values: Sequence[Any]) -> str | None:
    """The agent that wrote these lines; None if they are read, or by nobody we know."""
    lines = [value for value in values[:_HEAD] if isinstance(value, dict)]
    return next((name for name, wrote in _AGENTS.items() if any(map(wrote, lines))), None)


def what_to_do(agent: str) -> str:
    """Why its log is not read, and what to give instead."""
    return (
        f"a session log of {agent}, which is not read: give its requests, one body as JSON on each "
        "line, or run it behind `trimtab proxy`"
    )


SQLITE = b"SQLite format 3\0"
"""How the file of a database begins."""
DATABASE = (
    "an SQLite database: agents that keep their sessions in one export them: `goose session export "
    "--format json`, `opencode export`"
)
