"""A day of pauses: the proxy with a store in a file, on a clock that tests move.

    python tests/soak/pauses.py --hours 24 --pause 15

After each request so much time passes that the store's thread ends, as it does after ten idle
seconds.  Prints how many descriptors and threads the process has meanwhile; 1 where they grow.
The process may have 64 descriptors, so that it cannot hide a leak.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

HERE = Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from proxies import ask, proxied, settled  # noqa: E402

from trimtab.stores import writer  # noqa: E402
from trimtab_lab.testing import StrictProvider  # noqa: E402

DESCRIPTORS = 64
SPREAD = 4
"""So many more than at first are no leak: SQLite keeps a few for its locks, a server accepts."""
WARM_UP = 5
"""Requests after which connections and worker threads are all there."""


class Clock:
    """The time of the store's thread; it passes when ``advance`` says so."""

    def __init__(self) -> None:
        self.now = 0.0
        self._conditions: list[_Condition] = []

    def condition(self) -> _Condition:
        made = _Condition(self)
        self._conditions.append(made)
        return made

    def advance(self, seconds: float) -> None:
        self.now += seconds
        for condition in self._conditions:
            with condition:
                condition.tick()


class _Condition(threading.Condition):
    """A condition whose waits end by the clock's time."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._told = 0

    def wait(self, timeout: float | None = None) -> bool:
        told, until = self._told, self._clock.now + (timeout or 0)
        while self._told == told and (timeout is None or self._clock.now < until):
            super().wait(1.0)
        return self._told != told

    def notify_all(self) -> None:
        self._told += 1
        super().notify_all()

    def tick(self) -> None:
        """Time has passed; nothing has happened."""
        super().notify_all()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def history(turns: int) -> bytes:
    """A conversation that has to be cut in a window of 3,000."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for turn in range(turns):
        function = {"name": "read", "arguments": "{}"}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        text = " ".join(str(turn + number * 7919) for number in range(400))
        messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": text})
    return json.dumps({"model": "gpt-5.1", "messages": messages}).encode()


def until(true: Any, what: str) -> None:
    end = time.monotonic() + 20
    while not true():
        if time.monotonic() > end:
            raise SystemExit(f"waited for {what}")
        time.sleep(0.0005)


def ended_by(clock: Clock, queue: Any) -> bool:
    """Whether the store's thread has ended; what the proxy writes by itself meanwhile begins its
    idle seconds again, so time goes on."""
    if queue.thread is not None:
        clock.advance(0.1)
    return queue.thread is None


def day(hours: float, pause: float, folder: str) -> tuple[int, list[tuple[int, int]]]:
    """How often the store's thread ended, and descriptors with threads after each request."""
    clock = Clock()
    writer.time = SimpleNamespace(monotonic=lambda: clock.now)  # type: ignore[assignment]
    writer.threading = SimpleNamespace(  # type: ignore[assignment]
        Condition=clock.condition, Thread=threading.Thread, current_thread=threading.current_thread,
    )  # fmt: skip
    make = writer.WriteQueue
    writer.WriteQueue = lambda: make(changed=clock.condition())  # type: ignore[assignment,misc]
    bodies = [history(turns) for turns in range(1, 13)]  # each day's work begins again
    counts, ended = list[tuple[int, int]](), 0
    with (
        StrictProvider() as provider,
        proxied(provider.url, window=3_000, store=f"sqlite:///{folder}/proxy.db") as server,
    ):
        path, headers = "/v1/chat/completions", {"content-type": "application/json"}
        while clock.now < hours * 3600:
            body = bodies[len(counts) % len(bodies)]
            status, _, said = ask(server.url, "POST", path, body, headers)
            assert status == 200, said
            settled(server)
            clock.advance(3.0)  # what may be kept later is kept
            [queue] = list(writer._queues.values())
            until(lambda: not (queue.jobs or queue.later), "the store")  # noqa: B023
            clock.advance(pause - 3.0)
            until(lambda: ended_by(clock, queue), "the end of the store's thread")  # noqa: B023
            ended += 1
            provider.requests.clear()
            gc.collect(0)
            counts.append((descriptors(), threading.active_count()))
    return ended, counts


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--pause", type=float, default=15.0, help="seconds after each request")
    args = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    with tempfile.TemporaryDirectory() as folder:
        ended, counts = day(args.hours, args.pause, folder)
    (files, threads), later = counts[WARM_UP], counts[WARM_UP:]
    most, max_threads = (max(one[at] for one in later) for at in (0, 1))
    print(
        f"{args.hours:g} h in pauses of {args.pause:g} s: {len(counts):,} requests, the store's "
        f"thread ended {ended:,} times; descriptors {files} at first, {most} at most, "
        f"{later[-1][0]} at the end; threads {threads}, {max_threads}, {later[-1][1]}"
    )
    return int(most > files + SPREAD or max_threads > threads + SPREAD)


if __name__ == "__main__":
    sys.exit(main())
