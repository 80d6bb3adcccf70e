"""The proxy under 64 streams, paired with a proxy that only passes on: ``python bench/load.py``.

Rounds of equal requests go through both in turns, so that a busy machine slows both.  Printed as
medians over the rounds: requests a second as a share of the bare proxy's, p50 and p99 in
milliseconds, milliseconds of processor time a request.
  plain      conversations that grow to 200 kB, without an edit
  standing   conversations of 228 kB with standing edits, each request 300 characters longer
  redis      as plain, on Redis (--redis URL; else redis-server is started where it is installed)
  workers    as plain, one worker and two on a file
  beside     small chats while one of 2 MB is made to fit: the longest of them
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
from proxy import ROOT, Running, body, step

Round = tuple[float, float, float, float]
"""Requests a second, p50 and p99 in milliseconds, processor milliseconds a request."""
BOUNDS = {"plain": 0.45, "standing": 0.11, "redis": 0.4}


class OurProxy(Running):
    """``trimtab proxy`` as the command line starts it."""

    def __init__(self, port: int, url: str, home: str, *options: str) -> None:
        self._start(
            [sys.executable, "-m", "trimtab", "proxy", "--listen", f"127.0.0.1:{port}",
             "--upstream", url, *options],
            port, cwd=home, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home, "PYTHONPATH": str(ROOT / "src")},
        )  # fmt: skip

    def cpu(self) -> float:
        """Seconds of processor time, those of its workers included."""
        pids = [self.process.pid, *_children(self.process.pid)]
        return sum(time.clock_gettime((~pid << 3) | 2) for pid in pids)


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def growing(name: str) -> Iterator[bytes]:
    """20 requests from 10 to 200 kB."""
    steps = []
    for turn in range(20):
        steps += step(turn, 10_000)
        yield body(name, steps, stream=True)


def standing(name: str) -> Iterator[bytes]:
    """21 requests from 228 kB on; the first makes the edits."""
    steps = [message for turn in range(22) for message in step(turn, 10_000)]
    for turn in range(21):
        steps += step(100 + turn, 300)
        yield body(name, steps, stream=True)


async def measured(one: Running, kind: str, first: int, streams: int, most: int) -> Round:
    """One round: ``first`` numbers its conversations, so that none is known from before."""
    make = standing if kind == "standing" else growing
    left, times, wrong = [most], list[float](), list[str]()

    async def send(session: aiohttp.ClientSession, name: str, data: bytes) -> float:
        began = time.perf_counter()
        async with session.post(f"{one.url}/v1/chat/completions", data=data) as answer:
            text = await answer.text()
        if answer.status != 200 or "[DONE]" not in text or name not in text:
            wrong.append(f"{name}: {answer.status} {text[:200]}")
        return (time.perf_counter() - began) * 1_000

    async def talk(number: int, session: aiohttp.ClientSession, begun: Iterator[bytes]) -> None:
        again = 0
        while left[0] > 0:
            name = f"canary-{(first + number) * 1_000 + again}"
            for data in make(name) if again else begun:
                left[0] -= 1
                if left[0] < 0:
                    return
                times.append(await send(session, name, data))
            if kind == "standing":
                return  # another conversation would begin with edits
            again += 1

    headers = {"content-type": "application/json"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        names = [f"canary-{(first + number) * 1_000}" for number in range(streams)]
        begun = [make(name) for name in names]
        if kind == "standing":  # whose first request makes the edits: it is not measured
            await asyncio.gather(*(send(session, name, next(bodies))
                                   for name, bodies in zip(names, begun, strict=True)))  # fmt: skip
        before, began = one.cpu(), time.perf_counter()
        talks = (talk(number, session, bodies) for number, bodies in enumerate(begun))
        await asyncio.gather(*talks)
    took, spent = time.perf_counter() - began, one.cpu() - before
    assert not wrong, wrong[:3]
    cuts = statistics.quantiles(times, n=100)
    return len(times) / took, cuts[49], cuts[98], 1_000 * spent / len(times)


def paired(
    ours: Running, bare: Running, kind: str, args: argparse.Namespace
) -> tuple[list[Round], list[Round]]:
    """Rounds of both in turns; the first of each only warms up."""
    rows: tuple[list[Round], list[Round]] = ([], [])
    for number in range(args.rounds + 1):
        pair = [(0, ours), (1, bare)] if number % 2 else [(1, bare), (0, ours)]
        for at, one in pair:
            first = 10_000 * (2 * number + at)
            found = asyncio.run(measured(one, kind, first, args.streams, args.requests))
            if number:
                rows[at].append(found)
    return rows


@contextmanager
def our_proxy(port: int, url: str, home: str, *options: str) -> Iterator[OurProxy]:
    """``trimtab proxy`` for a while; it ends also when a round fails."""
    ours = OurProxy(port, url, home, *options)
    try:
        yield ours
    finally:
        ours.stop()


def say(name: str, ours: list[Round], bare: list[Round]) -> None:
    """One line."""
    share = statistics.median(a[0] / b[0] for a, b in zip(ours, bare, strict=True))
    mine, other = ([statistics.median(col) for col in zip(*rows, strict=True)]
                   for rows in (ours, bare))  # fmt: skip
    must = f" (at least {BOUNDS[name]})" if name in BOUNDS else ""
    print(
        f"{name:10} {share:.2f} x bare{must}; {mine[0]:.0f} and {other[0]:.0f} requests/s; p50 "
        f"{mine[1]:.0f} and {other[1]:.0f} ms, p99 {mine[2]:.0f} ms, {mine[2] / mine[1]:.1f} x "
        f"p50; CPU {mine[3]:.1f} and {other[3]:.1f} ms a request",
        flush=True,
    )


async def beside(ours: Running) -> list[float]:
    """Milliseconds of small chats while a body of 2 MB is cut."""
    big = body("canary-9", [m for n in range(200) for m in step(n, 10_000)], stream=False)
    times: list[float] = []
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as session:

        async def ask(data: bytes) -> None:
            async with session.post(f"{ours.url}/v1/chat/completions", data=data) as answer:
                await answer.read()

        for number in range(20):
            await ask(body(f"canary-{number}", [], stream=False))
        working = asyncio.create_task(ask(big))
        number = 100
        while not working.done():
            number += 1
            began = time.perf_counter()
            await ask(body(f"canary-{number}", [], stream=False))
            times.append((time.perf_counter() - began) * 1_000)
            await asyncio.sleep(0.02)
        await working
    return times


def redis_url(args: argparse.Namespace, folder: str) -> tuple[str, subprocess.Popen[bytes] | None]:
    """Of a Redis server, and the server where it was started here; "" where there is none."""
    if args.redis:
        return args.redis, None
    program = shutil.which("redis-server")
    if program is None:
        return "", None
    command = [program, "--port", "18759", "--save", "", "--dir", folder]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    time.sleep(1)
    return "redis://127.0.0.1:18759", process


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--requests", type=int, default=1_280, help="of a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--redis", default="", metavar="URL")
    parser.add_argument("--only", default="plain,standing,redis,workers,beside")
    args = parser.parse_args()
    wanted = args.only.split(",")
    with tempfile.TemporaryDirectory() as home:
        provider = Running("upstream", 18_751)
        bare = Running("bare", 18_752, provider.url)
        url, server = redis_url(args, home) if "redis" in wanted else ("", None)
        large, memory = ("--window", "1000k"), ("--store", "memory:")
        file = ("--store", f"sqlite:///{home}/one.db")
        kinds = {
            "plain": ("plain", (*large, *memory)),
            "standing": ("standing", ("--window", "60k", *memory)),
            "redis": ("plain", (*large, "--store", url)),
            "1 worker": ("plain", (*large, *file)),
            "2 workers": ("plain", (*large, *file, "--workers", "2")),
            "beside": ("beside", ("--window", "100k", *memory)),
        }
        names = [one for name in wanted for one in
                 (("1 worker", "2 workers") if name == "workers" else (name,))]  # fmt: skip
        try:
            for port, name in enumerate(names, 18_760):
                if name == "redis" and not url:
                    print("redis      no server")
                    continue
                kind, options = kinds[name]
                with our_proxy(port, provider.url, home, *options) as ours:
                    if name == "beside":
                        times = asyncio.run(beside(ours))
                        print(f"beside     {len(times)} small chats, the longest "
                              f"{max(times):.0f} ms (at most 50)")  # fmt: skip
                    else:
                        say(name, *paired(ours, bare, kind, args))
        finally:
            for one in (bare, provider):
                one.stop()
            if server is not None:
                server.terminate()
                server.wait()


if __name__ == "__main__":
    main()
