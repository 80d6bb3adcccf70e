"""Agents that take an address from the environment, and any other program.

The variables are those that SDKs and LiteLLM read.
"""

from __future__ import annotations

from trimtab.proxy.agents.base import Agent, LaunchContext, Setup

_VARIABLES = (
    ("OPENAI_BASE_URL", "openai", "https://api.openai.com/v1"),
    ("OPENAI_API_BASE", "openai", "https://api.openai.com/v1"),
    ("ANTHROPIC_BASE_URL", "anthropic", "https://api.anthropic.com"),
    ("ANTHROPIC_API_BASE", "anthropic", "https://api.anthropic.com"),
    ("GOOGLE_GEMINI_BASE_URL", "gemini", "https://generativelanguage.googleapis.com"),
    ("GEMINI_API_BASE", "gemini-beta", "https://generativelanguage.googleapis.com/v1beta"),
    ("DEEPSEEK_API_BASE", "deepseek", "https://api.deepseek.com/beta"),
    ("OPENROUTER_API_BASE", "openrouter", "https://openrouter.ai/api/v1"),
    ("MISTRAL_API_BASE", "mistral", "https://api.mistral.ai/v1"),
    ("GROQ_API_BASE", "groq", "https://api.groq.com/openai/v1"),
)
_TWINS = {"OPENAI_BASE_URL": "OPENAI_API_BASE", "ANTHROPIC_BASE_URL": "ANTHROPIC_API_BASE"}


def prepare(place: LaunchContext) -> Setup:
    """Set all variables that hold a base URL; the proxy forwards to their former values."""
    setup = Setup()
    env = dict(place.env)
    for first, second in _TWINS.items():  # where only one of the two is set, both mean it
        if env.get(first) or env.get(second):
            env.setdefault(first, env.get(second, ""))
            env.setdefault(second, env.get(first, ""))
    context = LaunchContext(env, place.home, place.folder, place.arguments)
    for variable, name, default in _VARIABLES:
        setup.variable(context, variable, name, default)
    return setup


AIDER = Agent("aider", prepare, "pip install aider-chat", 0.85, "it summarizes its chat history")
MINI = Agent("mini", prepare, "pip install mini-swe-agent", 0.9, "it never does")


def any_program(name: str) -> Agent:
    """Any program that reads these variables."""
    return Agent(name, prepare, "", 0.75, "unknown")
