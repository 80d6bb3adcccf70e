"""Stores for journals and originals, opened by URL: memory, SQLite, Redis, PostgreSQL.

Any object with the methods of ``Store`` can be used instead.
"""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from trimtab.errors import InvalidSetting, expect, expect_text
from trimtab.stores.base import ConversationInfo, Store, WriteBatch
from trimtab.stores.codec import StorageCodec
from trimtab.stores.deferred import DeferredStore
from trimtab.stores.maintenance import Purged, faults, purge
from trimtab.stores.memory import MemoryStore
from trimtab.stores.tenant import TenantStore

KEY_VARIABLE = "TRIMTAB_STORE_KEY"
"""Environment variable with the key that encrypts what is stored."""

_METHODS = ("write", "read", "original", "handles", "fact", "facts", "close")
"""Methods that a caller's own store must have at least."""
_named: dict[str, MemoryStore] = {}


def open(url: str | Store, tenant: str = "default", key: bytes | None = None) -> TenantStore:
    """Open one tenant's part of a store.  ``key`` overrides TRIMTAB_STORE_KEY.

    Nothing is read or written yet.  Raises InvalidSetting, MissingExtra.
    """
    if key is None and (value := os.environ.get(KEY_VARIABLE)):
        key = value.encode("utf-8", "surrogateescape")
    expect_text("tenant", tenant)
    expect(key is None or isinstance(key, bytes), "key", key, "bytes")
    if not isinstance(url, str):
        lacks = [name for name in _METHODS if not callable(getattr(url, name, None))]
        give = 'a URL, as "sqlite:///agent.db", or an object with the methods '
        expect(not lacks, "store", url, f"{give}{', '.join(_METHODS)}")
    store = open_store(url) if isinstance(url, str) else url
    former = store.former if isinstance(store, DeferredStore) else ()
    return TenantStore(store, tenant, StorageCodec(key), former)


def open_store(url: str) -> Store:
    """The store behind a URL.  Raises InvalidSetting, MissingExtra."""
    scheme, _, rest = url.partition(":")
    match scheme:
        case "memory":
            return _named.setdefault(rest, MemoryStore(url)) if rest else MemoryStore()
        case "sqlite":
            from trimtab.stores.sqlite import SqliteStore

            path = unquote(urlsplit(url).path)
            if not rest.startswith("///") or not path.strip("/"):
                raise InvalidSetting(f"store {url!r}: name a file, as in sqlite:///trimtab.db")
            if os.path.isdir(path[1:]):
                raise InvalidSetting(f"store {url!r} is a folder: name a file in it, {url}/a.db")
            # Three slashes: a path relative to this folder; four: an absolute one; as is usual.
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
    "ConversationInfo",
    "Purged",
    "Store",
    "TenantStore",
    "WriteBatch",
    "faults",
    "open",
    "open_store",
    "purge",
]
