"""Stores to test with: files in a folder, and the servers of this machine.

Knows where Redis and PostgreSQL are (TRIMTAB_TEST_REDIS, TRIMTAB_TEST_POSTGRESQL; else on their
usual ports) and keeps to a prefix and a schema of its own there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import world_needs

NEAR = ("memory", "sqlite")
FAR = ("redis", "postgresql")


@contextmanager
def store_url(kind: str, folder: Path) -> Iterator[str]:
    """The URL of an empty store; what was kept there is gone afterwards."""
    name = f"trimtab_test_{uuid4().hex[:12]}"
    match kind:
        case "memory":
            yield f"memory:{name}"
        case "sqlite":
            yield f"sqlite:///{folder / 'deep' / (name + '.db')}"
        case "redis":
            yield from _redis(name)
        case "postgresql":
            yield from _postgresql(name)


def _redis(name: str) -> Iterator[str]:
    world_needs.module("redis", "redis")
    import redis

    base = os.environ.get("TRIMTAB_TEST_REDIS", "redis://127.0.0.1:6379/0")
    client = redis.Redis.from_url(base, socket_connect_timeout=2)
    try:
        client.ping()
    except redis.RedisError as error:
        world_needs.absent(f"no Redis: start one, or name it in TRIMTAB_TEST_REDIS ({error})")
    yield f"{base}?prefix={name}"
    for key in client.scan_iter(match="{" + name + "}:*", count=1000):
        client.delete(key)


def _postgresql(name: str) -> Iterator[str]:
    world_needs.module("psycopg", "postgresql")
    import psycopg

    base = os.environ.get(
        "TRIMTAB_TEST_POSTGRESQL", "postgresql://postgres@127.0.0.1:5432/postgres"
    )
    try:
        db = psycopg.connect(base, autocommit=True, connect_timeout=2)
    except psycopg.Error as error:
        world_needs.absent(
            f"no PostgreSQL: start one, or name it in TRIMTAB_TEST_POSTGRESQL ({error})"
        )
    db.execute(f"CREATE SCHEMA {name}")
    try:
        yield f"{base}?options=-csearch_path%3D{name}"
    finally:
        db.execute(f"DROP SCHEMA {name} CASCADE")
        db.close()
