"""The options --store and --tenant, and the store and originals that they name."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from trimtab.cli import state_files
from trimtab.cli.exit_codes import MISSING, USAGE, ExitWith
from trimtab.cli.terminal import clean
from trimtab.stores.base import Store
from trimtab.stores.tenant import OURS

MAX_NAMED = 50
STORES = "sqlite:///file.db, redis://…, postgresql://…"
OWN_STORE = f"(default: that of your proxy); {STORES}"


def add_tenant(parser: ArgumentParser) -> None:
    """--tenant NAME."""
    parser.add_argument("--tenant", default="default", metavar="NAME", help="whose part of a store")


def existing_store(url: str) -> Store:
    """The store at ``url``, for commands that only read: no new file is created."""
    from trimtab import stores

    store = stores.open_store(url)
    path = getattr(store, "path", None)
    if path is not None and not path.is_file():
        raise ExitWith(MISSING, f"{path}: no such file; check --store")
    return store


def store_of(args: Namespace) -> Store:
    """The store that is named, else the user's own proxy store, which ``args.store`` then names;
    for commands that only read."""
    if args.store is not None:
        return existing_store(args.store)
    args.store = own_store()
    try:
        return existing_store(args.store)
    except ExitWith:
        named = "--journal FILE or --store URL" if hasattr(args, "journal") else "--store URL"
        raise ExitWith(
            USAGE, f"no proxy of yours has kept anything: name {named}, or start a proxy with "
            "trimtab run or trimtab proxy"
        ) from None  # fmt: skip


def newest_tenants(store: Store) -> list[str]:
    """Those whose conversations are in a store, the one written last first; none of our own."""
    rows = sorted(store.conversations(), key=lambda row: -row.used_at)
    return list(dict.fromkeys(row.tenant for row in rows if not row.tenant.startswith(OURS)))


def own_store() -> str:
    """The URL of the user's own store file, so that edits and originals survive a restart;
    ``memory:`` if the file can't be written."""
    import os
    from urllib.parse import quote

    folder = state_files.folder()
    file = folder / "proxy.db"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return "memory:"
    if not os.access(file if file.exists() else folder, os.W_OK) or file.is_dir():
        return "memory:"
    return f"sqlite:///{quote(str(file))}"


def other_tenants(args: Namespace) -> str:
    """A hint with the store's tenants if it has nothing of ``--tenant``; else ""."""
    from trimtab import stores

    rows = stores.open_store(args.store).conversations()
    tenants = {row.tenant for row in rows if not row.tenant.startswith(OURS)}
    if args.tenant in tenants:
        return ""
    names = ", ".join(f"--tenant {name}" for name in sorted(tenants)[:MAX_NAMED])
    here = f"here are: {names}" if names else "a proxy's are called like --tenant anthropic/local"
    return clean(f"nothing of tenant {args.tenant}; {here}")
