"""Where each agent finds its key or login.

Only checks that one exists: it is neither read nor tried at the provider.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trimtab.proxy.agents.base import LaunchContext

_OF_SDKS = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "DEEPSEEK_API_KEY"),
    *("OPENROUTER_API_KEY", "MISTRAL_API_KEY", "GROQ_API_KEY", "XAI_API_KEY"),
)


@dataclass(frozen=True)
class CredentialPlaces:
    """``variables``: in the environment, or named in one of ``texts``; ``logins``: files that a
    login creates.  Files are below the home folder, with ``./`` below the working folder."""

    variables: tuple[str, ...]
    texts: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()
    in_keychain: bool = False
    """Whether macOS may keep the login in a keychain that only the agent can read."""


_PLACES: dict[str, CredentialPlaces] = {
    "claude": CredentialPlaces(
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "apiKeyHelper"),
        (".claude/settings.json", "./.claude/settings.json", "./.claude/settings.local.json"),
        (".claude/.credentials.json",),
        in_keychain=True,
    ),
    "opencode": CredentialPlaces(
        (*_OF_SDKS, "GOOGLE_GENERATIVE_AI_API_KEY", "apiKey"),
        (".config/opencode/opencode.json", "./opencode.json", "./opencode.jsonc"),
        (".local/share/opencode/auth.json",),
    ),
    "gemini": CredentialPlaces(
        ("GEMINI_API_KEY",), (".gemini/.env", ".env", "./.gemini/.env", "./.env"),
        in_keychain=True,
    ),
    "qwen": CredentialPlaces(
        ("OPENAI_API_KEY", "DASHSCOPE_API_KEY"),
        (".qwen/settings.json", ".qwen/.env", ".env", "./.qwen/.env", "./.env"),
    ),
    "kilo": CredentialPlaces(
        (*_OF_SDKS, "KILO_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "apiKey"),
        (".config/kilo/kilo.json", ".config/kilo/kilo.jsonc", "./kilo.json", "./kilo.jsonc"),
        (".local/share/kilo/auth.json",),
    ),
    "pi": CredentialPlaces(
        (*_OF_SDKS, "CEREBRAS_API_KEY", "apiKey"), (".pi/agent/models.json",),
        (".pi/agent/auth.json",),
    ),
    "aider": CredentialPlaces(
        (*_OF_SDKS, "api-key"), (".env", "./.env", ".aider.conf.yml", "./.aider.conf.yml"),
    ),
    "mini": CredentialPlaces(_OF_SDKS, (".config/mini-swe-agent/.env", "./.env")),
}  # fmt: skip


def missing(agent: str, place: LaunchContext) -> str:
    """What to set if an agent has no credentials; "" if it has some, or that cannot be known."""
    places = _PLACES.get(agent)
    if places is None or (places.in_keychain and sys.platform == "darwin"):
        return ""
    if any(place.env.get(name) for name in places.variables):
        return ""
    if any(_file(place, name).is_file() for name in places.logins):
        return ""
    if any(name in text for text in _texts(places, place) for name in places.variables):
        return ""
    or_login = f", or log in with {agent}" if places.logins else ""
    return f"set {places.variables[0]}{or_login}"


def _texts(places: CredentialPlaces, place: LaunchContext) -> Iterator[str]:
    for name in places.texts:
        try:
            yield _file(place, name).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue


def _file(place: LaunchContext, name: str) -> Path:
    return place.folder / name[2:] if name.startswith("./") else place.home / name
