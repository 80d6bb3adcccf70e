"""Codex: its configuration file, over which ``-c key=value`` wins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trimtab.proxy.agents.base import Agent, LaunchContext, Setup, inner, read_json, read_toml

NAME = "trimtab"
_OPENAI = "https://api.openai.com/v1"


def prepare(place: LaunchContext) -> Setup:
    """The provider of the user's configuration with another address; else OpenAI by key."""
    home = Path(place.env.get("CODEX_HOME") or place.home / ".codex")
    settings = read_toml(home / "config.toml")
    chosen = _profile(settings, place).get("model_provider") or settings.get("model_provider")
    table = inner(settings, "model_providers", str(chosen))
    setup = Setup()
    if isinstance(table, dict) and table.get("base_url"):
        base = setup.send("codex", str(table["base_url"]))
        values: dict[str, Any] = {f"model_providers.{chosen}.base_url": base}
        if table.get("supports_websockets"):  # it would try five times before it takes HTTP
            values[f"model_providers.{chosen}.supports_websockets"] = False
        setup.arguments = _given(values)
        return setup
    login = read_json(home / "auth.json")
    if not place.env.get("OPENAI_API_KEY") and not login.get("OPENAI_API_KEY"):
        setup.problem = "codex: its ChatGPT login cannot go through a proxy: set OPENAI_API_KEY"
        if not login.get("tokens"):
            more = "a ChatGPT login cannot go through a proxy"
            setup.problem = f"codex: it has no key: set OPENAI_API_KEY ({more})"
        return setup
    url = place.env.get("OPENAI_BASE_URL") or settings.get("openai_base_url") or _OPENAI
    base = f"model_providers.{NAME}"
    values = {
        "model_provider": NAME, f"{base}.name": NAME, f"{base}.wire_api": "responses",
        f"{base}.base_url": setup.send("openai", str(url)),
    }  # fmt: skip
    if place.env.get("OPENAI_API_KEY"):
        values[f"{base}.env_key"] = "OPENAI_API_KEY"
    else:
        values[f"{base}.requires_openai_auth"] = True
    setup.arguments = _given(values)
    return setup


def _profile(settings: dict[str, Any], place: LaunchContext) -> dict[str, Any]:
    """The profile that the arguments or the settings choose."""
    words = list(place.arguments)
    name = settings.get("profile")
    for option in ("-p", "--profile"):
        if option in words[:-1]:
            name = words[words.index(option) + 1]
    profile = inner(settings, "profiles", str(name))
    return profile if isinstance(profile, dict) else {}


def _given(values: dict[str, Any]) -> list[str]:
    return [word for key, value in values.items() for word in ("-c", f"{key}={json.dumps(value)}")]


AGENT = Agent(
    "codex", prepare, "npm install -g @openai/codex", 0.85,
    "at 90 % of the window (model_auto_compact_token_limit)", waits_seconds=600.0,
)  # fmt: skip
