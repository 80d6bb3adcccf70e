"""``trimtab proxy`` and ``trimtab run``: a proxy for good, and one for a single agent.

Knows options and the lines that are printed.  Loads the proxy when run.
"""

from __future__ import annotations

import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

from trimtab import config
from trimtab.cli.amounts import amount
from trimtab.cli.exits import DONE, VIOLATIONS
from trimtab.cli.screen import clean
from trimtab.errors import InvalidSetting
from trimtab.model import Limits
from trimtab.presets import PRESETS


def _shared(parser: ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help="settings of the proxy (TOML)")
    parser.add_argument("--window", type=amount, metavar="TOKENS", help="default: the model's")
    parser.add_argument("--preset", choices=tuple(PRESETS), help="default: balanced")
    parser.add_argument(
        "--store", metavar="URL", help="default: a file of your own; memory: keeps nothing"
    )
    parser.add_argument(
        "--prices", metavar="TABLE", help="tell what is saved in money (trimtab replay --list)"
    )
    parser.add_argument("--recall", action="store_true", help="let the model get originals back")
    parser.add_argument("--prune", action="store_true", help="and take out what it needs no more")
    parser.add_argument("--log-format", choices=("text", "json"), default="text")


def add_proxy(parser: ArgumentParser) -> None:
    """The options of ``trimtab proxy``."""
    parser.add_argument("--listen", metavar="HOST:PORT", help="default 127.0.0.1:4141")
    parser.add_argument("--upstream", metavar="URL", help="send everything there")
    _shared(parser)
    parser.set_defaults(run=run_proxy)


def add_run(parser: ArgumentParser) -> None:
    """The options of ``trimtab run``."""
    _shared(parser)
    parser.add_argument("--log", metavar="FILE", help="one line for each request")
    parser.add_argument(
        "command", nargs=REMAINDER, metavar="AGENT …",
        help="claude, codex, opencode, gemini, qwen, aider, … and its own arguments",
    )  # fmt: skip
    parser.set_defaults(run=run_agent)


def _settings(args: Namespace) -> Any:
    """Files first, then options."""
    from trimtab.proxy import ProxySettings, Upstream, load
    from trimtab.proxy.settings import TOKEN_VARIABLE, listening

    loaded = config.load()
    found = ProxySettings(fit=loaded.keywords(), warnings=tuple(loaded.problems))
    if args.config:
        found = load(args.config, found)
    found = replace(found, token=_environment(TOKEN_VARIABLE) or found.token)
    if getattr(args, "listen", None):
        host, port = listening(args.listen)
        found = replace(found, host=host, port=port)
    if getattr(args, "upstream", None):
        found = replace(found, upstreams=(Upstream("upstream", args.upstream),))
    fit = dict(found.fit)
    if args.window is not None:
        fit["limits"] = replace(fit.get("limits") or Limits(), window=args.window)
    if args.preset:
        fit["preset"] = args.preset
    if args.prices:
        fit["prices"] = args.prices
    return replace(
        found, fit=fit, store=args.store or found.store or _own_store(),
        recall=args.recall or found.recall, prune=args.prune or found.prune,
    ).checked()  # fmt: skip


def _own_store() -> str:
    """A file of the user's own, so that what was cut stays cut, and recallable, after a restart."""
    import os
    from pathlib import Path
    from urllib.parse import quote

    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(home) / "trimtab"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return "memory:"
    return f"sqlite:///{quote(str(folder / 'proxy.db'))}"


def _environment(name: str) -> str:
    import os

    return os.environ.get(name, "")


def run_proxy(args: Namespace) -> int:
    """Serve until told to stop."""
    from trimtab.proxy import Proxy, Server, logs

    settings = _settings(args)
    logs.set_up(args.log_format)
    server = Server(Proxy(settings), reread=lambda: _settings(args))
    for warning in settings.warnings:
        logs.say(warning)
    print(f"trimtab: listening on {server.url}, dashboard {server.url}/_trimtab/", file=sys.stderr)
    server.run()
    print(f"trimtab: {server.proxy.books.ledger.line()}", file=sys.stderr)
    return DONE


def look_at_agents() -> int:
    """What would keep an agent from running behind the proxy; 1 where something does."""
    import os
    from pathlib import Path

    from trimtab.proxy.agents import Place
    from trimtab.proxy.doctor import findings

    found = list(findings(Place(os.environ, Path.home(), Path.cwd())))
    for finding in found:
        for line in str(finding).splitlines():
            print(clean(line))
    return VIOLATIONS if any(finding.ok is False for finding in found) else DONE


def run_agent(args: Namespace) -> int:
    """Run one agent behind a proxy of its own."""
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise InvalidSetting("which agent? trimtab run claude, codex, opencode, gemini, aider, …")
    from trimtab.proxy import launch, logs

    settings = _settings(args)
    for warning in settings.warnings:
        print(clean(f"trimtab: {warning}"), file=sys.stderr)
    if args.log:
        with open(args.log, "a", encoding="utf-8") as stream:
            logs.set_up(args.log_format, stream)
            return launch.run(command, settings)
    return launch.run(command, settings)
