"""``trimtab run``: starts a proxy for one agent and stops it with the agent.

It writes none of the agent's files.  A file that an agent needs is made for this run alone.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from trimtab.amounts import many
from trimtab.proxy.agents import AGENTS, Agent, LaunchContext, Setup, agent_for
from trimtab.proxy.app import Proxy
from trimtab.proxy.config import log_lines
from trimtab.proxy.config.settings import Address, ProxySettings
from trimtab.proxy.server import Server
from trimtab.settings import Settings
from trimtab.suggestions import nearest

NOT_FOUND, CANNOT = 127, 2
ADDRESS = "TRIMTAB_PROXY"
"""The variable with the proxy's address and token, for hooks that call ``trimtab status``."""


def run(
    command: Sequence[str], settings: ProxySettings, *, show_status: bool = False,
    upstream: str = "", proxy: str = "", keep_dashboard: Callable[[str], object] = str,
) -> int:  # fmt: skip
    """Run an agent behind a proxy of its own; returns the agent's exit code.

    ``show_status``: make the agent show how full its window is.  ``upstream``: forward here instead
    of to its provider's address.  ``proxy``: the address of a proxy that is already running; its
    settings then apply.  ``keep_dashboard`` is called with the address of the dashboard.
    """
    agent = agent_for(command[0])
    program = shutil.which(command[0])
    if program is None:
        meant = "" if agent.install else nearest(command[0], AGENTS.keys())
        install = f": {agent.install or 'install it, or give the path of its program'}"
        return _complain(NOT_FOUND, f"{command[0]} is not installed{meant or install}")
    place = LaunchContext(os.environ, Path.home(), Path.cwd(), command[1:])
    setup = agent.prepare(place)
    if show_status:
        if agent.show_status is None:
            return _complain(CANNOT, f"--status: {agent.name} cannot be told from outside; leave "
                             "it out, or set up its hooks: docs/howto/hooks.md")  # fmt: skip
        agent.show_status(place, setup, [sys.executable, "-m", "trimtab", "status"])
    if setup.problem:
        return _complain(CANNOT, setup.problem)
    if upstream:
        setup.send_to(upstream)
    if proxy:
        if cause := unreachable(proxy):
            return _complain(CANNOT, f"cannot reach the proxy at {proxy} ({cause}): start it with "
                             "trimtab proxy, or leave --proxy out")  # fmt: skip
        address = proxy.rstrip("/")
        return _run_agent([program, *command[1:]], setup.attached(address), address)
    if too_small := agent.too_small(settings.fit.window):
        _tell(f"warning: {too_small}")
    own = _private(settings, agent, setup)
    return _behind_own_proxy([program, *command[1:]], own, setup, keep_dashboard)


def _behind_own_proxy(
    command: Sequence[str], settings: ProxySettings, setup: Setup,
    keep_dashboard: Callable[[str], object],
) -> int:  # fmt: skip
    """Run the agent behind a proxy that ends with it, and tell at the end what was saved."""
    if not _listens_to_logs():
        log_lines.silence()  # the terminal is the agent's
    with Server(Proxy(settings)) as server:
        _tell(f"dashboard {server.dashboard} (again: trimtab dashboard)")
        keep_dashboard(server.dashboard)
        code = _run_agent(command, setup.at(server.base), server.base)
        activity, problem = server.proxy.addons.records.activity, server.proxy.tenants.store_problem
    if problem:
        _tell(f"warning: the store kept nothing at the end: {problem}")
    for text, count in activity.warnings.items():
        _tell(f"warning: {text}. {many(count, 'request').capitalize()}.")
    _tell(activity.line())
    if activity.totals["edits"] and settings.store != "memory:":
        _tell("read a cut: trimtab recall; undo one: trimtab pin HANDLE")
    return code


def _run_agent(command: Sequence[str], setup: Setup, proxy: str) -> int:
    """Run the agent with the variables and arguments that send it to the proxy."""
    with tempfile.TemporaryDirectory(prefix="trimtab-") as folder:  # only its user can read it
        env = {**os.environ, **setup.env, ADDRESS: proxy}
        for variable, text in setup.files.items():
            file = Path(folder, variable.lower())
            file.write_text(text, encoding="utf-8")
            env[variable] = str(file)
        return _wait([command[0], *setup.arguments, *command[1:]], env)


def _private(settings: ProxySettings, agent: Agent, setup: Setup) -> ProxySettings:
    """The settings on a free port of loopback, with the agent's own upstreams, trigger and wait."""
    fit = settings.fit
    if fit.trigger is None and fit.window_trigger is None:
        begins = agent.begins(fit.window)
        fit |= Settings(window_trigger=begins) if agent.of_window else Settings(trigger=begins)
    waits = settings.reconnect_seconds
    return replace(
        settings, listen=Address(port=0), fit=fit, upstreams=tuple(setup.upstreams),
        drain_seconds=1.0, reconnect_seconds=agent.waits_seconds if waits is None else waits,
    )  # fmt: skip


def unreachable(proxy: str) -> str:
    """Why no trimtab proxy answers at this address; "" if one does."""
    parts = urlsplit(proxy)
    if parts.scheme != "http" or not parts.hostname:
        return "give its address, http://HOST:PORT"
    connection = http.client.HTTPConnection(parts.hostname, parts.port or 80, timeout=5)
    try:
        connection.request("GET", "/_trimtab/health")
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return getattr(error, "strerror", None) or str(error) or type(error).__name__
    finally:
        connection.close()
    return "" if status == 200 else f"it answers with {status}, as no proxy of trimtab does"


def _listens_to_logs() -> bool:
    import logging

    return bool(logging.getLogger("trimtab").handlers)


def _wait(command: Sequence[str], env: dict[str, str]) -> int:
    """Run the agent in this terminal; signals from the keyboard are left to it."""
    child = subprocess.Popen(command, env=env)
    with _signals_go_to(child):
        code = child.wait()
    return 128 - code if code < 0 else code


@contextlib.contextmanager
def _signals_go_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    def forward(number: int, frame: object) -> None:
        if child.poll() is None:
            child.send_signal(number)

    # Control-C reaches the agent directly: it is in the same foreground process group.
    kept = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        kept[number] = signal.signal(number, forward)
    try:
        yield
    finally:
        for number, before in kept.items():
            signal.signal(number, before)


def _complain(code: int, message: str) -> int:
    _tell(message)
    return code


def _tell(message: str) -> None:
    print(f"trimtab: {message}", file=sys.stderr)
