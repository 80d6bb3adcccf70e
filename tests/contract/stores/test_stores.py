"""The laws of a store, kept by all four; what each does besides; what one tenant sees of it.

Redis and PostgreSQL are real servers: these belong to the world tier.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import own_servers
import pytest
import store_urls

from trimtab import stores
from trimtab.errors import InvalidSetting, StoreError
from trimtab.stores import maintenance, postgresql, redis_store
from trimtab.stores.base import Store, WriteBatch
from trimtab.stores.codec import StorageCodec
from trimtab.stores.sqlite import SqliteStore
from trimtab.stores.tenant import TenantStore
from trimtab_lab.testing import StoreLaws

ROOT = Path(__file__).resolve().parents[3]
PARTITIONED = ROOT / "examples" / "postgresql" / "partitioned.sql"


class _Laws(StoreLaws):
    kind = ""

    @pytest.fixture(autouse=True)
    def _url(self, tmp_path: Path) -> Iterator[None]:
        with store_urls.store_url(self.kind, tmp_path) as self.url:
            self.opened: list[Store] = []
            yield
            for store in self.opened:
                store.close()

    def open(self) -> Store:
        self.opened.append(stores.open_store(self.url))
        return self.opened[-1]


class TestMemory(_Laws):
    kind = "memory"


class TestSqlite(_Laws):
    kind = "sqlite"


@pytest.mark.world
class TestRedis(_Laws):
    kind = "redis"


@pytest.mark.world
class TestPostgresql(_Laws):
    kind = "postgresql"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with own_servers.own_cluster(tmp_path_factory.mktemp("cluster")) as node:
        yield node.url


@pytest.mark.world
class TestRedisCluster(_Laws):
    """Three nodes: the keys of each tenant are in a slot of its own."""

    @pytest.fixture(autouse=True)
    def _url(self, cluster: str) -> Iterator[None]:
        self.url, self.opened = f"{cluster}?prefix=p{uuid4().hex}&cluster=yes", []
        yield
        for store in self.opened:
            store.close()

    def test_tenants_are_spread_over_the_nodes_and_read_together(self) -> None:
        store: Any = self.open()
        tenants = [f"team-{number}" for number in range(12)]
        for tenant in tenants:
            store.write(tenant, WriteBatch("c", (("e", b"1"),), (("h", b"original"),)))
        assert sorted(row.tenant for row in self.open().conversations()) == sorted(tenants)
        nodes = {store._redis.get_node_from_key(store._base(tenant)).port for tenant in tenants}
        assert len(nodes) == 3


@pytest.mark.world
class TestPartitionedPostgresql(_Laws):
    """Tables that ``examples/postgresql/partitioned.sql`` has made."""

    kind = "postgresql"

    @pytest.fixture(autouse=True)
    def _partitioned(self, _url: None) -> None:
        import psycopg

        with psycopg.connect(self.url) as db:
            db.execute(PARTITIONED.read_bytes().replace(b"BEGIN;\n", b"").replace(b"COMMIT;", b""))
            db.execute("SELECT 1")

    def test_a_month_that_is_dropped_is_gone_and_the_rest_stays(self) -> None:
        import psycopg

        store = self.open()
        store.write("t", WriteBatch("c", (("old", b"1"),), (("h-old", b"1"),)))
        with psycopg.connect(self.url) as db:
            month = db.execute("SELECT to_char(now(), 'YYYY_MM')").fetchone()
            assert month is not None
            for base in ("entries", "originals"):
                name = f"trimtab_{base}_{month[0]}"
                assert db.execute(f"SELECT COUNT(*) FROM {name}").fetchone() == (1,)
                db.execute(f"DELETE FROM {name} WHERE FALSE")
                db.execute(f"DROP TABLE {name}")
            db.execute(PARTITIONED.read_bytes().rpartition(b"-- The partitions")[2]
                       .partition(b"\n")[2].replace(b"COMMIT;", b""))  # fmt: skip
        store.write("t", WriteBatch("c", (("new", b"2"),), (("h-new", b"2"),)))
        assert store.read("t", "c")[0] == [b"2"]
        assert (store.original("t", "h-old"), store.original("t", "h-new")) == (None, b"2")


@pytest.mark.world
@pytest.mark.parametrize("kind", ["redis", "postgresql"])
def test_a_server_that_hangs_costs_a_call_a_few_seconds(kind: str) -> None:
    """Its machine still takes what is sent, so that no timeout of the network ends the call."""
    open_server = {"redis": own_servers.own_redis, "postgresql": own_servers.own_postgresql}[kind]
    most = 2 * redis_store.SECONDS if kind == "redis" else 3 * postgresql.SECONDS
    with open_server() as server:
        store, other = stores.open_store(server.url), stores.open_store(server.url)
        batch = WriteBatch("c", (("a", b"1"),))
        store.write("t", batch)
        server.send(signal.SIGSTOP)
        again = threading.Timer(5 * most, server.send, (signal.SIGCONT,))
        again.start()
        for call in (
            lambda: store.read("t", "c"), lambda: other.read("t", "c"),
            lambda: store.write("t", batch),
        ):  # fmt: skip
            began = time.monotonic()
            with pytest.raises(StoreError, match="does not answer"):
                call()
            assert time.monotonic() - began < most
        again.cancel()
        server.send(signal.SIGCONT)
        assert store.read("t", "c")[0] == other.read("t", "c")[0] == [b"1"]
        store.write("t", batch)


@pytest.mark.world
@pytest.mark.parametrize("kind", ["redis", "postgresql"])
def test_a_full_server_says_so_and_is_emptied_by_a_purge(kind: str) -> None:
    open_server = {"redis": own_servers.own_redis, "postgresql": own_servers.own_postgresql}[kind]
    with open_server() as server:
        store = stores.open_store(server.url)
        for name in ("one", "two"):
            store.write("t", WriteBatch(name, (("a", b"1"),), ((f"h-{name}", b"original"),)))
        with server.full():
            with pytest.raises(StoreError, match="is full"):
                store.write("t", WriteBatch("three", (("a", b"1"),)))
            assert store.original("t", "h-one") == b"original"
            done = maintenance.purge(
                store, lambda tenant: stores.open(store, tenant), now=time.time(), keep_bytes=0
            )
        assert done.conversations == 2
        assert not store.conversations()


# --- URLs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("url", ["", "mysql://x", "file.db", "sqlite://", "sqlite://file.db"])
def test_a_url_of_no_store_is_refused_with_what_to_give(url: str) -> None:
    with pytest.raises(InvalidSetting, match=r"sqlite:///"):
        stores.open_store(url)


def test_a_password_is_never_shown() -> None:
    store = stores.open_store("redis://me:secret@127.0.0.1:1/0?prefix=x")
    with pytest.raises(StoreError) as told:
        store.fact("t", "f")
    assert "secret" not in f"{store.url} {told.value}"
    assert "start Redis" in str(told.value)


def test_memory_with_a_name_is_shared_and_without_is_not() -> None:
    assert stores.open_store("memory:one") is stores.open_store("memory:one")
    assert stores.open_store("memory:") is not stores.open_store("memory:")


# --- SQLite ---------------------------------------------------------------------------------------


def test_the_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        store = SqliteStore(tmp_path / "new" / "store.db")
        store.write("t", WriteBatch("c", (("e", b"1"),)))
        files = sorted((tmp_path / "new").iterdir())
        assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * len(files)
        assert len(files) == 3, "the file, its log and its index"
        os.chmod(store.path, 0o644)
        assert any("chmod 600" in fault for fault in store.faults())
    finally:
        os.umask(old)


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, " * 100)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        SqliteStore(file).write("t", WriteBatch("c", (("e", b"1"),)))
    assert file.read_text() == "not a database, " * 100


def test_a_file_of_a_newer_release_is_not_touched(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "store.db")
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="update trimtab"):
        SqliteStore(tmp_path / "store.db").fact("t", "f")


def test_a_locked_file_is_a_store_error_and_works_again_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trimtab.stores.sqlite.BUSY_SECONDS", 0.05)
    store = SqliteStore(tmp_path / "store.db")
    store.write("t", WriteBatch("c", (("a", b"1"),)))
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        store.write("t", WriteBatch("c", (("b", b"2"),)))
    assert store.read("t", "c")[0] == [b"1"], "readers do not wait"
    other.execute("ROLLBACK")
    store.write("t", WriteBatch("c", (("b", b"2"),)))
    assert store.read("t", "c")[0] == [b"1", b"2"]


# --- frames ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, b"key"])
@pytest.mark.parametrize(
    "data", [b"", b"short", b"zeros and ones " * 5_000, random.Random(1).randbytes(5_000)]
)
def test_a_frame_gives_back_what_was_packed_and_notices_any_change(
    key: bytes | None, data: bytes
) -> None:
    frames = StorageCodec(key)
    packed = frames.pack(data, "t/originals/h")
    assert frames.unpack(packed, "t/originals/h") == data
    assert len(packed) < 600 or len(data) == 5_000, "repeats are packed"
    with pytest.raises(StoreError):
        frames.unpack(packed, "t/originals/other")
    for at in (0, 1, len(packed) // 2, len(packed) - 1):
        changed = bytearray(packed)
        changed[at] ^= 0x5A
        with pytest.raises(StoreError):
            frames.unpack(bytes(changed), "t/originals/h")
    with pytest.raises(StoreError):
        frames.unpack(b"", "t/originals/h")


def test_what_is_encrypted_is_read_with_its_key_alone(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    mine = stores.open(url, "t", key=b"correct")
    secret = "password: hunter2 " * 50
    mine.write(mine.batch("c", originals={"r1": secret}))
    raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"hunter2" not in raw
    assert stores.open(url, "t", key=b"correct").original("r1") == ("c", secret)
    with pytest.raises(StoreError, match="cannot be read with this TRIMTAB_STORE_KEY"):
        stores.open(url, "t", key=b"wrong").original("r1")
    with pytest.raises(StoreError, match="set TRIMTAB_STORE_KEY"):
        stores.open(url, "t").original("r1")


def test_the_key_is_read_from_the_environment_when_a_store_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    monkeypatch.setenv(stores.KEY_VARIABLE, "from the environment")
    mine = stores.open(url)
    mine.write(mine.batch("c", originals={"r1": "text"}))
    monkeypatch.delenv(stores.KEY_VARIABLE)
    assert stores.open(url, key=b"from the environment").original("r1") == ("c", "text")
    with pytest.raises(StoreError):
        stores.open(url).original("r1")


# --- tenants --------------------------------------------------------------------------------------


def test_all_processes_of_a_tenant_have_one_key_and_tenants_have_different_ones(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    one, same, other = stores.open(url, "a"), stores.open(url, "a"), stores.open(url, "b")
    assert one.handle_key("c") == same.handle_key("c")
    assert len({one.handle_key("c"), one.handle_key("d"), other.handle_key("c")}) == 3


@pytest.mark.parametrize("tenant", ["", "a\0b", "x" * 201, None])
def test_a_tenant_has_a_name(tenant: object) -> None:
    with pytest.raises(InvalidSetting, match="tenant="):
        TenantStore(stores.open_store("memory:"), tenant)  # type: ignore[arg-type]


# --- upkeep ---------------------------------------------------------------------------------------


def _filled(url: str) -> stores.TenantStore:
    mine = stores.open(url, "t")
    for name in ("old", "new"):
        mine.write(mine.batch(name, originals={f"r{name}": f"{name} " * 1000}))
    return mine


def test_nothing_is_purged_unless_an_age_or_a_size_says_so(tmp_path: Path) -> None:
    mine = _filled(f"sqlite:///{tmp_path / 'store.db'}")
    rows = mine.store.conversations()

    def of(tenant: str) -> TenantStore:
        return mine

    assert stores.purge(mine.store, of, now=rows[-1].used_at + 9e9) == (0, 0, 0)
    gap = (rows[0].used_at + rows[1].used_at) / 2
    assert stores.purge(mine.store, of, now=gap, older_than=0, tenant="other") == (0, 0, 0)
    done = stores.purge(mine.store, of, now=gap, older_than=0)
    assert done == (1, 1, rows[0].stored_bytes)
    assert mine.original("rold") is None
    assert set(mine.purged("rold")) == {"purged"}
    assert mine.original("rnew") == ("new", "new " * 1000)
    assert stores.purge(mine.store, of, now=gap, keep_bytes=rows[1].stored_bytes) == (0, 0, 0)
    assert stores.purge(mine.store, of, now=gap, keep_bytes=10).conversations == 1
    assert mine.store.conversations() == []


def test_a_damaged_original_is_found_and_named(tmp_path: Path) -> None:
    mine = _filled(f"sqlite:///{tmp_path / 'store.db'}")
    assert list(stores.faults(mine.store, lambda tenant: mine)) == []
    db = sqlite3.connect(tmp_path / "store.db")
    db.execute("UPDATE originals SET data = zeroblob(40) WHERE handle = 'rnew'")
    db.commit()
    db.close()
    (fault,) = stores.faults(mine.store, lambda tenant: mine)
    assert "rnew" in fault
    assert "damaged" in fault


@pytest.mark.world
def test_facts_that_an_earlier_release_kept_in_redis_are_found_before_and_after_a_write(
    tmp_path: Path,
) -> None:
    from trimtab.stores.redis_store import RedisStore

    with store_urls.store_url("redis", tmp_path) as url:
        store = RedisStore(url)
        store._redis.hset(store._key("t", "f"), mapping={"a/1": b"1", "a/2": b"2", "b/1": b"3"})
        assert store.facts("t", "a/") == {"a/1": b"1", "a/2": b"2"}
        store.write("t", WriteBatch(facts=(("a/3", b"4"), ("c", b"5"))))
        assert store.facts("t", "a/") == {"a/1": b"1", "a/2": b"2", "a/3": b"4"}
        assert store.facts("t", "b/") == {"b/1": b"3"}
        assert set(store.facts("t", "")) == {"a/1", "a/2", "a/3", "b/1", "c"}


CLOSED_WHILE_WRITTEN = """
import sys, threading, time
from trimtab.errors import StoreError
from trimtab.stores.base import WriteBatch
from trimtab.stores.sqlite import SqliteStore

for number in range(100):
    store = SqliteStore(f"{sys.argv[1]}/{number % 3}.db")
    batch = WriteBatch(
        "c", ((f"e{number}", b"x" * 200_000),), ((f"h{number}", b"z" * 100_000),), (),
        (("a", b"y" * 100_000),),
    )

    def write():
        try:
            for _ in range(5):
                store.write("t", batch)
        except StoreError:
            pass

    thread = threading.Thread(target=write)
    thread.start()
    time.sleep(0.0005 * (number % 20))
    store.close()
    thread.join()
    store.close()
    kept = store.original("t", f"h{number}") is not None
    assert (f"h{number}" in store.handles("t", "c")) is kept
    store.close()
"""


def test_a_file_that_is_closed_while_a_thread_writes_ends_no_process(tmp_path: Path) -> None:
    script = [sys.executable, "-c", CLOSED_WHILE_WRITTEN, str(tmp_path)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-2000:]
