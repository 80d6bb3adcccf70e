"""Cline: a copy of its ``providers.json`` for this run.

Its hub, which outlives a run, would keep the addresses, so sessions run without it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trimtab.proxy.agents.base import Agent, LaunchContext, Setup, inner, read_json

_KNOWN = {
    "anthropic": "https://api.anthropic.com/v1",
    "openai-native": "https://api.openai.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "openrouter": "https://openrouter.ai/api/v1",
    "deepseek": "https://api.deepseek.com/v1",
    "mistral": "https://api.mistral.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "xai": "https://api.x.ai/v1",
}
"""Its providers that take a key, and their addresses."""
_NEW = {"updatedAt": "1970-01-01T00:00:00.000Z", "tokenSource": "manual"}
_VARIABLE = "CLINE_PROVIDER_SETTINGS_PATH"


def prepare(place: LaunchContext) -> Setup:
    """Each provider's ``baseUrl``; only with a key."""
    setup = Setup()
    data = Path(place.env.get("CLINE_DATA_DIR") or place.home / ".cline/data")
    saved = read_json(Path(place.env.get(_VARIABLE) or data / "settings/providers.json"))
    chosen = _chosen(place, saved)
    entries = dict(inner(saved, "providers") or {})
    # A login's tokens are renewed in the file: a copy would leave the original with old ones.
    logins = [name for name, entry in entries.items() if inner(entry, "settings", "auth")]
    if chosen in {*logins, "", "cline"}:
        setup.problem = (
            f"cline: the login {chosen or 'cline'!r} cannot go through a proxy: choose a provider "
            "with a key (cline auth anthropic -k KEY)"
        )
        return setup
    providers: dict[str, Any] = {}
    for name in {**_KNOWN, **entries}.keys() - logins:
        entry = dict(entries.get(name) or _NEW)
        settings = {"provider": name, **(entry.get("settings") or {})}
        if url := settings.get("baseUrl") or _KNOWN.get(name):
            settings["baseUrl"] = setup.send(name, str(url))
        providers[name] = {**entry, "settings": settings}
    setup.files[_VARIABLE] = json.dumps(
        {"version": 1, "modes": {}, **saved, "providers": providers}
    )
    setup.env["CLINE_SESSION_BACKEND_MODE"] = "local"
    return setup


def _chosen(place: LaunchContext, saved: dict[str, Any]) -> str:
    """The provider that the arguments or the file choose; "" for Cline's own."""
    words = list(place.arguments)
    for option in ("-P", "--provider"):
        if option in words[:-1]:
            return words[words.index(option) + 1]
    return str(saved.get("lastUsedProvider") or "")


AGENT = Agent(
    "cline", prepare, "npm install -g cline", 0.8, "at 90 % of the window",
)  # fmt: skip
