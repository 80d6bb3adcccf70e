"""What a session of 10,000 messages costs, turn by turn: ``python bench/long.py``.

A made-up coding session grows by a call and its result.  Each of its turns goes through
``trimtab.Session`` and through ``trimtab proxy``, each a process of its own, to the strict
provider.  Milliseconds of processor time of the 150 turns before a mark; what the proxy does after
an answer counts too.  A *cut* is a turn whose request does not begin as the one before.

    python bench/long.py --every 20      # away from the marks only every 20th turn is sent
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from load import our_proxy

import trimtab
from trimtab_lab.testing import StrictProvider

WINDOW = 64_000
TOKENS_A_TURN = 200
BEFORE = 150
"""Turns before a mark."""
MARKS = (0.1, 0.5, 1.0)
"""Where the costs of a turn are told, as shares of all messages."""
PATH, HEADERS = "/v1/messages", {"content-type": "application/json", "x-api-key": "none"}


def messages(number: int) -> list[Any]:
    """So many, a call and its result in turn."""
    from speed import conversation

    found: list[Any] = conversation(number // 2, TOKENS_A_TURN)["messages"]
    return found[:number]


class Judge:
    """The provider, and what it saw of one door."""

    def __init__(self) -> None:
        self.provider = StrictProvider(window=WINDOW)
        self.refused = self.broken = self.cuts = self.most = 0
        self._before: list[Any] = []

    def look(self) -> None:
        """At all requests that were answered since the last look."""
        while self.provider.requests and self.provider.requests[0].status:
            record = self.provider.requests.pop(0)
            sent = record.body["messages"]
            self.refused += bool(record.refusal)
            self.broken += len(record.violations)
            self.cuts += sent[: len(self._before)] != self._before
            self._before, self.most = sent, max(self.most, record.tokens)


def sent(number: int, every: int) -> list[int]:
    """How many messages each turn that is sent has."""
    ends = [int(share * number) // 2 for share in MARKS]
    return [2 * turn + 1 for turn in range(number // 2)
            if turn % every == 0 or any(end - BEFORE <= turn < end for end in ends)]  # fmt: skip


def near(mark: int, times: dict[int, float]) -> list[float]:
    """Of the turns before a mark."""
    return [took for at, took in times.items() if mark - 2 * BEFORE <= at < mark]


def bodies(number: int, turns: list[int]) -> Any:
    """The request of each turn as bytes."""
    joined, wanted = b"", set(turns)
    for at, row in enumerate(messages(number), 1):
        joined += (b"," if at > 1 else b"") + json.dumps(row).encode()
        if at in wanted:
            yield b'{"model":"claude-sonnet-4-5","max_tokens":500,"messages":[' + joined + b"]}"


def post(host: str, body: bytes) -> None:
    """One request; a refusal is counted where it is made."""
    connection = http.client.HTTPConnection(host, timeout=600)
    connection.request("POST", PATH, body, HEADERS)
    connection.getresponse().read()
    connection.close()


def through_session(url: str, number: int, turns: list[int]) -> None:
    """In a process of its own: fit and send each turn; prints milliseconds and memory."""
    session, rows, times = trimtab.Session(window=WINDOW), messages(number), list[float]()
    host = url.removeprefix("http://")
    for at in turns:
        request = {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": rows[:at]}
        began = time.process_time()
        done = session.fit(request)
        times.append(1_000 * (time.process_time() - began))
        post(host, json.dumps(done.request).encode())
    print(json.dumps({"times": times, "bytes": resident("self")}))


def resident(process: int | str) -> int:
    """Bytes of memory that a process has now."""
    status = Path(f"/proc/{process}/status").read_text("utf-8")
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


def session(number: int, every: int) -> tuple[Judge, list[float], int]:
    """What the provider saw, milliseconds of each turn, bytes of memory at the end."""
    judge = Judge()
    command = [sys.executable, __file__, "--messages", str(number), "--every", str(every), "--play"]
    with judge.provider as provider:
        with subprocess.Popen([*command, provider.url], stdout=subprocess.PIPE) as child:
            while child.poll() is None:
                judge.look()
                time.sleep(0.005)
            assert child.stdout is not None
            told = json.loads(child.stdout.read())
        judge.look()
    return judge, told["times"], told["bytes"]


def proxy(number: int, every: int) -> tuple[Judge, list[float], int]:
    """The same through ``trimtab proxy``."""
    judge, marks = Judge(), list[float]()
    options = ("--window", str(WINDOW), "--store", "memory:")
    with (
        judge.provider as provider,
        tempfile.TemporaryDirectory() as home,
        our_proxy(18_781, provider.url, home, *options) as ours,
    ):
        for body in bodies(number, sent(number, every)):
            marks.append(ours.cpu())
            post(ours.url.removeprefix("http://"), body)
            judge.look()
        time.sleep(1)
        marks.append(ours.cpu())
        size = resident(ours.process.pid)
    return judge, [1_000 * (after - before) for before, after in pairwise(marks)], size


Door = Callable[[int, int], tuple[Judge, list[float], int]]


def main() -> None:
    """The tables."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--messages", type=int, default=10_000)
    options.add_argument("--every", type=int, default=1)
    options.add_argument("--play", metavar="URL", help=argparse.SUPPRESS)
    asked = options.parse_args()
    turns = sent(asked.messages, asked.every)
    if asked.play:
        through_session(asked.play, asked.messages, turns)
        return
    doors: dict[str, Door] = {"Session": session, "proxy": proxy}
    found = {name: play(asked.messages, asked.every) for name, play in doors.items()}
    size = sum(len(json.dumps(row)) for row in messages(asked.messages))
    print(f"{asked.messages:,} messages, {size / 1e6:.1f} MB at the end, a window of {WINDOW:,}; "
          f"{len(turns):,} turns sent")  # fmt: skip
    print("| ms of processor time a turn, at | Session: median | p99 | proxy: median | p99 |")
    print("|---|---|---|---|---|")
    for share in MARKS:
        mark = int(share * asked.messages)
        row = ""
        for _, times, _ in found.values():
            own = near(mark, dict(zip(turns, times, strict=True)))
            row += f" {statistics.median(own):.1f} | {statistics.quantiles(own, n=100)[98]:.0f} |"
        print(f"| {mark:,} messages |{row}")
    print("\n| | cuts | refused | rules broken | most tokens | memory at the end | of all turns |")
    print("|---|---|---|---|---|---|---|")
    for name, (judge, times, size) in found.items():
        print(f"| {name} | {judge.cuts} | {judge.refused} | {judge.broken} | {judge.most:,} "
              f"| {size / 1e6:.0f} MB | {sum(times) / 1_000:.0f} s |")  # fmt: skip


if __name__ == "__main__":
    main()
