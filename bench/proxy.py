"""The proxy under load, and beside a proxy that only passes on: ``python bench/proxy.py``.

Prints, for one worker and a provider that answers at once:
  load      64 concurrent streaming conversations of 200 kB for --seconds: errors, answers that
            carry another conversation's canary, resident memory of the first and second half
  overhead  p50 of 1 MB bodies that extend the previous one, paired with a bare pass-through
  replicas  two replicas on Redis against one: bytes sent, for requests one after the other

All on 127.0.0.1, bounded in requests and time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

WORDS = ["alpha", "beta", "gamma", "delta", "eta", "theta", "iota", "kappa", "mu", "nu", "xi", "pi"]


# --- the three servers, each in a process of its own ---------------------------------------------


async def upstream(scope: Any, receive: Any, send: Any) -> None:
    """Answers with the canary it finds in the first kilobyte, as a stream of 40 events."""
    if scope["type"] != "http":
        return
    parts, more = [], True
    while more:
        message = await receive()
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    body = b"".join(parts)
    found = re.search(rb"canary-\d+", body[:4_000])
    canary = found[0].decode() if found else "none"
    if b'"stream":true' not in body[-300:] and b'"stream": true' not in body[-300:]:
        answer = {"choices": [{"message": {"role": "assistant", "content": canary}}],
                  "usage": {"prompt_tokens": len(body) // 4, "completion_tokens": 3}}  # fmt: skip
        data = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(data))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": data})
        return
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for number in range(40):
        delta = {"content": canary if number % 10 == 0 else "word "}
        event = {"id": "c", "choices": [{"index": 0, "delta": delta}]}
        data = b"data: " + json.dumps(event).encode() + b"\n\n"
        await send({"type": "http.response.body", "body": data, "more_body": True})
    await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


def bare(url: str) -> Any:
    """A proxy that only passes on: the same server, the same client, nothing between."""
    session: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if not session:
            session.append(aiohttp.ClientSession(auto_decompress=False))
        parts, more = [], True
        while more:
            message = await receive()
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
        kept = [(n.decode(), v.decode()) for n, v in scope["headers"]
                if n not in (b"host", b"content-length", b"transfer-encoding")]  # fmt: skip
        data = b"".join(parts)
        async with session[0].post(url + scope["path"], headers=kept, data=data) as answer:
            raw = [(n, v) for n, v in answer.raw_headers if n.lower() != b"transfer-encoding"]
            await send({"type": "http.response.start", "status": answer.status, "headers": raw})
            async for part in answer.content.iter_any():
                await send({"type": "http.response.body", "body": part, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return app


def serve(kind: str, port: int, url: str, store: str) -> None:
    """Run one of them."""
    if kind == "trimtab":
        from trimtab.proxy import Proxy, ProxySettings, Server, Upstream

        given = ProxySettings(listen=f":{port}", upstreams=(Upstream("u", url),), store=store,
                              fit={"window": 1_000_000})  # fmt: skip
        Server(Proxy(given)).run()
        return
    app = upstream if kind == "upstream" else bare(url)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical", access_log=False)


class Running:
    """A server in a process of its own."""

    def __init__(self, kind: str, port: int, url: str = "-", store: str = "") -> None:
        self._start([sys.executable, __file__, "--serve", kind, str(port), url, store], port)

    @classmethod
    def of_tree(cls, tree: Path, port: int, url: str, window: int, home: str) -> Running:
        """``trimtab proxy`` of one source tree, as the command line starts it."""
        this = cls.__new__(cls)
        this._start(
            [sys.executable, "-m", "trimtab", "proxy", "--listen", f"127.0.0.1:{port}",
             "--upstream", url, "--window", str(window), "--store", "memory:"],
            port, cwd=home, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": home, "PYTHONPATH": str(tree)},
        )  # fmt: skip
        return this

    def _start(self, command: list[str], port: int, **keywords: Any) -> None:
        self.process = subprocess.Popen(command, **keywords)
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(3_000):
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"{command} does not listen on {port}")

    def rss(self) -> int:
        """Resident memory in bytes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def cpu(self) -> float:
        """Seconds of processor time of all its threads so far."""
        return time.clock_gettime((~self.process.pid << 3) | 2)  # what clock_getcpuclockid gives

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


# --- bodies --------------------------------------------------------------------------------------


def step(number: int, size: int) -> list[Any]:
    """One call and its result of about so many characters."""
    path = json.dumps({"path": f"f{number}.txt"})
    call = {"id": f"call_{number}", "type": "function",
            "function": {"name": "read", "arguments": path}}  # fmt: skip
    text = " ".join(f"{WORDS[(n * 7 + number) % 12]}_{n * number % 997}" for n in range(size // 9))
    return [{"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"call_{number}", "content": text}]  # fmt: skip


def body(name: str, steps: list[Any], *, stream: bool) -> bytes:
    first = {"role": "user", "content": f"{name}: go on."}
    request = {"model": "gpt-5.1", "messages": [first, *steps], "stream": stream}
    return json.dumps(request, separators=(",", ":")).encode()


# --- load ----------------------------------------------------------------------------------------


async def load(
    url: str, rss: Any, seconds: float, conversations: int, first: int = 0, most: float = math.inf
) -> dict[str, Any]:
    """Streaming conversations that grow to about 200 kB, and begin anew.

    ``first`` numbers them, so that those of several calls are different ones; ``most``: about so
    many requests, then it ends before its time.
    """
    end, errors, crossed, done = time.monotonic() + seconds, [], 0, 0
    halves: list[list[int]] = [[], []]
    start = last = time.monotonic()

    async def talk(number: int, session: Any) -> None:
        nonlocal crossed, done, last
        again = 0
        while time.monotonic() < end and done < most:
            again += 1
            name, steps = f"canary-{(first + number) * 1_000 + again % 7}", list[Any]()
            for turn in range(20):
                if time.monotonic() > end or done >= most:
                    return
                steps += step(turn, 10_000)
                data = body(name, steps, stream=True)
                try:
                    async with session.post(f"{url}/v1/chat/completions", data=data) as answer:
                        text = await answer.text()
                        found = set(re.findall(r"canary-\d+", text))
                        if answer.status != 200 or "[DONE]" not in text:
                            errors.append(f"{answer.status} {text[:100]}")
                        else:
                            crossed += found != {name}
                        done, last = done + 1, time.monotonic()
                except (aiohttp.ClientError, TimeoutError) as error:
                    errors.append(repr(error))

    async def watch() -> None:
        began = time.monotonic()
        while time.monotonic() < end and done < most:
            halves[time.monotonic() - began > seconds / 2].append(rss())
            await asyncio.sleep(0.5)

    connector = aiohttp.TCPConnector(limit=0)
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        await asyncio.gather(watch(), *(talk(n, session) for n in range(conversations)))
    first, second = (max(half[len(half) // 2 :], default=0) for half in halves)
    return {"requests": done, "took": last - start, "errors": len(errors),
            "examples": errors[:3], "crossed": crossed,
            "rss_first_mb": first / 1e6, "rss_second_mb": second / 1e6,
            "growth": second / max(first, 1) - 1}  # fmt: skip


# --- overhead ------------------------------------------------------------------------------------


async def alternated(
    urls: dict[str, str], pairs: int, cpus: dict[str, Callable[[], float]]
) -> tuple[dict[str, list[float]], dict[str, list[float]], int]:
    """Each body goes through all proxies, each of them first in turn, and extends the one before.

    Milliseconds of each request, milliseconds of processor time up to the next one where a clock
    is given, and the bytes of the last body.
    """
    steps = [message for n in range(100) for message in step(n, 10_000)]
    times: dict[str, list[float]] = {name: [] for name in urls}
    marks: dict[str, list[float]] = {name: [] for name in cpus}
    headers = {"content-type": "application/json"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for pair in range(pairs + 5):
            steps += step(1_000 + pair, 300)
            data = body("canary-1", steps, stream=False)
            names = list(urls)
            for name in names[pair % len(names) :] + names[: pair % len(names)]:
                if pair >= 5 and name in cpus:
                    marks[name].append(cpus[name]())
                began = time.perf_counter()
                async with session.post(f"{urls[name]}/v1/chat/completions", data=data) as answer:
                    await answer.read()
                    assert answer.status == 200, answer.status
                if pair >= 5:
                    times[name].append((time.perf_counter() - began) * 1_000)
        await asyncio.sleep(0.2)
    spent = {
        name: [(b - a) * 1_000 for a, b in pairwise([*rows, cpus[name]()])]
        for name, rows in marks.items()
    }
    return times, spent, len(data)


async def overhead(urls: dict[str, str], pairs: int) -> dict[str, Any]:
    """Paired: each body goes through both proxies, in turns first."""
    times, _, size = await alternated(urls, pairs, {})
    p50 = {name: statistics.median(rows) for name, rows in times.items()}
    return {"bytes": size, **{f"{name}_ms": p50[name] for name in urls},
            "ratio": p50["trimtab"] / p50["bare"]}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--conversations", type=int, default=64)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--only", choices=("load", "overhead"))
    parser.add_argument("--serve", nargs=4, metavar=("KIND", "PORT", "URL", "STORE"))
    args = parser.parse_args()
    if args.serve:
        kind, port, url, store = args.serve
        serve(kind, int(port), url, store)
        return
    provider = Running("upstream", 18_701)
    ours = Running("trimtab", 18_702, provider.url)
    plain = Running("bare", 18_703, provider.url)
    try:
        if args.only != "overhead":
            found = asyncio.run(load(ours.url, ours.rss, args.seconds, args.conversations))
            print("load", json.dumps(found))
        if args.only != "load":
            urls = {"bare": plain.url, "trimtab": ours.url}
            print("overhead", json.dumps(asyncio.run(overhead(urls, args.pairs))))
    finally:
        for one in (ours, plain, provider):
            one.stop()


if __name__ == "__main__":
    main()
