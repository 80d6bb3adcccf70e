"""``trimtab dashboard``: the address of the dashboard of the proxy that was started last."""

from __future__ import annotations

import webbrowser
from argparse import ArgumentParser, Namespace
from urllib.parse import urlsplit, urlunsplit

from trimtab.cli import state_files
from trimtab.cli.exit_codes import DONE, MISSING, ExitWith


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab dashboard``."""
    parser.add_argument("--open", action="store_true", help="open it in your browser too")
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Print the address, with the token that the browser has to bring."""
    from trimtab.proxy.agents.launch import unreachable

    for address in state_files.dashboards():
        server = urlunsplit((*urlsplit(address)[:2], "", "", ""))
        if not unreachable(server):
            print(address)
            if args.open and not webbrowser.open(address):
                raise ExitWith(MISSING, "no browser could be started: open the address above")
            return DONE
    raise ExitWith(
        MISSING, "no proxy of yours is running: start one with trimtab run or trimtab proxy"
    )
