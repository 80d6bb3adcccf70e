"""Everything that a store holds, as its server or file has it, with what is compressed unpacked.

Knows how each kind of store keeps its rows, and the frame of a value; not what they mean.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

FRAME = 17
"""Bytes before a compressed value: its kind, and a checksum."""


def everything(url: str) -> bytes:
    """All names and values; of a file also the file itself, freed pages and journal included."""
    parts = {
        "memory": _memory, "sqlite": _sqlite, "redis": _redis, "postgresql": _postgresql,
    }[urlsplit(url).scheme](url)  # fmt: skip
    return b"\n".join(_unpacked(part) for part in parts)


def _unpacked(value: Any) -> bytes:
    data = value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")
    if data[:1] != b"\x01":
        return data
    return zlib.decompress(data[FRAME:])


def _memory(url: str) -> Iterator[Any]:
    from trimtab import stores

    store: Any = stores.open_store(url)
    for key, conversation in store._conversations.items():
        yield from (*key, *conversation.entries, *conversation.entries.values())
    for rows in (store._originals, store._facts):
        for key, value in rows.items():
            yield from (*key, value)


def _sqlite(url: str) -> Iterator[Any]:
    path = Path(urlsplit(url).path)
    with closing(sqlite3.connect(path)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in db.execute(f"SELECT * FROM {name}"):
                yield from row
    for file in path.parent.glob(f"{path.name}*"):
        yield b"\x00" + file.read_bytes()


def _redis(url: str) -> Iterator[Any]:
    import redis

    parts = urlsplit(url)
    prefix = parse_qs(parts.query)["prefix"][0]
    client: Any = redis.Redis.from_url(url.partition("?")[0])
    reads = {
        b"string": lambda key: [client.get(key)],
        b"list": lambda key: client.lrange(key, 0, -1),
        b"hash": lambda key: [one for row in client.hgetall(key).items() for one in row],
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"stream": lambda key: [v for _, row in client.xrange(key) for v in row.values()],
    }
    for key in client.scan_iter(match="{" + prefix + "}:*", count=1_000):
        yield key
        yield from reads[client.type(key)](key)
    client.close()


def _postgresql(url: str) -> Iterator[Any]:
    import psycopg

    with psycopg.connect(url) as db:
        names = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        for (name,) in names.fetchall():
            for row in db.execute(f"SELECT * FROM {name}").fetchall():  # type: ignore[arg-type]
                yield from row
