"""A store in one SQLite file that only its owner can read.

The file is in WAL mode, so that readers and one writer do not wait for each other.  A write is on
the disk when it returns.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from trimtab.errors import StoreError
from trimtab.forking import Lock
from trimtab.stores.base import ConversationInfo, WriteBatch, check_version, facts_of

MODES = os.name == "posix"
"""Whether a file's mode controls who may read it; on Windows the folder's access list does."""

VERSION = 1
BUSY_SECONDS = 2.0
"""Most seconds that a write waits for another process's."""

_TABLES = """
CREATE TABLE IF NOT EXISTS conversations (
    tenant TEXT, conversation TEXT, used_at REAL NOT NULL,
    PRIMARY KEY (tenant, conversation)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL, conversation TEXT NOT NULL, id TEXT NOT NULL, data BLOB NOT NULL,
    UNIQUE (tenant, conversation, id)
);
CREATE TABLE IF NOT EXISTS originals (
    tenant TEXT NOT NULL, handle TEXT NOT NULL, conversation TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (tenant, handle)
);
CREATE INDEX IF NOT EXISTS originals_of ON originals (tenant, conversation);
CREATE TABLE IF NOT EXISTS facts (
    tenant TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
"""


@dataclass(eq=False)
class _ThreadConnection:
    """One thread's connection; ``busy`` is held while it is used, because closing it then from
    another thread would crash the process."""

    db: sqlite3.Connection
    busy: Lock = field(default_factory=Lock)
    closed: bool = False

    def close(self, timeout: float = BUSY_SECONDS) -> None:
        """Close it, unless it stays busy for so many seconds (−1: wait as long as it takes): then
        its thread closes it."""
        if self.closed or not self.busy.acquire(timeout):
            return
        self.closed = True
        with suppress(sqlite3.Error):
            self.db.close()
        self.busy.release()


_opening = Lock()
"""Held while a connection is opened, and while the process forks."""
_ending = Lock()
"""Held while the connection of a thread that has ended is closed, and while the process forks."""


class SqliteStore:
    """One file; a connection for each thread of each process that uses it, closed with it."""

    is_local = True

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser().absolute()
        self.url = f"sqlite:///{self.path}"
        self._own = threading.local()
        self._all: weakref.WeakSet[_ThreadConnection] = weakref.WeakSet()
        _stores.add(self)

    def write(self, tenant: str, batch: WriteBatch) -> None:
        """See ``Store``."""
        with self._connected() as db:
            db.execute("BEGIN IMMEDIATE")
            if batch.conversation:
                _write(db, tenant, batch)
            rows = [(tenant, *fact) for fact in batch.facts]
            db.executemany("INSERT OR IGNORE INTO facts VALUES (?, ?, ?)", rows)
            rows = [(tenant, *fact) for fact in batch.updated_facts]
            db.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", rows)
            db.execute("COMMIT")

    def read(self, tenant: str, conversation: str, after: str = "") -> tuple[list[bytes], str]:
        """See ``Store``."""
        with self._connected() as db:
            rows = db.execute(
                "SELECT place, data FROM entries WHERE tenant = ? AND conversation = ? "
                "AND place > ? ORDER BY place",
                (tenant, conversation, int(after or 0)),
            ).fetchall()
        return [data for _, data in rows], str(rows[-1][0]) if rows else after

    def original(self, tenant: str, handle: str) -> bytes | None:
        """See ``Store``."""
        return self._value(
            "SELECT data FROM originals WHERE tenant = ? AND handle = ?", (tenant, handle)
        )

    def handles(self, tenant: str, conversation: str) -> list[str]:
        """See ``Store``."""
        with self._connected() as db:
            rows = db.execute(
                "SELECT handle FROM originals WHERE tenant = ? AND conversation = ? ORDER BY rowid",
                (tenant, conversation),
            )
            return [handle for (handle,) in rows]

    def fact(self, tenant: str, name: str) -> bytes | None:
        """See ``Store``."""
        return self._value("SELECT data FROM facts WHERE tenant = ? AND name = ?", (tenant, name))

    def facts(self, tenant: str, prefix: str) -> Mapping[str, bytes]:
        """See ``Store``."""
        with self._connected() as db:
            rows = db.execute(
                "SELECT name, data FROM facts WHERE tenant = ? AND substr(name, 1, ?) = ? "
                "ORDER BY name",
                (tenant, len(prefix), prefix),
            )
            return dict(rows.fetchall())

    def conversations(self) -> Sequence[ConversationInfo]:
        """See ``Store``."""
        with self._connected() as db:
            rows = db.execute(
                "SELECT c.tenant, c.conversation, c.used_at, e.n, o.n, e.size + o.size "
                "FROM conversations AS c, "
                f"{_sums('entries')} AS e, {_sums('originals')} AS o "
                "WHERE e.tenant = c.tenant AND e.conversation = c.conversation "
                "AND o.tenant = c.tenant AND o.conversation = c.conversation "
                "ORDER BY c.used_at, c.conversation"
            )
            return [ConversationInfo(*row) for row in rows]

    def delete(self, tenant: str, conversation: str, *, before: float) -> bool:
        """See ``Store``."""
        key = (tenant, conversation)
        with self._connected() as db:
            db.execute("BEGIN IMMEDIATE")
            row = db.execute(
                "SELECT used_at FROM conversations WHERE tenant = ? AND conversation = ?", key
            ).fetchone()
            deletable = row is None or row[0] < before
            for table in ("entries", "originals", "conversations") if deletable else ():
                db.execute(f"DELETE FROM {table} WHERE tenant = ? AND conversation = ?", key)
            for begin in facts_of(conversation) if deletable else ():
                db.execute(
                    "DELETE FROM facts WHERE tenant = ? AND substr(name, 1, ?) = ?",
                    (tenant, len(begin), begin),
                )
            db.execute("COMMIT")
        return deletable

    def faults(self) -> Sequence[str]:
        """See ``Store``: SQLite's own check of the file."""
        with self._connected() as db:
            rows = [str(row[0]) for row in db.execute("PRAGMA integrity_check")]
        mode = self.path.stat().st_mode & 0o077 if MODES else 0
        loose = [f"{self.path} can be read by others (chmod 600 {self.path})"] if mode else []
        return [row for row in rows if row != "ok"] + loose

    def close(self) -> None:
        """See ``Store``."""
        with _opening:
            known, self._own = list(self._all), threading.local()
        for connection in known:
            connection.close()

    def close_for_fork(self) -> None:
        """Close all connections once no thread uses them; each thread opens another."""
        for connection in list(self._all):
            connection.close(timeout=-1)

    # --- connections ---

    def _value(self, query: str, values: tuple[str, ...]) -> bytes | None:
        with self._connected() as db:
            row = db.execute(query, values).fetchone()
        return None if row is None else bytes(row[0])

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection; rolled back on an error."""
        try:
            connection = self._busy_connection()
        except (sqlite3.Error, OSError) as error:
            raise self._error(error) from error
        try:
            yield connection.db
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                if connection.db.in_transaction:
                    connection.db.execute("ROLLBACK")
            raise self._error(error) from error
        finally:
            connection.busy.release()

    def _error(self, error: Exception) -> StoreError:
        return StoreError(
            f"{self.url} does not answer ({error}): free the disk or the lock; "
            "trimtab doctor --store checks the file"
        )

    def _busy_connection(self) -> _ThreadConnection:
        """This thread's connection with ``busy`` held; a new one if it was closed meanwhile."""
        while True:
            connection = self._connection()
            connection.busy.acquire()
            if not connection.closed:
                return connection
            connection.busy.release()

    def _connection(self) -> _ThreadConnection:
        """This thread's connection: it must not be shared between threads."""
        old: _ThreadConnection | None = getattr(self._own, "db", None)
        if old is not None and not old.closed:
            return old
        with _opening:
            return self._opened()

    def _opened(self) -> _ThreadConnection:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):  # created here, as SQLite would let others read it
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        db = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _prepared(db)
        except BaseException:
            db.close()
            raise
        new = self._own.db = _ThreadConnection(db)
        self._all.add(new)
        weakref.finalize(new, _close, db).atexit = False
        return new


def _close(db: sqlite3.Connection) -> None:
    """Close the connection of a thread that has ended."""
    with _ending, suppress(sqlite3.Error):
        db.close()


# --- forks ---

_stores: weakref.WeakSet[SqliteStore] = weakref.WeakSet()


def _before_fork() -> None:
    """Close every connection, so that no child has one.

    SQLite keeps in memory which locks on a file its process holds.  A child that has inherited
    that takes its parent's locks for its own: it waits for ever for the lock of a thread that it
    does not have, or writes to a log that the parent, not seeing it, deletes
    (sqlite.org/howtocorrupt.html, "Carrying an open database connection across a fork()").
    """
    _opening.acquire()
    for store in list(_stores):
        store.close_for_fork()
    _ending.acquire()  # only now: a thread may wait for it in the middle of a query


def _after_fork() -> None:
    _ending.release()
    _opening.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


def _prepared(db: sqlite3.Connection) -> None:
    """``_prepare``, retried while another process does it: SQLite does not wait to set WAL."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return _prepare(db)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            with suppress(sqlite3.Error):
                if db.in_transaction:
                    db.execute("ROLLBACK")
            time.sleep(0.01)


def _prepare(db: sqlite3.Connection) -> None:
    """Configure a connection, and create the tables in a new file."""
    version = db.execute("PRAGMA user_version").fetchone()[0]
    check_version(version, VERSION)
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA secure_delete = ON")
    if version == VERSION:
        return
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")


def _write(db: sqlite3.Connection, tenant: str, batch: WriteBatch) -> None:
    key = (tenant, batch.conversation)
    db.execute("INSERT OR REPLACE INTO conversations VALUES (?, ?, ?)", (*key, time.time()))
    db.executemany(
        "INSERT OR IGNORE INTO entries (tenant, conversation, id, data) VALUES (?, ?, ?, ?)",
        [(*key, *entry) for entry in batch.entries],
    )
    db.executemany(
        "INSERT OR IGNORE INTO originals (tenant, conversation, handle, data) VALUES (?, ?, ?, ?)",
        [(*key, *original) for original in batch.originals],
    )


def _sums(table: str) -> str:
    return (
        "(SELECT c.tenant, c.conversation, COUNT(t.data) AS n, "
        "COALESCE(SUM(LENGTH(t.data)), 0) AS size FROM conversations AS c "
        f"LEFT JOIN {table} AS t ON t.tenant = c.tenant AND t.conversation = c.conversation "
        "GROUP BY c.tenant, c.conversation)"
    )
