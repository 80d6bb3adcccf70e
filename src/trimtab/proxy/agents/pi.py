"""pi: an extension given on its command line, whose addresses win over ``models.json``."""

from __future__ import annotations

import json
from pathlib import Path

from trimtab.proxy.agents.base import Agent, LaunchContext, Setup, inner, read_json

_KNOWN = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta",
    "openrouter": "https://openrouter.ai/api/v1",
    "deepseek": "https://api.deepseek.com",
    "mistral": "https://api.mistral.ai",
    "groq": "https://api.groq.com/openai/v1",
    "xai": "https://api.x.ai/v1",
    "cerebras": "https://api.cerebras.ai/v1",
}
"""Its providers with a key and one address for all their models."""


def prepare(place: LaunchContext) -> Setup:
    """Each provider's ``baseUrl``; other logins (ChatGPT, GitHub Copilot) go past the proxy."""
    setup, providers = Setup(), dict(_KNOWN)
    home = Path(place.env.get("PI_CODING_AGENT_DIR") or place.home / ".pi/agent")
    for name, provider in (inner(read_json(home / "models.json"), "providers") or {}).items():
        url = str(inner(provider, "baseUrl") or "")
        if url.startswith(("http://", "https://")):
            providers[name] = url
    addresses = {name: setup.send(name, url) for name, url in providers.items()}
    setup.env["TRIMTAB_PI"] = json.dumps(addresses)
    setup.arguments = ["--extension", str(Path(__file__).with_name("pi_addresses.js"))]
    return setup


AGENT = Agent(
    "pi", prepare, "npm install -g @earendil-works/pi-coding-agent", 0.85,
    "when 16,384 tokens of the window are left",
)  # fmt: skip
