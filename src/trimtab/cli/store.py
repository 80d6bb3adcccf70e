"""``trimtab doctor`` and ``trimtab purge``: maintain a store."""

from __future__ import annotations

import re
import time
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from functools import cache, partial

from trimtab.amounts import many
from trimtab.cli.exit_codes import DONE, MISSING, UNREADABLE, USAGE, VIOLATIONS, ExitWith
from trimtab.cli.options import amount
from trimtab.cli.originals import named_conversation
from trimtab.cli.store_options import (
    OWN_STORE,
    STORES,
    existing_store,
    own_store,
    store_of,
)
from trimtab.cli.terminal import Terminal, clean
from trimtab.retry.learned_limits import LearnedLimits, destination_in
from trimtab.session import Session, learned_limits
from trimtab.stores.base import Store
from trimtab.stores.tenant import OURS, TenantStore, stored_under

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}
_MAX_SHOWN = 50


def age(text: str) -> float:
    """``"30d"`` → 2_592_000.0 seconds; s, m, h, d, w."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhdw])", text.strip().lower())
    if match is None:
        raise ArgumentTypeError(f"{text!r} is no age; write 30d, 12h or 90m")
    return float(match[1]) * _SECONDS[match[2]]


def add_doctor(parser: ArgumentParser) -> None:
    """The options of ``trimtab doctor``."""
    parser.add_argument("--store", metavar="URL", help=f"read all of a store: {STORES}")
    parser.add_argument(
        "--forget", metavar="ENDPOINT",
        help="forget what refusals taught of this endpoint, as doctor --store lists it, or of all; "
        "without --store in the proxy's own store",
    )  # fmt: skip
    parser.set_defaults(run=run_doctor)


def run_doctor(args: Namespace) -> int:
    """Print what is wrong and how to repair it; return 1 if anything is wrong.

    With a store: open it and read everything in it.  Without: look at the agents of this machine.
    """
    if args.forget is not None:
        return _forget(args.store or own_store(), args.forget)
    if args.store is None:
        from trimtab.cli.proxy import look_at_agents

        return look_at_agents()
    from trimtab import stores

    store, tenant_store = _opened(args.store)
    conversations = [row for row in store.conversations() if not row.tenant.startswith(OURS)]
    faults = list(stores.faults(store, tenant_store))
    terminal = Terminal.of_stdout()
    for fault in faults[:_MAX_SHOWN]:
        print(clean(fault))
    if len(faults) > _MAX_SHOWN:
        print(f"and {len(faults) - _MAX_SHOWN:,} more")
    tenants = len({row.tenant for row in conversations})
    parts = [many(tenants, "tenant")] if tenants > 1 else []
    parts += [many(len(conversations), "conversation")]
    parts += [many(sum(row.originals for row in conversations), "original")]
    parts += [many(sum(row.stored_bytes for row in conversations), "byte")]
    verdict = many(len(faults), "fault") if faults else "all can be read"
    verdict = terminal.paint("over" if faults else "good", verdict)
    print(f"{clean(f'{store.url}: ' + ', '.join(parts))}: {verdict}")
    for tenant, key, _, text in _learned(store):
        print(clean(f"learned from refusals, tenant {tenant}: {destination_in(key)}: {text}"))
    return VIOLATIONS if faults else DONE


def _learned(store: Store) -> Iterator[tuple[str, str, LearnedLimits, str]]:
    """(tenant, key, where it can be forgotten, what and until when) of all that refusals taught."""
    tenants = {row.tenant for row in store.conversations() if not row.tenant.startswith(OURS)}
    for tenant in sorted(tenants):
        session = Session(store=store, tenant=tenant)
        learned = learned_limits(session)
        for key, known in learned.items():
            until = time.strftime("%Y-%m-%d %H:%M", time.gmtime(known.until))
            text = known.described or "counts to compare"
            yield tenant, key, learned, f"{text}, until {until} UTC"
        session.close()


def _forget(url: str, endpoint: str) -> int:
    """Forget what was learned of an endpoint, or of all.  Raises ExitWith if nothing was."""
    store, count = _opened(url)[0], 0
    for tenant, key, learned, text in _learned(store):
        if endpoint in ("all", key, destination_in(key)):
            learned.forget(key)
            count += 1
            print(clean(f"forgotten, tenant {tenant}: {destination_in(key)}: {text}"))
    if not count:
        raise ExitWith(
            MISSING,
            f"nothing was learned of {endpoint}: trimtab doctor --store {url} lists what was",
        )
    return DONE


def add_purge(parser: ArgumentParser) -> None:
    """The options of ``trimtab purge``."""
    parser.add_argument(
        "conversation", nargs="?", metavar="CONVERSATION",
        help="delete this one: its id, the one that the dashboard shows, or how it begins",
    )  # fmt: skip
    parser.add_argument("--store", metavar="URL", help=f"store to delete from {OWN_STORE}")
    parser.add_argument("--tenant", metavar="NAME", help="only of this tenant (default: of all)")
    parser.add_argument(
        "--older-than", type=age, metavar="AGE",
        help="delete conversations that nobody wrote to for so long: 30d, 12h, 90m",
    )  # fmt: skip
    parser.add_argument(
        "--keep-bytes", type=amount, metavar="N",
        help="delete the oldest, until the others take no more than N bytes: 500m",
    )  # fmt: skip
    parser.set_defaults(run=run_purge)


def run_purge(args: Namespace) -> int:
    """Delete conversations with their originals, and print how many."""
    from trimtab import stores

    if args.older_than is None and args.keep_bytes is None and not args.conversation:
        raise ExitWith(
            USAGE, "say what may go: --older-than 30d, --keep-bytes 500m, or a CONVERSATION"
        )
    store = store_of(args)
    named = set[tuple[str, str]]()
    if args.conversation:
        tenants = [args.tenant] if args.tenant else None
        found = named_conversation(store, tenants, args.conversation)
        named = stored_under(*found)
    purged = stores.purge(
        store, cache(partial(stores.open, store)), now=time.time(), older_than=args.older_than,
        keep_bytes=args.keep_bytes, tenant=args.tenant, conversations=named,
    )  # fmt: skip
    count = purged.conversations
    if args.conversation and args.older_than is None and args.keep_bytes is None:
        if any(row[:2] in named for row in store.conversations()):
            raise ExitWith(UNREADABLE, "it was written to at this moment and stays: run it again")
        count = 1
    what = f"{many(purged.originals, 'original')} and {many(purged.stored_bytes, 'byte')}"
    print(f"{many(count, 'conversation')} with {what} deleted")
    return DONE


def _opened(url: str) -> tuple[Store, Callable[[str], TenantStore]]:
    """(an existing store, a function from a tenant to its part of the store)."""
    from trimtab import stores

    store = existing_store(url)
    return store, cache(lambda tenant: stores.open(store, tenant))
