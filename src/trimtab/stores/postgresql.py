"""A store in PostgreSQL, for several machines.

Writes to one conversation wait for each other, so that entries are numbered in the order in which
readers see them.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from trimtab.errors import MissingExtra, StoreError
from trimtab.forking import Lock
from trimtab.stores.base import (
    ConversationInfo,
    WriteBatch,
    check_version,
    facts_of,
    without_password,
)

VERSION = 1
SECONDS = 2
"""Most seconds to wait for a connection; a statement may take twice as long, and so may a silence
of the server."""

_TABLES = """
CREATE TABLE trimtab_conversations (
    tenant text, conversation text, used_at double precision NOT NULL,
    PRIMARY KEY (tenant, conversation)
);
CREATE TABLE trimtab_entries (
    place bigserial PRIMARY KEY,
    tenant text NOT NULL, conversation text NOT NULL, id text NOT NULL, data bytea NOT NULL,
    UNIQUE (tenant, conversation, id)
);
CREATE TABLE trimtab_originals (
    number bigserial, tenant text, handle text, conversation text NOT NULL, data bytea NOT NULL,
    PRIMARY KEY (tenant, handle)
);
CREATE INDEX trimtab_originals_of ON trimtab_originals (tenant, conversation);
CREATE TABLE trimtab_facts (tenant text, name text, data bytea NOT NULL,
    PRIMARY KEY (tenant, name)
);
CREATE TABLE trimtab_version (version integer NOT NULL);
"""
_LOCK = 7_268_951_000
"""Advisory lock held while the tables are created."""

T = TypeVar("T")


@dataclass(eq=False)
class _PostgresqlConnection:
    """One thread's connection, closed with it."""

    db: Any
    pid: int


class PostgresqlStore:
    """Tables ``trimtab_…`` in the schema that the connection finds first."""

    is_local = False

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra(
                "a store in PostgreSQL needs its client: pip install 'trimtab[postgresql]'"
            ) from None
        self.url = without_password(url)
        self._given = url
        self._psycopg, self._connections = psycopg, _bounded(psycopg.Connection)
        self._own = threading.local()
        self._all: weakref.WeakSet[_PostgresqlConnection] = weakref.WeakSet()
        self._inherited: list[_PostgresqlConnection] = []
        """Connections of the process that forked this one: never closed here."""
        self._lock = Lock()

    def write(self, tenant: str, batch: WriteBatch) -> None:
        """See ``Store``."""

        def act(db: Any) -> None:
            with self._pipeline(db), db.transaction(), db.cursor() as cursor:
                if batch.conversation:
                    _write(cursor, tenant, batch)
                for rows, then in (
                    (batch.facts, "NOTHING"),
                    (batch.updated_facts, "UPDATE SET data = EXCLUDED.data"),
                ):
                    if rows:
                        cursor.executemany(
                            "INSERT INTO trimtab_facts VALUES (%s, %s, %s) "
                            f"ON CONFLICT (tenant, name) DO {then}",
                            [(tenant, *row) for row in sorted(rows)],
                        )

        self._with(act)

    def read(self, tenant: str, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """See ``Store``."""
        rows = self._rows(
            "SELECT place, data FROM trimtab_entries WHERE tenant = %s AND conversation = %s "
            "AND place > %s ORDER BY place",
            (tenant, conversation, int(after or 0)),
        )
        return [bytes(data) for _, data in rows], str(rows[-1][0]) if rows else after

    def original(self, tenant: str, handle: str) -> bytes | None:
        """See ``Store``."""
        return self._value(
            "SELECT data FROM trimtab_originals WHERE tenant = %s AND handle = %s",
            (tenant, handle),
        )

    def handles(self, tenant: str, conversation: str) -> list[str]:
        """See ``Store``."""
        rows = self._rows(
            "SELECT handle FROM trimtab_originals WHERE tenant = %s AND conversation = %s "
            "ORDER BY number",
            (tenant, conversation),
        )
        return [handle for (handle,) in rows]

    def fact(self, tenant: str, name: str) -> bytes | None:
        """See ``Store``."""
        return self._value(
            "SELECT data FROM trimtab_facts WHERE tenant = %s AND name = %s", (tenant, name)
        )

    def facts(self, tenant: str, prefix: str) -> Mapping[str, bytes]:
        """See ``Store``."""
        rows = self._rows(
            "SELECT name, data FROM trimtab_facts WHERE tenant = %s AND starts_with(name, %s) "
            'ORDER BY name COLLATE "C"',
            (tenant, prefix),
        )
        return {name: bytes(data) for name, data in rows}

    def conversations(self) -> Sequence[ConversationInfo]:
        """See ``Store``."""
        rows = self._rows(
            f"SELECT tenant, conversation, used_at, {_of_conversation('COUNT(*)', 'entries')}, "
            f"{_of_conversation('COUNT(*)', 'originals')}, "
            f"{_of_conversation('COALESCE(SUM(LENGTH(data)), 0)', 'entries')} + "
            f"{_of_conversation('COALESCE(SUM(LENGTH(data)), 0)', 'originals')} "
            "FROM trimtab_conversations AS c ORDER BY used_at, conversation",
            (),
        )
        return [ConversationInfo(*row[:3], *map(int, row[3:])) for row in rows]

    def delete(self, tenant: str, conversation: str, *, before: float) -> bool:
        """See ``Store``."""
        key = (tenant, conversation)
        where = "WHERE tenant = %s AND conversation = %s"

        def act(db: Any) -> bool:
            with db.transaction(), db.cursor() as cursor:
                _wait(cursor, tenant, conversation)
                cursor.execute(f"SELECT used_at FROM trimtab_conversations {where}", key)
                row = cursor.fetchone()
                if row is not None and row[0] >= before:
                    return False
                for table in ("entries", "originals", "conversations"):
                    cursor.execute(f"DELETE FROM trimtab_{table} {where}", key)
                for begin in facts_of(conversation):
                    cursor.execute(
                        "DELETE FROM trimtab_facts WHERE tenant = %s AND starts_with(name, %s)",
                        (tenant, begin),
                    )
            return True

        return self._with(act)

    def faults(self) -> Sequence[str]:
        """See ``Store``: checks only that the server answers; it verifies its own pages."""
        self._rows("SELECT version FROM trimtab_version", ())
        return ()

    def close(self) -> None:
        """See ``Store``."""
        with self._lock:
            known, self._all = list(self._all), weakref.WeakSet()
        self._own = threading.local()
        for connection in known:
            _close(connection.db, connection.pid)

    # --- connections ---

    def _pipeline(self, db: Any) -> AbstractContextManager[Any]:
        """A pipeline that sends statements together, if the client supports it."""
        able = self._psycopg.Pipeline.is_supported()
        pipeline: AbstractContextManager[Any] = db.pipeline() if able else nullcontext()
        return pipeline

    def _rows(self, query: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        def act(db: Any) -> list[tuple[Any, ...]]:
            rows: list[tuple[Any, ...]] = db.execute(query, values).fetchall()
            return rows

        return self._with(act)

    def _value(self, query: str, values: tuple[str, ...]) -> bytes | None:
        rows = self._rows(query, values)
        return bytes(rows[0][0]) if rows else None

    def _with(self, act: Callable[[Any], T]) -> T:
        """Call ``act`` with this thread's connection, and again with a new one if it was cut."""
        try:
            old = getattr(self._own, "db", None)
            db = self._connection()
            try:
                return act(db)
            except (self._psycopg.OperationalError, self._psycopg.InterfaceError):
                if old is None or not db.closed:
                    raise
                return act(self._connection())
        except (self._psycopg.Error, OSError) as error:
            what, then = "does not answer", "start PostgreSQL, or name another store"
            if isinstance(error, self._psycopg.errors.DiskFull):
                what, then = "is full", "free its disk; after trimtab purge --store, VACUUM FULL"
            why = f"{type(error).__name__}: {' '.join(str(error).split())}"
            raise StoreError(f"{self.url} {what} ({why}): {then}") from error

    def _connection(self) -> Any:
        """This thread's connection: it must be shared neither between threads nor across forks."""
        old: _PostgresqlConnection | None = getattr(self._own, "db", None)
        if old is not None and old.pid == os.getpid() and not old.db.closed:
            return old.db
        db = self._connections.connect(
            self._given, autocommit=True, connect_timeout=SECONDS,
            tcp_user_timeout=1000 * SECONDS,
        )  # fmt: skip
        try:
            # Compiling a query of many partitions takes seconds, running it milliseconds.
            db.execute(f"SET statement_timeout = {2000 * SECONDS}; SET jit = off")
            _prepare(db)
        except BaseException:
            db.close()
            raise
        new = _PostgresqlConnection(db, os.getpid())
        with self._lock:
            if old is not None and old.pid != new.pid:
                self._inherited.append(old)
            self._own.db = new
            self._all.add(new)
        weakref.finalize(new, _close, db, new.pid).atexit = False
        return db


def _bounded(connections: type[Any]) -> type[Any]:
    """A class of connections that close and raise TimeoutError when the server hangs.

    The timeouts of server and network do not end that wait: a stopped process runs no timer, and
    its machine acknowledges what it is sent.
    """

    class Bounded(connections):  # type: ignore[misc]
        def wait(self, gen: Generator[Any, Any, T], *given: Any, **named: Any) -> T:
            try:
                done: T = super().wait(_ending(gen), *given, **named)
            except TimeoutError:
                self.close()
                raise
            return done

    return Bounded


def _ending(gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
    """A generator of psycopg, which is sent what the socket is ready for, several times a second;
    raises TimeoutError after too long a silence."""
    ready, until = None, time.monotonic() + 2 * SECONDS
    try:
        while True:
            ready = yield gen.send(ready)
            if ready:
                until = time.monotonic() + 2 * SECONDS
            elif time.monotonic() > until:
                raise TimeoutError(f"not a word for {2 * SECONDS} s")
    except StopIteration as done:
        result: T = done.value
        return result


def _close(db: Any, pid: int) -> None:
    """Close the connection of a thread that has ended."""
    if pid == os.getpid():
        with suppress(Exception):
            db.close()


def _prepare(db: Any) -> None:
    """Create the tables if there are none, and check their version."""
    if not _has_tables(db):
        db.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        if not _has_tables(db):  # not created meanwhile
            with db.transaction():
                db.execute(_TABLES)
                db.execute("INSERT INTO trimtab_version VALUES (%s)", (VERSION,))
        db.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
    version = db.execute("SELECT version FROM trimtab_version").fetchone()[0]
    check_version(version, VERSION)


def _has_tables(db: Any) -> bool:
    return db.execute("SELECT to_regclass('trimtab_version')").fetchone()[0] is not None


def _wait(cursor: Any, tenant: str, conversation: str) -> None:
    """Wait until no other transaction writes this conversation."""
    name = f"{tenant}\x1f{conversation}"
    cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (name,))


def _write(cursor: Any, tenant: str, batch: WriteBatch) -> None:
    key = (tenant, batch.conversation)
    _wait(cursor, *key)
    cursor.execute(
        "INSERT INTO trimtab_conversations VALUES (%s, %s, %s) "
        "ON CONFLICT (tenant, conversation) DO UPDATE SET used_at = EXCLUDED.used_at",
        (*key, time.time()),
    )
    for table, name, rows in (("entries", "id", batch.entries),
                              ("originals", "handle", batch.originals)):  # fmt: skip
        if rows:
            cursor.executemany(
                f"INSERT INTO trimtab_{table} (tenant, conversation, {name}, data) "
                "VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [(*key, *row) for row in rows],
            )


def _of_conversation(what: str, table: str) -> str:
    return (
        f"(SELECT {what} FROM trimtab_{table} AS t "
        "WHERE t.tenant = c.tenant AND t.conversation = c.conversation)"
    )
