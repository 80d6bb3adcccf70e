"""``trimtab proxy`` and ``trimtab run``: a permanent proxy, and one for a single agent.

What serves is loaded when one of them runs.
"""

from __future__ import annotations

import os
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from trimtab import config
from trimtab.cli import state_files
from trimtab.cli.exit_codes import DONE, VIOLATIONS
from trimtab.cli.options import add_settings, given_options, given_settings
from trimtab.cli.store_options import own_store
from trimtab.cli.terminal import Terminal, clean
from trimtab.errors import InvalidSetting
from trimtab.proxy.config.settings import (
    CLIENT_TOKEN_VARIABLE,
    OPTIONS,
    TOKEN_VARIABLE,
    ProxySettings,
    from_environment,
    load,
)
from trimtab.proxy.config.upstreams import Upstream
from trimtab.setting_kinds import Declared

FIT = {
    name: one
    for name, one in config.SETTINGS.items()
    if name not in ("format", "model", "open_tail", "recall", "calls_left", "idle_seconds")
}
"""The settings that don't depend on a request; the proxy sets ``recall`` itself if it offers the
tool."""

NO_CLIENT_TOKEN = (
    f"no token for clients is set, and {TOKEN_VARIABLE} opens the originals of every "
    f"tenant: set {CLIENT_TOKEN_VARIABLE}, and give clients that one"
)


def _shared(parser: ArgumentParser, options: Mapping[str, Declared]) -> None:
    parser.add_argument("--config", metavar="FILE", help="settings of the proxy (TOML)")
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="of the log; default: text"
    )
    add_settings(parser, options)
    add_settings(parser, FIT)


def add_proxy(parser: ArgumentParser) -> None:
    """The options of ``trimtab proxy``."""
    parser.add_argument("--upstream", metavar="URL", help="send everything there")
    _shared(parser, OPTIONS)
    parser.set_defaults(run=run_proxy)


def add_run(parser: ArgumentParser) -> None:
    """The options of ``trimtab run``, whose proxy listens where it likes."""
    _shared(parser, {name: one for name, one in OPTIONS.items() if name != "listen"})
    parser.add_argument("--log", metavar="FILE", help="one line for each request")
    parser.add_argument("--upstream", metavar="URL", help="send the agent's requests there")
    parser.add_argument(
        "--proxy", metavar="URL",
        help="use a proxy that runs already, with its settings: the address that trimtab proxy "
        "printed, /token/TOKEN behind it where it asks for one",
    )  # fmt: skip
    parser.add_argument(
        "--status", action="store_true",
        help="claude, opencode: show in the agent how full its window is and what was cut",
    )  # fmt: skip
    parser.add_argument(
        "command", nargs=REMAINDER, metavar="AGENT …",
        help="claude, codex, opencode, gemini, qwen, kilo, pi, cline, copilot, aider, mini or any "
        "other program, and its own arguments",
    )  # fmt: skip
    parser.set_defaults(run=run_agent)


def _settings(args: Namespace) -> ProxySettings:
    """Files first, then the environment, then options."""
    loaded = config.load(trusts_project=False)
    settings = ProxySettings(fit=loaded.settings(), warnings=tuple(loaded.problems))
    if args.config:
        settings = load(args.config, settings)
    settings = from_environment(os.environ, settings)
    if getattr(args, "upstream", None):
        settings = replace(settings, upstreams=(Upstream("upstream", args.upstream),))
    settings = settings.over({**given_settings(args, OPTIONS), "fit": given_settings(args, FIT)})
    if not settings.store:
        settings = replace(settings, store=own_store())
        if settings.store == "memory:":
            warning = (
                f"{state_files.folder()} cannot be written: what is cut is kept in memory alone"
            )
            settings = replace(settings, warnings=(*settings.warnings, warning))
    return settings.checked()


def run_proxy(args: Namespace) -> int:
    """Serve until stopped."""
    import logging

    from trimtab.proxy import Proxy, Server
    from trimtab.proxy.config import log_lines

    settings = _settings(args)
    log_lines.set_up(args.log_format)
    for warning in settings.warnings:
        log_lines.say(warning)
    if settings.clients_hold_its_token:
        log_lines.say(NO_CLIENT_TOKEN, level=logging.WARNING)
    if settings.workers > 1:
        return _run_workers(args, settings)
    server = Server(Proxy(settings), reread=lambda: _settings(args))
    print(f"trimtab: listening on {server.url}, dashboard {server.dashboard}", file=sys.stderr)
    state_files.keep_dashboard(server.dashboard)
    file = state_files.keep_token("proxy", server.proxy.access.token)
    if file and not settings.token:
        print(f"trimtab: its token is in {file}", file=sys.stderr)
    server.run()
    print(f"trimtab: {server.proxy.addons.records.activity.line()}", file=sys.stderr)
    return DONE


def _run_workers(args: Namespace, settings: ProxySettings) -> int:
    """Serve in several processes until stopped."""
    from trimtab.proxy import Proxy, Server, workers
    from trimtab.proxy.callers.access import Access
    from trimtab.proxy.server import address_of, dashboard_of, listening_socket

    workers.check(settings)
    listener, access = listening_socket(settings), Access(settings)
    url = address_of(settings, listener)
    page = dashboard_of(url, settings, access)
    print(f"trimtab: listening on {url}, {settings.workers} workers, dashboard {page}",
          file=sys.stderr)  # fmt: skip
    state_files.keep_dashboard(page)
    file = state_files.keep_token("proxy", access.token)
    if file and not settings.token:
        print(f"trimtab: its token is in {file}", file=sys.stderr)

    def work() -> None:
        proxy = Proxy(settings, access=access)
        Server(proxy, reread=lambda: _settings(args), listener=listener).run()
        print(f"trimtab: {proxy.addons.records.activity.line()}", file=sys.stderr)

    return workers.serve(work, settings.workers)


def look_at_agents() -> int:
    """Print what would keep an agent from running behind the proxy; return 1 if anything does."""
    from pathlib import Path

    from trimtab.proxy.agents import LaunchContext
    from trimtab.proxy.agents.doctor import findings

    setup_findings = list(findings(LaunchContext(os.environ, Path.home(), Path.cwd())))
    terminal = Terminal.of_stdout()
    for finding in setup_findings:
        verdict = {True: "good", False: "over", None: "dim"}[finding.ok]
        mark, *others = map(clean, str(finding).splitlines())
        print(terminal.paint(verdict, mark[:2]) + mark[2:], *others, sep="\n")
    return VIOLATIONS if any(finding.ok is False for finding in setup_findings) else DONE


def _ignored(args: Namespace) -> str:
    """What to say of options that a proxy which runs already does not take; "" without any."""
    given = [*given_options(args, OPTIONS), *given_options(args, FIT)]
    given += [f"--{name}" for name in ("config", "log") if getattr(args, name)]
    if not given:
        return ""
    *others, last = given
    names = f"{', '.join(others)} and {last} are" if others else f"{last} is"
    return f"{names} ignored: the settings of the proxy that runs hold"


def run_agent(args: Namespace) -> int:
    """Run one agent behind its own proxy."""
    from trimtab.proxy.agents import AGENTS, launch

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise InvalidSetting("which agent? trimtab run " + ", ".join(AGENTS))
    from trimtab.proxy.config import log_lines

    settings = _settings(args)
    for warning in (*settings.warnings, *([_ignored(args)] if args.proxy else [])):
        if warning:
            print(clean(f"trimtab: {warning}"), file=sys.stderr)
    start = partial(
        launch.run, command, settings, show_status=args.status, upstream=args.upstream or "",
        proxy=args.proxy or "", keep_dashboard=state_files.keep_dashboard,
    )  # fmt: skip
    if not args.log:
        return start()
    try:
        stream = open(args.log, "a", encoding="utf-8")  # noqa: SIM115 (closed below)
    except OSError as error:
        raise InvalidSetting(
            f"--log {args.log}: {error.strerror}: name a file in a folder that can be written"
        ) from None
    with stream:
        log_lines.set_up(args.log_format, stream)
        return start()
