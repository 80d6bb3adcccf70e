"""The proxy under 64 streams, paired with a proxy that only passes on: ``python bench/load.py``.

Rounds of equal requests go through both in turns, so that a busy machine slows both.  Printed as
medians over the rounds: requests a second as a share of the bare proxy's, p50 and p99 in
milliseconds, milliseconds of processor time a request.
  plain      conversations that grow to 200 kB, without an edit
  standing   conversations of 228 kB with standing edits, each request 300 characters longer
  redis      as plain, on Redis (--redis URL; else redis-server is started where it is installed)
  workers    as plain, one worker and two on a file
  beside     small chats while one of 2 MB is made to fit: the longest of them
  peers      as plain, in turns with LiteLLM's proxy and headroom's where they are on the path:
             pip install 'litellm[proxy]' and 'headroom-ai[proxy]', each where it likes
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import aiohttp
from proxy import ROOT, Running, body, step

Round = tuple[float, float, float, float, float]
"""Requests a second, p50 and p99 in milliseconds, processor milliseconds a request, answers that
were not 200 or not whole."""
KEY = "sk-of-a-benchmark"
"""What every client sends."""
BOUNDS = {"plain": 0.45, "standing": 0.11, "redis": 0.4}


class Program(Running):
    """A proxy that a command starts, with its children."""

    def __init__(self, command: list[str], port: int, home: str, **env: str) -> None:
        self._start(
            command, port, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home, **env},
        )  # fmt: skip

    def cpu(self) -> float:
        """Seconds of processor time, those of its workers included."""
        return sum(time.clock_gettime((~pid << 3) | 2) for pid in self._pids())

    def rss(self) -> int:
        """Resident memory in bytes, that of its workers included."""
        pages = (int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self._pids())
        return sum(pages) * os.sysconf("SC_PAGE_SIZE")

    def _pids(self) -> list[int]:
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [pid, *map(int, children)]


class OurProxy(Program):
    """``trimtab proxy`` as the command line starts it."""

    def __init__(self, port: int, url: str, home: str, *options: str) -> None:
        command = [sys.executable, "-m", "trimtab", "proxy", "--listen", f"127.0.0.1:{port}"]
        command += ["--upstream", url, *options]
        super().__init__(command, port, home, PYTHONPATH=str(ROOT / "src"))


def litellms(program: str, port: int, url: str, home: str) -> Program:
    """LiteLLM's proxy with the one model, one worker as it is by default."""
    model = {"model": "openai/gpt-5.1", "api_key": "none", "api_base": f"{url}/v1"}
    config = {"model_list": [{"model_name": "gpt-5.1", "litellm_params": model}]}
    file = Path(home) / "litellm.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    command = [program, "--config", str(file), "--host", "127.0.0.1", "--port", str(port)]
    more = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR", "PYTHONPATH": ""}
    return Program(command, port, home, LITELLM_MASTER_KEY=KEY, **more)


def headrooms(program: str, port: int, url: str, home: str) -> Program:
    """headroom's proxy as it is by default, but for its limit of 60 requests a minute."""
    command = [program, "proxy", "--port", str(port), "--openai-api-url", f"{url}/v1"]
    return Program([*command, "--no-rate-limit", "--no-telemetry"], port, home, PYTHONPATH="")


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

    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
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
    print(*wrong[:3], sep="\n", end="\n" if wrong else "", file=sys.stderr)
    cuts = statistics.quantiles(times, n=100)
    return len(times) / took, cuts[49], cuts[98], 1_000 * spent / len(times), len(wrong)


def paired(
    ours: Running, bare: Running, kind: str, args: argparse.Namespace
) -> tuple[list[Round], list[Round]]:
    """Rounds of both in turns."""
    mine, other = in_turns([ours, bare], kind, args)
    assert not any(row[4] for row in (*mine, *other))
    return mine, other


def in_turns(proxies: Sequence[Running], kind: str, args: argparse.Namespace) -> list[list[Round]]:
    """Rounds of each, with another one first each time; the first round only warms up."""
    rows: list[list[Round]] = [[] for _ in proxies]
    for number in range(args.rounds + 1):
        for turn in range(len(proxies)):
            at = (turn + number + 1) % len(proxies)
            first = 10_000 * (len(proxies) * number + at)
            found = asyncio.run(measured(proxies[at], kind, first, args.streams, args.requests))
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


def peers(ours: Running, bare: Running, url: str, home: str, args: argparse.Namespace) -> None:
    """A table of all proxies that are here."""
    found = {"a proxy that only passes on": bare, "trimtab": ours}
    with ExitStack() as stack:
        for port, (name, program, start) in enumerate(
            (("LiteLLM", "litellm", litellms), ("headroom", "headroom", headrooms)), 18_771
        ):
            if path := shutil.which(program):
                found[name] = start(path, port, url, home)
                stack.callback(found[name].stop)
        rows = in_turns(list(found.values()), "plain", args)
        print(
            f"| {args.streams} streams | requests/s | p50, ms | p99, ms | CPU, ms | MB | failed |"
        )
        print("|---|---|---|---|---|---|---|")
        for (name, one), rounds in zip(found.items(), rows, strict=True):
            rate, p50, p99, cpu, _ = (statistics.median(each) for each in zip(*rounds, strict=True))
            failed = sum(each[4] for each in rounds)
            print(f"| {name} | {rate:.0f} | {p50:,.0f} | {p99:,.0f} | {cpu:.1f} "
                  f"| {one.rss() / 1e6:,.0f} | {failed:.0f} |", flush=True)  # fmt: skip


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
            "peers": ("peers", (*large, *memory)),
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
                    if name == "peers":
                        peers(ours, bare, provider.url, home, args)
                    elif name == "beside":
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
