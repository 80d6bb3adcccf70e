"""Everything at once, for as long as you like, and one verdict.

    python tests/soak/together.py --seconds 1800 --seed 1

Two replicas of the proxy share a Redis, two more a PostgreSQL, all of them processes of their own;
clients drive conversations in all six formats through them and through wrapped clients, agents of
LangChain, a gateway and library sessions use the same servers.  Conversations fork, go back and
are compacted by their clients; models look up and keep notes, programs look up, users' code fails.
Meanwhile replicas and servers are killed, stopped and started again, servers are full for a while,
the replicas' clock and the sessions' clocks jump, calls to stores fail, the provider refuses and
cuts its answers, and writers are killed.  At the end every handle that a provider was shown is
recalled and every store is read through, and no process may have grown.  Ends with 1 on any fault.
Needs redis-server, postgres, the extras "sdks", "langchain" and "mcp"; starts its own servers.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from long_sessions import request  # noqa: E402
from own_servers import (  # noqa: E402
    OwnPostgresql,
    OwnRedis,
    OwnServer,
    free_port,
    own_postgresql,
    own_redis,
)

from soak import rounds, user_code  # noqa: E402
from soak.agents import Agents  # noqa: E402
from soak.clients import HANDLE, WINDOW, Client, Findings, Fleet, Upstream  # noqa: E402
from soak.gateways import Gateway  # noqa: E402
from soak.growth import Growth  # noqa: E402
from soak.killed import killed  # noqa: E402
from soak.lasting import Lasting  # noqa: E402
from soak.look_ups import McpServer, Programs  # noqa: E402
from soak.recalls import Values  # noqa: E402
from soak.rows import wrong_original  # noqa: E402
from soak.small_caches import small_caches  # noqa: E402
from soak.stored import JUMPS, MAX_TURNS, Stored  # noqa: E402
from soak.story import SIX  # noqa: E402
from soak.wrapped import Wrapped  # noqa: E402
from trimtab import stores  # noqa: E402

SHORT_SECONDS = 60.0
"""Below, what is dear is done once or not at all."""
DOWN_SECONDS = (0.0, 3.0)
MAX_MEGABYTES = 500
"""A replica may take."""
MAX_GROWTH_MEGABYTES, MAX_OWN_GROWTH_MEGABYTES = 40, 200
"""Of a replica or an MCP server from its sixth minute on: one body of 45 kB kept of each of a
thousand requests is more, heaps that are cut up took 15.  Of this process, which has the provider,
the judges and their caches, and loads each SDK when its turn comes."""
OURS = "the soak"
PROXY_TENANT = "upstream/local"
"""Of whoever comes to a proxy that serves one user."""
CONVERSATION = re.compile(r"^tenant (.+), conversation (\w+): an edit names")
CLIENTS = 2
"""Of each pair of replicas."""


class Replica(OwnServer):
    """One process of the proxy; what it says goes into a file."""

    def __init__(self, store: str, upstream: str, folder: Path, number: int) -> None:
        port = free_port()
        command = [
            sys.executable, str(HERE / "replica.py"), "--listen", f"127.0.0.1:{port}",
            "--upstream", upstream, "--store", store, "--window", str(WINDOW),
            "--recall", "--notes",
        ]  # fmt: skip
        super().__init__(command, port, f"http://127.0.0.1:{port}")
        self.log = folder / f"replica-{number}.log"
        places = HERE.parents[1] / "src", HERE.parent, folder / "installed"
        path = os.pathsep.join(map(str, places))
        self.env = {
            **os.environ, "PYTHONPATH": path, "SOAK_CLOCK": str(folder / "clock"),
            "XDG_STATE_HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "HOME": str(folder),
        }  # fmt: skip
        self.highest_megabytes = 0.0

    def launched(self) -> subprocess.Popen[bytes]:
        """Its process."""
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.command, stdout=log, stderr=log, env=self.env, start_new_session=True
            )

    def watched(self, growth: Growth, seconds: float) -> tuple[float, int]:
        """Megabytes it takes now, and files it has open."""
        assert self.process is not None
        size = growth.take(self.log.stem, self.process.pid, seconds)
        self.highest_megabytes = max(self.highest_megabytes, size)
        try:
            return size, len(os.listdir(f"/proc/{self.process.pid}/fd"))
        except OSError:
            return size, 0


@contextmanager
def replicas(store: str, upstream: str, folder: Path, first: int) -> Iterator[list[Replica]]:
    """Two of them."""
    both = [Replica(store, upstream, folder, first + number) for number in range(2)]
    for one in both:
        one.begin()
    try:
        yield both
    finally:
        for one in both:
            one.kill()


class Weather:
    """What goes wrong, one thing at a time: each in turn, in an order drawn anew each round."""

    def __init__(
        self, rng: random.Random, fleets: list[tuple[OwnRedis | OwnPostgresql, list[Replica]]],
        upstream: Upstream, clock: Path, found: Findings, brief: bool,
    ) -> None:  # fmt: skip
        self.rng, self.upstream, self.clock, self.found = rng, upstream, clock, found
        self.events: list[tuple[str, Callable[[], None]]] = []
        self.down = (0.0, 0.3) if brief else DOWN_SECONDS
        for server, pair in fleets:
            name = server.url.partition(":")[0]
            self.events += [
                (f"{name} killed", lambda server=server: self.killed(server)),
                (f"{name} stopped", lambda server=server: self.stopped(server)),
                (f"{name} filled", lambda server=server: self.filled(server)),
                ("replica killed", lambda pair=pair: self.killed(pair[0])),
                ("replica stopped", lambda pair=pair: self.stopped(rng.choice(pair))),
            ]
        self.events += [("clock of replicas set", self.jump), ("provider ill", self.ill)]
        self.left: list[int] = []

    def next(self) -> None:
        """One event, from its beginning to its end."""
        if not self.left:
            self.left = list(range(len(self.events)))
            self.rng.shuffle(self.left)
        name, act = self.events[self.left.pop()]
        act()
        self.found.count(name)

    def killed(self, server: OwnServer) -> None:
        server.kill()
        time.sleep(self.rng.uniform(*self.down))
        server.start()

    def stopped(self, server: OwnServer) -> None:
        server.send(signal.SIGSTOP)
        time.sleep(self.rng.uniform(*self.down))
        server.send(signal.SIGCONT)

    def filled(self, server: OwnRedis | OwnPostgresql) -> None:
        with server.full():
            time.sleep(self.rng.uniform(*self.down))

    def jump(self) -> None:
        self.clock.write_text(str(self.rng.choice(JUMPS)), "utf-8")

    def ill(self) -> None:
        self.upstream.bad_until = time.monotonic() + self.rng.uniform(*self.down)


def lasting(seed: int, found: Findings, stop: threading.Event) -> None:
    """Sessions of many windows in memory, one after the other."""
    while not stop.is_set():
        seed += 1
        play = Lasting(seed, SIX[seed % len(SIX)])
        for _ in range(60):
            if stop.is_set():
                break
            play.turn()
            found.count("lasting turns")
            time.sleep(0.02)
        for fault in play.faults:
            found.fault(f"lasting {seed}: {fault}")


def hidden_rounds(
    seed: int, folder: Path, brief: bool, found: Findings, stop: threading.Event
) -> None:
    """Sessions of models that call our tools at random, through each provider's client."""
    while not stop.is_set():
        seed += 1
        case = rounds.Case.of(seed)
        case = replace(case, asks=2) if brief else case
        with tempfile.TemporaryDirectory(dir=folder) as place:
            played = rounds.Play(case, Path(place), case.restart).run()
            url = f"sqlite:///{place}/kept.db"
            handles = set(HANDLE.findall(json.dumps(played.bodies)))
            found.left(url, "", sorted(handles))
            read_through(url, found)
        found.count(f"sessions by {case.name}", sessions_by_sdks=1)
        for fault in rounds.wrong_in(case, played):
            found.fault(f"rounds {seed}, {case.name}: {fault}")


def through_doors(
    fleets: list[tuple[OwnServer, list[Replica]]], upstream: Upstream, folder: Path,
    found: Findings, stop: threading.Event, stack: ExitStack,
) -> tuple[list[threading.Thread], list[McpServer]]:  # fmt: skip
    """Clients of every door but the library's own, and the servers that these start."""
    threads, servers = list[threading.Thread](), list[McpServer]()
    for server, pair in fleets:
        kind, urls = server.url.partition(":")[0], [one.url for one in pair]
        by_proxy = Programs(server.url, PROXY_TENANT, folder, found)
        by_library = Programs(server.url, "default", folder, found)
        for programs in (by_proxy, by_library):
            stack.callback(programs.close)
            servers.append(programs.server)
        for n in range(CLIENTS):
            wrapped = Wrapped(upstream.provider.url, server.url, waits=n % 2 == 1)
            stack.callback(wrapped.close)
            threads += [
                Client(f"{kind}-{n}", Fleet(urls, random.Random(n)), server.url, upstream, found,
                       stop, by_proxy),
                Client(f"{kind}-wrap-{n}", wrapped, server.url, upstream, found, stop, by_library),
            ]  # fmt: skip
        threads += [
            Gateway(f"{kind}-gateway", urls, server.url, found, stop),
            Agents(f"{kind}-agents", upstream, server.url, found, stop),
        ]
    return threads, servers


def in_library(
    seed: int, urls: list[str], folder: Path, brief: bool, found: Findings, stop: threading.Event
) -> list[threading.Thread]:
    """Sessions of the library, each on a store, and those that need none of ours."""
    threads: list[threading.Thread] = [
        Stored(seed + 10 * n, url, found, stop) for n, url in enumerate(urls)
    ]
    others = (
        (lasting, (seed, found, stop)),
        (hidden_rounds, (seed, folder, brief, found, stop)),
    )
    return threads + [
        threading.Thread(target=act, args=given, daemon=True) for act, given in others
    ]


def soak(seconds: float, seed: int, folder: Path, say: Callable[[str], None]) -> Findings:
    """Run it all for so long, then look at what is left."""
    found, stop, rng = Findings(), threading.Event(), random.Random(seed)
    brief = seconds < SHORT_SECONDS
    upstream, clock, growth = Upstream(seed), folder / "clock", Growth()
    clock.write_text("0", "utf-8")
    user_code.installed(folder)
    with ExitStack() as stack:
        stack.enter_context(small_caches())
        redis = stack.enter_context(own_redis(folder / "redis"))
        postgresql = stack.enter_context(own_postgresql())
        stack.enter_context(upstream.provider)
        fleets = [
            (server, stack.enter_context(
                replicas(server.url, upstream.provider.url, folder, 2 * number)))
            for number, server in enumerate((redis, postgresql))
        ]  # fmt: skip
        all_replicas = [one for _, pair in fleets for one in pair]
        for one in all_replicas:
            one.start()
        sqlite = f"sqlite:///{folder / 'sessions.db'}"
        urls = [sqlite, redis.url, postgresql.url, *([] if brief else [sqlite])]
        threads, mcp_servers = through_doors(fleets, upstream, folder, found, stop, stack)
        threads += in_library(seed, urls, folder, brief, found, stop)
        weather = Weather(rng, fleets, upstream, clock, found, brief)
        for thread in threads:
            thread.start()
        began, said, told = time.monotonic(), 0.0, 0
        while (now := time.monotonic() - began) < seconds:
            time.sleep(rng.uniform(0.0, 0.2 if brief else 5.0))
            weather.next()
            if not brief and rng.random() < 0.1:
                kill_writers(folder, rng, found)
            watched = [one.watched(growth, now) for one in all_replicas]
            for mcp in mcp_servers:
                if mcp.process is not None:
                    growth.take(mcp.log.stem, mcp.process.pid, now)
            mine = growth.take(OURS, os.getpid(), now)
            if now - said > 60 or not said:
                said = now or 0.001
                sizes = ", ".join(f"{size:.0f} MB {files} files" for size, files in watched)
                say(f"{now:6.0f} s  {len(found.faults)} faults  {found.counts['turns']} turns  "
                    f"replicas: {sizes}, the soak: {mine:.0f} MB")  # fmt: skip
                for text in found.faults[told:]:
                    say(f"  FAULT {text}")
                told = len(found.faults)
        stop.set()
        for thread in threads:
            thread.join(timeout=90)
            if thread.is_alive():
                found.fault(f"{thread.name} does not come to an end")
        for one in all_replicas:
            one.send(signal.SIGTERM)
            judge_replica(one, found)
        found.faults += [f"the provider: {text}" for text in upstream.provider.crashes]
        for url in (sqlite, redis.url, postgresql.url):
            read_through(url, found)
    for name, (early, late) in growth.rows(seconds).items():
        say(f"{early:6.0f} MB in the sixth minute, {late:.0f} MB in the last: {name}")
        most = MAX_OWN_GROWTH_MEGABYTES if name.startswith(OURS) else MAX_GROWTH_MEGABYTES
        if late - early > most:
            found.fault(f"{name} grew from {early:.0f} to {late:.0f} MB")
    return found


def kill_writers(folder: Path, rng: random.Random, found: Findings) -> None:
    """Two that write into a store of their own, and one kill."""
    outcome = killed(f"sqlite:///{folder / 'killed.db'}", 1, 2, rng.randrange(10**6))
    found.count(writers_killed=outcome.kills, handles_of_killed=outcome.handles)
    for text in (*outcome.lost, *outcome.faults):
        found.fault(f"killed writers: {text}")


def judge_replica(one: Replica, found: Findings) -> None:
    """It ends when it is asked to, says nothing of errors of ours, and does not grow."""
    assert one.process is not None
    try:
        one.process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        found.fault(f"{one.log.name} does not end on SIGTERM")
    text = one.log.read_text("utf-8", "replace")
    for number, line in enumerate(text.splitlines()):
        if "Traceback" in line or "fell back" in line or "internal error" in line:
            found.fault(f"{one.log.name}:{number + 1}: {line[:200]}")
    if one.highest_megabytes > MAX_MEGABYTES:
        found.fault(f"{one.log.name}: {one.highest_megabytes:.0f} MB > {MAX_MEGABYTES}")
    found.counts["most megabytes of a replica"] = max(
        found.counts["most megabytes of a replica"], round(one.highest_megabytes)
    )


def read_through(url: str, found: Findings) -> None:
    """What a store kept is whole, and has every handle that left."""
    store = stores.open_store(url)
    rows = store.conversations()
    for text in stores.faults(store, lambda tenant: stores.open(store, tenant)):
        found.fault(f"{url}: {text}")
        place = CONVERSATION.search(text)
        if place:
            entries, _ = stores.open(store, place[1]).read(place[2])
            named = [row for row in entries if text.split(" names ")[-1][:11].encode() in row]
            found.faults += [f"  its entry: {row[:400]!r}" for row in named]
    tenants = [stores.open(store, name) for name in sorted({row.tenant for row in rows})]
    wanted = found.handles.pop(url, {})
    given = "", Values(None)
    for owner, handle in sorted((owner, handle) for handle, owner in wanted.items()):
        original = next(filter(None, (one.original(handle) for one in tenants)), None)
        if original is None:
            found.fault(f"{url}: {handle} of {owner} had left and is gone")
        elif owner.isdigit():
            if given[0] != owner:
                given = owner, Values(request(MAX_TURNS, int(owner)))
            wrong = given[1].lacks(original.text)
            found.faults += [f"{url}: {handle} of {owner}: not given so: {wrong}"] if wrong else []
        elif owner:
            wrongs = wrong_original(original.text, owner)
            found.faults += [f"{url}: {handle} of {owner}: {one}" for one in wrongs]
    found.count(handles_recalled=len(wanted), conversations_kept=len(rows))
    store.close()


def main() -> int:
    """The command line."""
    options = argparse.ArgumentParser(description="everything at once, and one verdict")
    options.add_argument("--seconds", type=float, default=1_800)
    options.add_argument("--seed", type=int, default=1)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="trimtab-soak-") as folder:
        found = soak(asked.seconds, asked.seed, Path(folder), lambda line: print(line, flush=True))
    for name, number in sorted(found.counts.items()):
        print(f"  {number:>9,}  {name.replace('_', ' ')}")
    print(f"  {found.slowest_seconds:>9.1f}  seconds, the slowest turn with its retries")
    for text in found.faults[:200]:
        print(f"  FAULT {text}")
    print(f"{asked.seconds:.0f} s, seed {asked.seed}: {len(found.faults)} faults")
    return int(bool(found.faults))


if __name__ == "__main__":
    sys.exit(main())
