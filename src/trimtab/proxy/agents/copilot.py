"""GitHub Copilot CLI with a provider of your own (``copilot help providers``)."""

from __future__ import annotations

from trimtab.proxy.agents.base import Agent, LaunchContext, Setup

_VARIABLE = "COPILOT_PROVIDER_BASE_URL"


def prepare(place: LaunchContext) -> Setup:
    """``COPILOT_PROVIDER_BASE_URL``; only where it is set."""
    setup = Setup()
    if not place.env.get(_VARIABLE):
        setup.problem = (
            f"copilot: its GitHub login cannot go through a proxy: set {_VARIABLE}, "
            "COPILOT_PROVIDER_API_KEY and COPILOT_MODEL (copilot help providers)"
        )
        return setup
    setup.variable(place, _VARIABLE, "copilot", "")
    if place.env.get("COPILOT_PROVIDER_TRANSPORT"):
        setup.env["COPILOT_PROVIDER_TRANSPORT"] = "http"  # the proxy has no WebSocket
    return setup


AGENT = Agent(
    "copilot", prepare, "npm install -g @github/copilot", 0.75, "at about 80 % of the window",
)  # fmt: skip
