"""Coding agents, and how to start each behind a proxy without changing its configuration.

Each agent has a file that knows what it reads.
"""

from __future__ import annotations

from pathlib import PurePath

from trimtab.proxy.agents import (
    claude_code,
    cline,
    codex,
    copilot,
    gemini_cli,
    opencode,
    others,
    pi,
)
from trimtab.proxy.agents.base import Agent, LaunchContext, Setup

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        *(claude_code.AGENT, codex.AGENT, opencode.AGENT, gemini_cli.GEMINI, gemini_cli.QWEN),
        *(opencode.KILO, pi.AGENT, cline.AGENT, copilot.AGENT, others.AIDER, others.MINI),
    )
}


def agent_for(command: str) -> Agent:
    """The agent that a command starts; an unknown program gets the common variables."""
    name = PurePath(command).name.removesuffix(".cmd").removesuffix(".exe")
    return AGENTS.get(name) or others.any_program(name)


__all__ = ["AGENTS", "Agent", "LaunchContext", "Setup", "agent_for"]
