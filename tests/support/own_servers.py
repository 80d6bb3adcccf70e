"""Redis and PostgreSQL of a test's own, on free ports of this machine, to be killed,
filled and restarted.

What they said is kept stays over a SIGKILL.  Knows how each is started, nothing of trimtab.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import world_needs

START_SECONDS = 30.0
_NO_SPACE = """
CREATE OR REPLACE FUNCTION no_space() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file "base/5/16384": No space left on device'
        USING ERRCODE = 'disk_full', HINT = 'Check free disk space.';
END $$
"""


def free_port() -> int:
    """One that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class OwnServer:
    """A process group on a port; ``user``: who it runs as, where that is not us."""

    def __init__(self, command: list[str], port: int, url: str, user: str | None = None) -> None:
        self.command, self.port, self.url, self.user = command, port, url, user
        self.process: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """Start it, and do not wait."""
        self.process = self.launched()

    def start(self) -> None:
        """Start it, where it does not run, and wait until it listens."""
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until:
            if self.process is None or self.process.poll() is not None:
                self.process = self.launched()
            if self.answers():
                return
            time.sleep(0.02)
        raise RuntimeError(f"{self.command[0]} did not start")

    def answers(self) -> bool:
        """Whether it listens."""
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def launched(self) -> subprocess.Popen[bytes]:
        """Its process, which may end by itself as long as the port is taken."""
        return subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            user=self.user, start_new_session=True,
        )  # fmt: skip

    def send(self, number: signal.Signals) -> None:
        """A signal to all of its processes."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process is not None:
            self.send(signal.SIGKILL)
            self.process.wait()


class OwnRedis(OwnServer):
    """It evicts nothing; it listens some time before it has read what it kept."""

    def answers(self) -> bool:
        """Whether it takes a command."""
        import redis

        if super().answers():
            with suppress(redis.RedisError), redis.Redis.from_url(self.url) as client:
                return bool(client.ping())
        return False

    @contextmanager
    def full(self) -> Iterator[None]:
        """Its memory is full for a while: reads are answered, writes refused (noeviction)."""
        import redis

        with redis.Redis.from_url(self.url) as client:
            client.config_set("maxmemory", 1)
            try:
                yield
            finally:
                client.config_set("maxmemory", 0)


class OwnPostgresql(OwnServer):
    """It listens some time before it has recovered and takes connections."""

    def send(self, number: signal.Signals) -> None:
        """A signal to all of its processes: each connection's is in a group of its own."""
        children = list[str]()
        if self.process is not None:
            pid = self.process.pid
            with suppress(FileNotFoundError):
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text("utf-8").split()
        super().send(number)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(int(child), number)

    @contextmanager
    def full(self) -> Iterator[None]:
        """Its disk is full for a while, as far as trimtab's tables are concerned: reads are
        answered, and writes end as PostgreSQL ends them then (53100, ``mdextend`` of its
        source)."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute(_NO_SPACE)
            rows = db.execute("SELECT tablename FROM pg_tables WHERE tablename LIKE 'trimtab%'")
            tables = [name for (name,) in rows.fetchall()]
            # Each on its own: a lock on all of them could meet a writer's.
            for name in tables:
                db.execute(
                    f"CREATE TRIGGER no_space BEFORE INSERT OR UPDATE ON {name} "
                    "EXECUTE FUNCTION no_space()"
                )
            try:
                yield
            finally:
                for name in tables:
                    db.execute(f"DROP TRIGGER no_space ON {name}")

    def answers(self) -> bool:
        """Whether it takes a connection."""
        import psycopg

        if super().answers():
            with suppress(psycopg.OperationalError):
                psycopg.connect(self.url, connect_timeout=2).close()
                return True
        return False


@contextmanager
def own_redis(folder: Path | None = None, *, cluster: bool = False) -> Iterator[OwnRedis]:
    """``folder``: where each write is kept; without one a restart comes back empty."""
    world_needs.module("redis", "redis")
    port = free_port()
    command = [world_needs.program("redis-server"), "--port", str(port), "--save", ""]
    command += ["--bind", "127.0.0.1"]
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        command += ["--dir", str(folder), "--appendonly", "yes", "--appendfsync", "always"]
    if cluster:
        command += ["--cluster-enabled", "yes", "--cluster-config-file", f"nodes-{port}.conf"]
        command += ["--cluster-port", str(free_port())]
    server = OwnRedis(command, port, f"redis://127.0.0.1:{port}/0")
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def own_cluster(folder: Path, nodes: int = 3) -> Iterator[OwnServer]:
    """A Redis Cluster; its first node."""
    with ExitStack() as stack:
        servers = [
            stack.enter_context(own_redis(folder / str(number), cluster=True))
            for number in range(nodes)
        ]
        addresses = [f"127.0.0.1:{server.port}" for server in servers]
        command = [world_needs.program("redis-cli"), "--cluster", "create", *addresses]
        subprocess.run([*command, "--cluster-yes"], check=True, stdout=subprocess.DEVNULL)
        _await_cluster(servers)
        yield servers[0]


@contextmanager
def own_postgresql() -> Iterator[OwnPostgresql]:
    """One with its data in a folder that is gone afterwards."""
    world_needs.module("psycopg", "postgresql")
    initdb, postgres = _program("initdb"), _program("postgres")
    user = "postgres" if os.getuid() == 0 else None  # it refuses to run as root
    data, port = Path(tempfile.mkdtemp(prefix="trimtab-postgresql-")), free_port()
    if user:
        shutil.chown(data, user)
    subprocess.run(
        [initdb, "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync"],
        check=True, stdout=subprocess.DEVNULL, user=user, cwd="/",
    )  # fmt: skip
    command = [postgres, "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", ""]
    url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    server = OwnPostgresql(command, port, url, user)
    server.start()
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(data, ignore_errors=True)


def _await_cluster(servers: list[OwnServer]) -> None:
    import redis

    until = time.monotonic() + START_SECONDS
    for server in servers:
        client = redis.Redis.from_url(server.url)
        while client.cluster("info")["cluster_state"] != "ok":
            if time.monotonic() > until:
                raise RuntimeError("the cluster does not come up")
            time.sleep(0.05)


def _program(name: str) -> str:
    """PostgreSQL's own are often beside ``pg_config``, not on the path."""
    if found := shutil.which(name):
        return found
    folders = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(folders[-1]) if folders else world_needs.program(name)
