"""What clients notice while the store of two replicas is away: ``python bench/outages.py``.

Two replicas of ``trimtab proxy`` share a Redis, then a PostgreSQL; both are started here.  Clients
drive conversations that outgrow the window four times, each turn at either replica, to the strict
provider.  For --seconds each the server hangs (SIGSTOP), is down (SIGKILL, then started again) and
full, and is well in between.  Milliseconds of a turn by what was wrong when it began, or else when
it ended, the provider's own time included.  At the end every handle that the provider saw is looked
up in the store.  Ends with 1 on a fault.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from load import our_proxy

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / name) for name in ("src", "tests/support")]

from own_servers import OwnPostgresql, OwnRedis, own_postgresql, own_redis  # noqa: E402
from proxies import ask  # noqa: E402
from proxy_story import JSON, TOOLS, answers, listing  # noqa: E402

from trimtab import stores  # noqa: E402
from trimtab_lab.testing import StrictProvider  # noqa: E402

Server = OwnRedis | OwnPostgresql
WINDOW, CLIENTS, TURNS = 12_000, 4, 24
HANDLE = re.compile(r'recall\(\\*"(r[a-z2-7]{10})')


class Load:
    """Clients that talk until they are stopped, and what they saw."""

    def __init__(self, urls: list[str]) -> None:
        self.urls, self.wrong = urls, "well"
        self.times = defaultdict[str, list[float]](list)
        self.faults = list[str]()
        self.stopping = threading.Event()
        self._threads = [threading.Thread(target=self._talk, args=(n,)) for n in range(CLIENTS)]

    def begin(self) -> None:
        """All clients at once."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """When each has its last answer."""
        self.stopping.set()
        for thread in self._threads:
            thread.join()

    def _talk(self, client: int) -> None:
        rng, number = random.Random(client), 0
        while not self.stopping.is_set():
            number += 1
            name = f"client {client}, conversation {number}"
            messages: list[Any] = [{"role": "user", "content": f"Go through the parts: {name}."}]
            for step in range(TURNS):
                answer = self._turn(rng.choice(self.urls), name, messages)
                if answer is None or self.stopping.is_set():
                    break
                results = [{"type": "tool_result", "tool_use_id": part["id"],
                            "content": listing(step, 90)}
                           for part in answer if part["type"] == "tool_use"]  # fmt: skip
                messages += [{"role": "assistant", "content": answer},
                             {"role": "user", "content": results}]  # fmt: skip

    def _turn(self, url: str, name: str, messages: list[Any]) -> Any:
        body = {"model": "claude-opus-5-5", "max_tokens": 500, "tools": TOOLS, "messages": messages}
        headers = {**JSON, "x-claude-code-session-id": name}
        wrong, began = self.wrong, time.perf_counter()
        try:
            status, _, answer = ask(url, "POST", "/v1/messages", json.dumps(body), headers)
        except OSError as error:
            status, answer = 0, str(error).encode()
        took = 1_000 * (time.perf_counter() - began)
        self.times[self.wrong if wrong == "well" else wrong].append(took)
        if status == 200:
            return json.loads(answer)["content"]
        self.faults.append(f"{name}: {status} {answer[:200]!r}")
        return None


@contextmanager
def hangs(server: Server) -> Iterator[None]:
    """It answers no more, and its machine takes what it is sent."""
    server.send(signal.SIGSTOP)
    try:
        yield
    finally:
        server.send(signal.SIGCONT)


@contextmanager
def down(server: Server) -> Iterator[None]:
    """It is gone, and comes back with what it kept."""
    server.kill()
    try:
        yield
    finally:
        server.start()


def full(server: Server) -> AbstractContextManager[None]:
    """It refuses to write."""
    return server.full()


OUTAGES: tuple[Callable[[Server], AbstractContextManager[None]], ...] = (hangs, down, full)


def watched(server: Server, seconds: float, home: str) -> tuple[Load, str]:
    """All outages of one server; what the clients saw, and a line of what came of it."""
    options = ("--window", str(WINDOW), "--store", server.url, "--recall")
    with (
        StrictProvider(answers, window=WINDOW) as provider,
        our_proxy(18_791, provider.url, home, *options) as first,
        our_proxy(18_792, provider.url, home, *options) as second,
    ):
        load = Load([first.url, second.url])
        load.begin()
        time.sleep(seconds / 2)  # until conversations are long
        load.times.clear()
        for outage in OUTAGES:
            time.sleep(seconds / 2)
            with outage(server):
                load.wrong = outage.__name__
                time.sleep(seconds)
                load.wrong = "well"
        time.sleep(seconds / 2)
        load.end()
        time.sleep(10)  # what waited in memory is written again every five seconds
        sent = [record for record in provider.requests if record.status]
    refused = sum(bool(record.refusal or record.violations) for record in sent)
    handles = {one for record in sent for one in HANDLE.findall(json.dumps(record.body))}
    lost = handles - set(kept(server.url))
    load.faults += [f"{handle} had left and is gone" for handle in lost]
    return load, (
        f"{len(sent):,} requests, {refused} refused by the provider, {len(load.faults)} faults; "
        f"{len(handles)} handles seen, {len(lost)} lost"
    )


def kept(url: str) -> Iterator[str]:
    """Every handle that a store has the original of."""
    store = stores.open_store(url)
    for row in store.conversations():
        tenant = stores.open(store, row.tenant)
        for handle in store.handles(row.tenant, row.conversation):
            if tenant.original(handle):
                yield handle
    store.close()


def main() -> int:
    """Print a table, and a line for each server."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--seconds", type=float, default=40)
    seconds, faults, lines = options.parse_args().seconds, list[str](), list[str]()
    print(f"{CLIENTS} clients; each outage lasts {seconds:.0f} s")
    print("| store | it | turns | p50, ms | p99, ms | slowest, ms |\n|---|---|---|---|---|---|")
    for name in ("Redis", "PostgreSQL"):
        with tempfile.TemporaryDirectory() as home:
            opened = own_redis(Path(home) / "redis") if name == "Redis" else own_postgresql()
            with opened as server:
                load, line = watched(server, seconds, home)
        for wrong, times in load.times.items():
            cuts = statistics.quantiles(times, n=100, method="inclusive")
            print(f"| {name} | {wrong} | {len(times):,} | {cuts[49]:,.0f} | {cuts[98]:,.0f} "
                  f"| {max(times):,.0f} |", flush=True)  # fmt: skip
        lines.append(f"{name}: {line}")
        faults += load.faults
    print("\n".join(["", *lines, *faults]))
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
