"""What a change to the package costs: two source trees measured in turns, A B A B.

    python bench/paired.py BASE/src NEW/src [--only a,b,e] [--pairs 12]

Each tree has a worker process of its own (``paired_worker.py``) that is told over a pipe what to
run next, so that both see the same noise of the machine.  Milliseconds are processor time of one
new turn of a session with 1,000 messages and about 210k tokens; the ratio is the median of the
ratios of neighbours, and is what to trust on a machine that does other things too.

  a  no edits, dict                   e  the turn that makes a batch of edits
  b  standing edits, dict             f  first sight of the whole conversation
  c  standing edits, bytes            g  proxy, 1 MB bodies, beside one that only passes on
  d  the same request again           h  proxy, 64 concurrent streams
                                      i  whole sessions of 150, 300, 600 and 1,200 turns

``folded``: what is old became a few notes; ``in place``: 450 edits, each at its place.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import aiohttp  # noqa: E402
import proxy as proxies  # noqa: E402

FORMATS = ("anthropic", "openai-chat")
MARKS = (150, 300, 600, 1200)
STEP = 10
"""Turns of a long session that one tree plays before the other does."""
KINDS = {"none": "", "standing": ", folded", "many": ", in place"}
TURNS = {  # letter: name, whether as bytes, must and goal in ms, kinds of edits
    "a": ("no edits, dict", False, 3.0, 2.0, ("none",)),
    "b": ("standing edits, dict", False, 12.0, 6.0, ("standing", "many")),
    "c": ("standing edits, bytes", True, 15.0, 10.0, ("standing", "many")),
}
LOAD = 6 * 64
"""Requests of one load: six turns of each conversation."""
LOOSE = 1.1
"""How many times a turn its repetition may take: two medians of the same are never equal."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    base: float
    new: float
    ratio: float
    must: float | None = None
    goal: float | None = None
    least: bool = False
    """Whether ``must`` bounds the ratio, from below."""

    def __str__(self) -> str:
        must, goal = ("" if x is None else f"{x:g}" for x in (self.must, self.goal))
        missed = self.must is not None and (
            self.ratio < self.must if self.least else self.new > self.must
        )
        sign = "≥" if self.least else "≤"
        return (
            f"  {self.name:48} {self.base:10.2f} {self.new:10.2f} {self.ratio:7.2f} "
            f"{sign + must if must else '':>7} {goal:>5} {'MISSED' if missed else ''}"
        ).rstrip()


def row(
    name: str,
    base: Sequence[float],
    new: Sequence[float],
    must: float | None = None,
    goal: float | None = None,
) -> Row:
    """Medians, and the median of the ratios of neighbours."""
    ratio = statistics.median(b / a for a, b in zip(base, new, strict=True))
    return Row(name, statistics.median(base), statistics.median(new), ratio, must, goal)


# --- workers -------------------------------------------------------------------------------------


class Worker:
    """A source tree in a process of its own."""

    def __init__(self, tree: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0"}
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "paired_worker.py")], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        found = Path(self.ask("where"))
        if tree not in found.parents:
            raise SystemExit(f"{tree} was asked for, but {found} is loaded")

    def tell(self, *what: Any) -> None:
        """Have something run."""
        assert self.process.stdin is not None
        print(json.dumps(what), file=self.process.stdin, flush=True)

    def answer(self) -> Any:
        """What came of it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a worker has ended: see its error above")
        return json.loads(line)

    def ask(self, *what: Any) -> Any:
        """Run something and wait."""
        self.tell(*what)
        return self.answer()

    def stop(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)


class Both:
    """The workers of both trees."""

    def __init__(self, trees: Sequence[Path]) -> None:
        self.workers = [Worker(tree) for tree in trees]

    def together(self, *what: Any) -> list[Any]:
        """At the same time, where nothing is measured."""
        for worker in self.workers:
            worker.tell(*what)
        return [worker.answer() for worker in self.workers]

    def paired(self, rounds: Sequence[Sequence[Any]]) -> tuple[list[Any], list[Any]]:
        """In turns; what the first answers, and what the second does."""
        answers = [[worker.ask(*what) for worker in self.workers] for what in rounds]
        return [pair[0] for pair in answers], [pair[1] for pair in answers]

    def stop(self) -> None:
        """End them."""
        for worker in self.workers:
            worker.stop()


def picked(rows: Sequence[dict[str, float]], key: str) -> list[float]:
    """One number of each."""
    return [found[key] for found in rows]


def turns(both: Both, letters: set[str], pairs: int) -> Iterator[Row]:
    """One new turn, and the same request again."""
    for letter, (name, as_bytes, must, goal, kinds) in TURNS.items():
        if not letters & {letter, "d"}:
            continue
        for kind in kinds:
            for format in FORMATS:
                what = f"{name}{KINDS[kind]}, {format.partition('-')[0]}"
                facts, other = both.together("prepare", format, kind, as_bytes)
                if facts != other:
                    print(f"  ! {what}: {facts} against {other}")
                base, new = both.paired([("turn",)] * (pairs + 2))
                base, new = base[2:], new[2:]
                if picked(base, "at") != picked(new, "at"):
                    print(f"  ! {what}: batches came at other turns")
                times = picked(base, "turn"), picked(new, "turn")
                spent = row(f"{letter} {what}", *times, must=must, goal=goal)
                if letter in letters:
                    yield spent
                if "d" in letters:
                    times = picked(base, "again"), picked(new, "again")
                    yield row(f"d again: {what}", *times, must=round(LOOSE * spent.new, 1))
    both.together("rest")


def batches(both: Both, pairs: int) -> Iterator[Row]:
    """Turns that make a batch of edits."""
    for format, kind in (*((format, "standing") for format in FORMATS), (FORMATS[0], "many")):
        due, other = both.together("find_batches", format, kind)
        name = f"e a batch{KINDS[kind]}, {format.partition('-')[0]}"
        if due != other:
            print(f"  ! {name}: made at {due} against {other}")
        must = 150.0 if kind == "standing" else None
        count = pairs if must else max(pairs // 2, 2)
        base, new = list[Any](), list[Any]()
        for number in range(count):
            both.together("before_cut", format, kind, number)
            one, other = both.paired([("batch",)])
            base, new = base + one, new + other
        yield row(name, picked(base, "batch"), picked(new, "batch"), must)
    both.together("rest")


def first_sight(both: Both, pairs: int) -> Iterator[Row]:
    """``trimtab.fit`` of what was never seen."""
    for kind in ("none", "standing"):
        for format in FORMATS:
            base, new = list[Any](), list[Any]()
            for seed in range(pairs + 1):  # the first one loads modules
                both.together("unseen", format, kind, seed)
                one, other = both.paired([("first_sight", kind)])
                base, new = base + one, new + other
            name = f"f first sight{KINDS[kind]}, {format.partition('-')[0]}"
            yield row(name, picked(base, "first")[1:], picked(new, "first")[1:])


def growth(both: Both) -> Iterator[Row]:
    """All turns of a session, a few of them in turns; the ratio is of the sums."""
    for kind, name in (("none", "no edits"), ("small", "batches")):
        both.together("begin", FORMATS[0], kind, MARKS[-1])
        base, new = both.paired([("go_on", STEP)] * (MARKS[-1] // STEP))
        for mark in MARKS:
            sums = [sum(times[: mark // STEP]) for times in (base, new)]
            yield row(f"i session of {mark} turns, {name}", sums[:1], sums[1:])
    both.together("rest")


# --- proxies -------------------------------------------------------------------------------------


def free_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(trees: Sequence[Path], window: int) -> Iterator[dict[str, proxies.Running]]:
    """A provider, a proxy that only passes on, and ``trimtab proxy`` of both trees."""
    found: dict[str, proxies.Running] = {}
    with tempfile.TemporaryDirectory() as home:
        try:
            found["provider"] = provider = proxies.Running("upstream", free_port())
            found["bare"] = proxies.Running("bare", free_port(), provider.url)
            for name, tree in zip(("base", "new"), trees, strict=True):
                port = free_port()
                found[name] = proxies.Running.of_tree(tree, port, provider.url, window, home)
            yield found
        finally:
            for one in found.values():
                one.stop()


async def edited(url: str, size: int) -> bool:
    """Whether a conversation of so many bytes is made smaller there."""
    steps = [message for n in range(size // 10_000) for message in proxies.step(n, 10_000)]
    data = proxies.body("canary-9", steps, stream=False)
    headers = {"content-type": "application/json"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(f"{url}/v1/chat/completions", data=data) as answer,
    ):
        await answer.read()
        return "x-trimtab" in answer.headers


def big_bodies(trees: Sequence[Path], pairs: int) -> Iterator[Row]:
    """Bodies of 1 MB through both proxies and past them."""
    for window, name in ((1_000_000, "no edits"), (200_000, "edits")):
        with running(trees, window) as all:
            ours = {key: all[key] for key in ("bare", "base", "new")}
            for key in ("base", "new"):
                if asyncio.run(edited(all[key].url, 1_000_000)) != (name == "edits"):
                    raise SystemExit(f"g: the window of {window:,} is the wrong one to try {name}")
            urls = {key: one.url for key, one in ours.items()}
            clocks = {key: one.cpu for key, one in ours.items()}
            times, spent, _ = asyncio.run(proxies.alternated(urls, pairs, clocks))
        for what, found in (("latency", times), ("CPU", spent)):
            yield row(f"g proxy, 1 MB, {name}, {what} ms", found["base"], found["new"])
            base, new = (
                [own / bare for own, bare in zip(found[key], found["bare"], strict=True)]
                for key in ("base", "new")
            )
            yield row(f"g proxy, 1 MB, {name}, {what} × bare", base, new, 3.0, 2.0)


def streams(trees: Sequence[Path], pairs: int) -> Iterator[Row]:
    """64 conversations at once, each answered by a stream; the same requests for both."""
    for window, name in ((1_000_000, "no edits"), (16_000, "edits")):
        rates: dict[str, list[float]] = {"base": [], "new": []}
        costs: dict[str, list[float]] = {"base": [], "new": []}
        with running(trees, window) as all:
            for key in rates:
                if asyncio.run(edited(all[key].url, 100_000)) != (name == "edits"):
                    raise SystemExit(f"h: the window of {window:,} is the wrong one to try {name}")
            for pair in range(pairs + 1):
                for key in rates:
                    one, first = all[key], 100 * (pair + 1)
                    before = one.cpu()
                    most = LOAD if pair else LOAD // 3  # the first load warms it up
                    done = asyncio.run(proxies.load(one.url, one.rss, 60, 64, first, most))
                    if done["errors"] or done["crossed"]:
                        raise SystemExit(f"h: {key}: {done}")
                    if pair:
                        rates[key].append(done["requests"] / done["took"])
                        costs[key].append(1_000 * (one.cpu() - before) / done["requests"])
        found = row(f"h 64 streams, {name}, requests/s", rates["base"], rates["new"])
        yield Row(found.name, found.base, found.new, found.ratio, 0.75, least=True)
        yield row(f"h 64 streams, {name}, CPU ms a request", costs["base"], costs["new"])


# --- all -----------------------------------------------------------------------------------------


def measured(trees: Sequence[Path], letters: set[str], pairs: int) -> Iterator[Row]:
    """Every row that is asked for."""
    few = max(pairs // 4, 1)
    if letters & set("abcdefi"):
        both = Both(trees)
        try:
            if letters & set("abcd"):
                yield from turns(both, letters, pairs)
            if "e" in letters:
                yield from batches(both, 2 * few)
            if "f" in letters:
                yield from first_sight(both, few)
            if "i" in letters:
                yield from growth(both)
        finally:
            both.stop()
    if "g" in letters:
        yield from big_bodies(trees, 3 * pairs)
    if "h" in letters:
        yield from streams(trees, max(few - 1, 1))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("base", type=Path, help="the source tree to compare with")
    parser.add_argument("new", type=Path, help="the source tree that is measured")
    parser.add_argument("--only", default="abcdefghi", help="letters, as in a,b,e")
    parser.add_argument("--pairs", type=int, default=12)
    args = parser.parse_args()
    trees = [args.base.resolve(), args.new.resolve()]
    began = time.monotonic()
    heads = f"{'base':>10} {'new':>10} {'ratio':>7} {'must':>7} {'goal':>5}"
    print(f"  {'medians':48} {heads}")
    letters = set(args.only) - {",", " "}
    for found in measured(trees, letters, args.pairs):
        print(found, flush=True)
    print(f"  {args.pairs} pairs, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
