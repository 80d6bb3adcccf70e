"""opencode: its configuration files, over which ``OPENCODE_CONFIG_CONTENT`` wins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from trimtab.proxy.agents.base import Agent, LaunchContext, Setup, inner, read_json

_KNOWN = {
    "anthropic": "https://api.anthropic.com/v1",
    "openai": "https://api.openai.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta",
    "openrouter": "https://openrouter.ai/api/v1",
    "deepseek": "https://api.deepseek.com",
    "mistral": "https://api.mistral.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "xai": "https://api.x.ai/v1",
}
"""Providers whose address it knows."""
_VARIABLE = re.compile(r"\{env:([^}]+)\}")


def prepare(place: LaunchContext) -> Setup:
    """Each provider's ``baseURL``."""
    setup, providers = Setup(), dict(_KNOWN)
    text = place.env.get("OPENCODE_CONFIG_CONTENT")
    content: Any = {}
    if text:
        try:
            content = json.loads(text)
        except ValueError:
            content = {}
    for config in (*map(read_json, _files(place)), content):
        for name, provider in (inner(config, "provider") or {}).items():
            if url := inner(provider, "options", "baseURL"):
                providers[name] = _VARIABLE.sub(lambda m: place.env.get(m[1], ""), str(url))
    merged = dict(content) if isinstance(content, dict) else {}
    table = merged["provider"] = dict(merged.get("provider") or {})
    for name, url in providers.items():
        if not url.startswith(("http://", "https://")):
            continue
        entry = dict(table.get(name) or {})
        entry["options"] = {**(entry.get("options") or {}), "baseURL": setup.send(name, url)}
        table[name] = entry
    setup.env["OPENCODE_CONFIG_CONTENT"] = json.dumps(merged)
    return setup


def _files(place: LaunchContext) -> Iterator[Path]:
    """Its configuration files, in order of increasing priority."""
    home = Path(place.env.get("XDG_CONFIG_HOME") or place.home / ".config") / "opencode"
    for name in ("config.json", "opencode.json", "opencode.jsonc"):
        yield home / name
    if own := place.env.get("OPENCODE_CONFIG"):
        yield Path(own)
    for folder in reversed((place.folder, *place.folder.parents)):
        for name in ("opencode.json", "opencode.jsonc", ".opencode/opencode.json"):
            yield folder / name


def show_status(place: LaunchContext, setup: Setup, command: Sequence[str]) -> None:
    """Add our plugin beside its own."""
    content = json.loads(setup.env["OPENCODE_CONFIG_CONTENT"])
    plugin = Path(__file__).with_name("opencode_status.js").as_uri()
    content["plugin"] = [*(content.get("plugin") or ()), plugin]
    setup.env["OPENCODE_CONFIG_CONTENT"] = json.dumps(content)
    setup.env["TRIMTAB_STATUS"] = json.dumps(list(command))


AGENT = Agent(
    "opencode", prepare, "npm install -g opencode-ai", 0.85,
    "when the window less the model's output limit (32,000 at most) is full",
    show_status=show_status,
)  # fmt: skip
