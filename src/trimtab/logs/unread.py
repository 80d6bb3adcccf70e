"""Names the logs of agents that are recognised and not read, and says what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_KIMI = ("_checkpoint", "_usage", "_system_prompt")


def _any(values: Sequence[Any], test: Callable[[Mapping[str, Any]], bool]) -> bool:
    return any(isinstance(value, dict) and test(value) for value in values[:20])


_AGENTS: dict[str, Callable[[Sequence[Any]], bool]] = {
    "Kimi": lambda values: _any(
        values,
        lambda v: v.get("role") in _KIMI
        or (v.get("type") == "metadata" and "protocol_version" in v),
    ),
    "droid": lambda values: _any(
        values, lambda v: v.get("type") == "session_start" and "id" in v and "cwd" in v
    ),
    "Amp": lambda values: _any(
        values, lambda v: str(v.get("id")).startswith("T-") and isinstance(v.get("messages"), list)
    ),
    "Cursor": lambda values: _any(
        values, lambda v: "role" in v and isinstance(v.get("message"), dict) and "type" not in v
    ),
    "VS Code's chat": lambda values: _any(
        values, lambda v: isinstance(v.get("requests"), list) and "requesterUsername" in v
    ),
}  # fmt: skip


def unread_agent(values: Sequence[Any]) -> str | None:
    """The agent that wrote these lines; None if they are read, or by nobody we know."""
    return next((name for name, is_log in _AGENTS.items() if is_log(values)), None)


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
