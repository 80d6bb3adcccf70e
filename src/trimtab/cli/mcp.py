"""``trimtab mcp``: the originals of one tenant as tools of an MCP server.

Messages are printed to standard error, because standard output is used by the protocol.
"""

from __future__ import annotations

import secrets
import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import suppress

from trimtab.cli import state_files
from trimtab.cli.exit_codes import DONE
from trimtab.cli.store_options import STORES, newest_tenants, other_tenants
from trimtab.errors import StoreError
from trimtab.journal.originals_reader import OriginalsReader


def add(parser: ArgumentParser) -> None:
    """The options of ``trimtab mcp``."""
    parser.add_argument("--store", required=True, metavar="URL", help=STORES)
    parser.add_argument("--tenant", metavar="NAME", help="whose part of a store that has several")
    parser.add_argument(
        "--http", action="store_true", help="serve HTTP on 127.0.0.1 and not standard input"
    )
    parser.add_argument(
        "--port",
        type=int,
        default=8787,
        metavar="N",
        help="port of --http (default: 8787; 0: any free one)",
    )
    parser.set_defaults(run=run)


def run(args: Namespace) -> int:
    """Serve until the client disconnects, or until interrupted."""
    import trimtab
    from trimtab import mcp, stores

    store = stores.open_store(args.store)
    with suppress(StoreError):  # the store may recover; until then the tools report the error
        tenants = newest_tenants(store)
        args.tenant = args.tenant or (tenants[0] if len(tenants) == 1 else "default")
        if hint := other_tenants(args):
            print(f"trimtab: {hint}", file=sys.stderr, flush=True)
    reader = OriginalsReader(stores.open(store, args.tenant or "default"), time.time)
    server = mcp.server(reader, trimtab.__version__)
    if args.http:
        token = secrets.token_urlsafe(24)
        state_files.keep_token("mcp", token)
        mcp.run_http(server, args.port, token, lambda url: print(url, file=sys.stderr, flush=True))
    else:
        mcp.run_stdio(server)
    return DONE
