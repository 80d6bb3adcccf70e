"""Finds what would keep an agent from running behind the proxy, and the command that fixes it.

Nothing is changed or sent.
"""

from __future__ import annotations

import importlib.util
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass

from trimtab.proxy.agents import AGENTS, Agent, LaunchContext, credentials
from trimtab.proxy.config.settings import Address

_EXTRAS = (("aiohttp", "proxy"), ("uvicorn", "proxy"))
_OPTIONAL = (("botocore", "bedrock", "only Amazon Bedrock needs it"),)


@dataclass(frozen=True)
class SetupFinding:
    """``ok``: True for good, False for a fault, None for information.  ``fix``: what to do."""

    ok: bool | None
    about: str
    fix: str = ""

    def __str__(self) -> str:
        mark = {True: "ok", False: "no", None: "--"}[self.ok]
        return f"{mark}  {self.about}" + (f"\n      {self.fix}" if self.fix else "")


def findings(place: LaunchContext) -> Iterator[SetupFinding]:
    """All findings: extras, the port, each agent."""
    yield from _installed()
    yield _port()
    for agent in AGENTS.values():
        yield _agent(agent, place)


def _installed() -> Iterator[SetupFinding]:
    for module, extra in _EXTRAS:
        if importlib.util.find_spec(module) is None:
            yield SetupFinding(
                False, f"{module} is not installed", f"pip install 'trimtab[{extra}]'"
            )
    for module, extra, what in _OPTIONAL:
        if importlib.util.find_spec(module) is None:
            about = f"{module} is not installed: {what}"
            yield SetupFinding(None, about, f"pip install 'trimtab[{extra}]'")


def _port() -> SetupFinding:
    with socket.socket() as probe:
        probe.settimeout(1)
        if probe.connect_ex(("127.0.0.1", Address().port)):
            return SetupFinding(True, f"port {Address().port} is free for trimtab proxy")
    about = f"port {Address().port} is taken, by a proxy that runs already or by another program"
    return SetupFinding(None, about, f"trimtab proxy --listen {Address().port + 1}")


def _agent(agent: Agent, place: LaunchContext) -> SetupFinding:
    path = shutil.which(agent.program, path=place.env.get("PATH"))
    if path is None:
        return SetupFinding(None, f"{agent.name}: not installed", agent.install)
    setup = agent.prepare(place)
    if setup.problem:
        about, _, fix = setup.problem.partition(": ")
        return SetupFinding(False, about, fix)
    if fix := credentials.missing(agent.name, place):
        return SetupFinding(False, f"{agent.name}: no key and no login was found", fix)
    first = setup.upstreams[0]
    more = f" and {len(setup.upstreams) - 1} more" if len(setup.upstreams) > 1 else ""
    return SetupFinding(
        True, f"{agent.name}: trimtab run {agent.name} sends to {first.url}{more}; starts to cut "
        f"at {agent.trigger:.0%} of the window, before the agent compacts ({agent.compacts})",
    )  # fmt: skip
