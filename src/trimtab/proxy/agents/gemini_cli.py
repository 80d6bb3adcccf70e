"""Gemini CLI and its descendant Qwen Code: their variables and settings files."""

from __future__ import annotations

from trimtab.proxy.agents.base import Agent, LaunchContext, Setup, inner, read_json


def _login(place: LaunchContext, folder: str) -> str:
    """The kind of login that the settings choose."""
    login = ""
    for root in (place.home, place.folder):
        settings = read_json(root / folder / "settings.json")
        chosen = inner(settings, "security", "auth", "selectedType")
        login = str(chosen or settings.get("selectedAuthType") or login)
    return login


def prepare_gemini(place: LaunchContext) -> Setup:
    """``GOOGLE_GEMINI_BASE_URL``; only with a key."""
    setup, login = Setup(), _login(place, ".gemini")
    key = place.env.get("GEMINI_API_KEY")
    if login and login != "gemini-api-key" and not (login == "gateway" and key):
        setup.problem = (
            f"gemini: the login {login!r} cannot go through a proxy: set GEMINI_API_KEY and choose "
            "the API key in /auth"
        )
        return setup
    if key and not login and not place.env.get("GOOGLE_GEMINI_BASE_URL"):
        # With a base URL set it believes that it is logged in at a gateway, and refuses to start.
        setup.problem = (
            "gemini: with a key alone it does not take an address: choose the API key once in "
            '/auth, or write {"security": {"auth": {"selectedType": "gemini-api-key"}}} to '
            "~/.gemini/settings.json"
        )
        return setup
    default = "https://generativelanguage.googleapis.com"
    setup.variable(place, "GOOGLE_GEMINI_BASE_URL", "gemini", default)
    return setup


def prepare_qwen(place: LaunchContext) -> Setup:
    """``OPENAI_BASE_URL``; only with a key."""
    setup, login = Setup(), _login(place, ".qwen")
    if login.startswith("qwen") and "--auth-type" not in place.arguments:
        setup.problem = (
            "qwen: its own login cannot go through a proxy: set OPENAI_API_KEY and "
            "OPENAI_BASE_URL, and run it with --auth-type openai"
        )
        return setup
    default = "https://dashscope.aliyuncs.com/compatible-mode/v1"
    setup.variable(place, "OPENAI_BASE_URL", "openai", default)
    return setup


GEMINI = Agent(
    "gemini", prepare_gemini, "npm install -g @google/gemini-cli", 0.45,
    "at half of the window", own_window=256_000,
)  # fmt: skip
QWEN = Agent(
    "qwen", prepare_qwen, "npm install -g @qwen-code/qwen-code", 0.65,
    "at 85 % of the window, or 33,000 tokens before its end (0.15.10: at 70 %)",
    own_window=131_072, of_window=True, min_window=100_000,
)  # fmt: skip
