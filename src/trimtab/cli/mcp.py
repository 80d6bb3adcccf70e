"""``trimtab mcp``: the originals of one tenant as tools of an MCP server.

Knows options and what is said on standard error: standard output belongs to the protocol.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress

from trimtab.cli import recall
from trimtab.cli.exits import DONE
from trimtab.errors import StoreError


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab mcp``."""
    parser.add_argument("--store", required=True, metavar="URL", help=recall.STORES)
    recall.add_tenant(parser)
    parser.add_argument(
        "--http", action="store_true", help="streamable HTTP on 127.0.0.1 instead of standard input"
    )
    parser.add_argument(
        "--port", type=int, default=8787, metavar="N", help="of --http (8787; 0: any free one)"
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Serve until the client goes, or until interrupted."""
    import trimtab
    from trimtab import mcp

    server = mcp.server(recall.stored(args), trimtab.__version__)
    with suppress(StoreError):  # may come back: then its tools say so
        if hint := recall.others(args):
            print(f"trimtab: {hint}", file=sys.stderr, flush=True)
    if args.http:
        mcp.run_http(server, args.port, lambda url: print(url, file=sys.stderr, flush=True))
    else:
        mcp.run_stdio(server)
    return DONE
