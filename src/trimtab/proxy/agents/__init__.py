"""Coding agents, and how each is put behind a proxy without a trace in its configuration.

Knows their names.  One file says what one agent reads.
"""

from __future__ import annotations

from pathlib import PurePath

from trimtab.proxy.agents import claude, codex, google, opencode, others
from trimtab.proxy.agents.base import Agent, Place, Setup

AGENTS: dict[str, Agent] = {
    agent.name: agent
    for agent in (
        *(claude.AGENT, codex.AGENT, opencode.AGENT, google.GEMINI, google.QWEN),
        *(others.AIDER, others.MINI),
    )
}


def agent_for(command: str) -> Agent:
    """The agent that a command starts; a program nobody knows gets the common variables."""
    name = PurePath(command).name.removesuffix(".cmd").removesuffix(".exe")
    return AGENTS.get(name) or others.any_program(name)


__all__ = ["AGENTS", "Agent", "Place", "Setup", "agent_for"]
