"""Claude Code: its variables and settings files.

Settings given on its command line win over files.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from trimtab.proxy.agents.base import Agent, LaunchContext, Setup, inner, read_json

_CLOUDS = {"CLAUDE_CODE_USE_BEDROCK": "Bedrock", "CLAUDE_CODE_USE_VERTEX": "Vertex AI",
           "CLAUDE_CODE_USE_FOUNDRY": "Foundry"}  # fmt: skip


def prepare(place: LaunchContext) -> Setup:
    """``ANTHROPIC_BASE_URL``; logins by key and by subscription both go through."""
    files = (
        place.home / ".claude/settings.json",
        place.folder / ".claude/settings.json",
        place.folder / ".claude/settings.local.json",
    )
    from_files: dict[str, str] = {}
    for file in files:
        env = inner(read_json(file), "env")
        from_files |= env if isinstance(env, dict) else {}
    variables = {**place.env, **from_files}
    setup = Setup()
    for variable, cloud in _CLOUDS.items():
        if str(variables.get(variable, "")).lower() not in ("", "0", "false"):
            setup.problem = (
                f"claude is set to {cloud} ({variable}), which signs its requests and cannot go "
                f"through a proxy: unset it and set ANTHROPIC_API_KEY"
            )
            return setup
    variable = "ANTHROPIC_BASE_URL"
    setup.env[variable] = setup.send(
        "anthropic", variables.get(variable) or "https://api.anthropic.com"
    )
    if variable in from_files and "--settings" not in place.arguments:
        settings = {"env": {variable: setup.env[variable]}}
        setup.arguments = ["--settings", json.dumps(settings)]
    return setup


def show_status(place: LaunchContext, setup: Setup, command: Sequence[str]) -> None:
    """Its status line, and a hook that has a summary keep the handles of originals."""
    if "--settings" in place.arguments:
        setup.problem = "claude --settings cannot be given with --status: use one of the two"
        return
    hook = {"type": "command", "command": shlex.join(command)}
    settings = json.loads(setup.arguments[1]) if setup.arguments else {}
    settings |= {"statusLine": hook, "hooks": {"PreCompact": [{"hooks": [hook]}]}}
    setup.arguments = ["--settings", json.dumps(settings)]


AGENT = Agent(
    "claude", prepare, "npm install -g @anthropic-ai/claude-code", 0.8,
    "when about 13,000 tokens are left, apart from its output reserve, (83 % of 200k)",
    own_window=200_000, min_window=100_000, show_status=show_status,
)  # fmt: skip
