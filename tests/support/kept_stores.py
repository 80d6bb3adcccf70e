"""Makes a store as a release keeps it, for tests of later releases.

    PYTHONPATH=OLD/src:tests/support python tests/support/kept_stores.py URL RELEASE

Of Redis and PostgreSQL the raw content is written beside it, as RELEASE.redis.json.gz and
RELEASE.postgresql.json.gz; a SQLite file is one by itself.  What is kept: two conversations of
``long_sessions`` in two tenants, fitted and billed, one edit of the second undone.  Knows the
keywords of every release so far.
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from long_sessions import request

import trimtab

TURNS = (6, 9)
WORDS = {"window": 3_000, "recall": True}
TENANTS = {"default": 0, "other": 1}
"""Tenant → which conversation of ``long_sessions``."""
ROOM = 20_000
"""Window of the request after the undo: all of it stands there again."""


def opened(store: str, tenant: str) -> Any:
    """A session on the store, with this release's keywords."""
    try:
        counter = {"settings": trimtab.Settings(counter="o200k")}
        return trimtab.Session(store=store, tenant=tenant, **WORDS, **counter)
    except (AttributeError, TypeError, trimtab.TrimtabError):
        return trimtab.Session(store=store, tenant=tenant, counter="o200k", **WORDS)


def keep(store: str) -> dict[str, Any]:
    """Play both conversations; what was sent last, and every original by its handle."""
    found = {}
    for tenant, seed in TENANTS.items():
        session = opened(store, tenant)
        for turns in TURNS:
            done = session.fit(request(turns, seed))
            usage = {"input_tokens": len(json.dumps(done.request)) // 3, "output_tokens": 20}
            session.observe({"model": "claude-sonnet-4-5", "usage": usage}, done)
        handles = [edit.handle for edit in done.report.edits if edit.handle]
        originals = {handle: session.recall(handle) for handle in handles}
        sent = session.fit(request(TURNS[-1], seed)).request
        if tenant != "default":
            session.undo(handles[-1])
            sent = session.fit(request(TURNS[-1], seed), window=ROOM).request
        found[tenant] = {"sent": sent, "originals": originals}
        session.close()
    return found


def redis_rows(url: str) -> list[list[str]]:
    """Every key below the prefix with the server's own form of its value."""
    client, prefix = _redis(url)
    keys = sorted(client.scan_iter(match="{" + prefix + "}:*", count=1_000))
    rest = len("{" + prefix + "}")
    return [[key.decode()[rest:], _text(client.dump(key))] for key in keys]


def restore_redis(url: str, rows: list[list[str]]) -> None:
    """The same keys below another prefix.  Keys of originals stand in lists too."""
    client, prefix = _redis(url)
    for name, value in rows:
        key = "{" + prefix + "}" + name
        client.restore(key, 0, base64.b64decode(value))
        if ":h:" in name:
            kept = [one.decode().rpartition("}")[2] for one in client.lrange(key, 0, -1)]
            client.delete(key)
            client.rpush(key, *("{" + prefix + "}" + one for one in kept))


def postgresql_rows(url: str) -> dict[str, Any]:
    """How the tables were made, and what they hold."""
    import psycopg

    from trimtab.stores import postgresql

    with psycopg.connect(url) as db:
        tables = [name for (name,) in db.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1"
        )]  # fmt: skip
        rows = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    packed = {
        name: [[_text(v) if isinstance(v, bytes) else v for v in row] for row in found]
        for name, found in rows.items()
    }
    return {"tables": postgresql._TABLES, "rows": packed}


def restore_postgresql(url: str, kept: dict[str, Any]) -> None:
    """The same tables in another schema."""
    import psycopg

    with psycopg.connect(url) as db:
        db.execute(kept["tables"])
        for name, rows in kept["rows"].items():
            columns = db.execute(f"SELECT * FROM {name} LIMIT 0").description or ()
            bytea = [column.type_code == 17 for column in columns]
            for row in rows:
                values = [base64.b64decode(v) if b else v for v, b in zip(row, bytea, strict=True)]
                db.execute(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})", values)
            if bytea and columns[0].name in ("place", "number"):
                number = f"pg_get_serial_sequence('{name}', '{columns[0].name}')"
                db.execute(f"SELECT setval({number}, {max([row[0] for row in rows] or [1])})")


def _redis(url: str) -> tuple[Any, str]:
    import redis

    parts = urlsplit(url)
    prefix = parse_qs(parts.query).get("prefix", ["trimtab"])[0]
    return redis.Redis.from_url(url.partition("?")[0]), prefix


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


if __name__ == "__main__":
    url, release = sys.argv[1:]
    raw = {"redis": redis_rows, "postgresql": postgresql_rows}
    for suffix, make in (("expected", keep), (url.partition(":")[0], raw.get(url.split(":")[0]))):
        if make is not None:
            data = json.dumps(make(url)).encode()
            Path(f"{release}.{suffix}.json.gz").write_bytes(gzip.compress(data, 9, mtime=0))
