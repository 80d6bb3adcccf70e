"""Where journals and originals live, by URL: memory, SQLite, Redis, PostgreSQL.

Knows which URL is which store, and the name of the variable that holds the key of an encrypted
one.  A store of your own is any object with the methods of ``Store``.
"""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from trimtab.errors import InvalidSetting
from trimtab.stores.base import Batch, Kept, Store
from trimtab.stores.frames import Frames
from trimtab.stores.memory import MemoryStore
from trimtab.stores.tenant import TenantStore
from trimtab.stores.upkeep import Purged, faults, purge

KEY_VARIABLE = "TRIMTAB_STORE_KEY"
"""Environment: what is stored is encrypted with it."""

_named: dict[str, MemoryStore] = {}


def open(url: str | Store, tenant: str = "default", key: bytes | None = None) -> TenantStore:
    """One tenant's part of a store.  ``key``: instead of TRIMTAB_STORE_KEY.

    Nothing is read or written yet.  Raises InvalidSetting, MissingExtra.
    """
    if key is None and (value := os.environ.get(KEY_VARIABLE)):
        key = value.encode("utf-8", "surrogateescape")
    store = open_store(url) if isinstance(url, str) else url
    return TenantStore(store, tenant, Frames(key))


def open_store(url: str) -> Store:
    """The store behind a URL.  Raises InvalidSetting, MissingExtra."""
    scheme, _, rest = url.partition(":")
    match scheme:
        case "memory":
            return _named.setdefault(rest, MemoryStore(url)) if rest else MemoryStore()
        case "sqlite":
            from trimtab.stores.sqlite import SqliteStore

            path = unquote(urlsplit(url).path)
            if not path.strip("/") or urlsplit(url).netloc:
                raise InvalidSetting(f"store {url!r}: name a file, as in sqlite:///trimtab.db")
            # Three slashes and a path of this folder, four and one from the root; as elsewhere.
            return SqliteStore(path[1:])
        case "redis" | "rediss" | "unix":
            from trimtab.stores.redis_store import RedisStore

            return RedisStore(url)
        case "postgresql" | "postgres":
            from trimtab.stores.postgresql import PostgresqlStore

            return PostgresqlStore(url)
    raise InvalidSetting(
        f"store {url!r}: give memory:, sqlite:///file.db, redis://host or postgresql://host/name"
    )


__all__ = [
    "KEY_VARIABLE",
    "Batch",
    "Kept",
    "Purged",
    "Store",
    "TenantStore",
    "faults",
    "open",
    "open_store",
    "purge",
]
