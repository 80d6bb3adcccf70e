"""Prints what ``trimtab batch`` costs: records and tokens a second and core, and its memory.

    python bench/batch.py                         # 24 MB of generated sessions
    python bench/batch.py --memory --megabytes 1000 --window 100000   # is memory flat?
    python bench/batch.py --source FILE.jsonl     # a corpus of your own
    python bench/batch.py --killed --megabytes 10000   # two jobs, killed (SIGKILL) half way

The floor is the same loop with ``measure`` in the place of ``fit``: read, parse, count, write.
CPU time, one process, each run in a process of its own.  Generated sessions are as long as recorded
ones: a third above 20k tokens, one in 14 above 100k.  ``--killed`` tells wall time, memory of all
processes together, and whether a file in the middle comes out as in a run of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

SRC = Path(__file__).resolve().parents[1] / "src"
sys.path.insert(0, str(SRC))

WORDS = [
    "request", "cache", "window", "token", "parser", "result", "session", "error", "index", "value",
    "return", "import", "class", "journal", "module", "branch", "commit", "header", "stream",
]  # fmt: skip
LINE_TOKENS, CALL_LINES = 20, 30
_DRAW = random.Random(0)
PHRASES = [" ".join(_DRAW.choices(WORDS, k=9)) for _ in range(50_000)]
FILE_MB = 100
"""Of a corpus that is killed."""


def session(number: int) -> dict[str, Any]:
    """A session of a coding agent; tokens are drawn log-normally around 8,600."""
    draw = random.Random(number)
    steps = max(1, round(math.exp(draw.gauss(9.06, 1.69)) / (LINE_TOKENS * CALL_LINES)))
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Mend fault {number}."}]
    for step in range(min(steps, 800)):
        lines = [
            f"src/{WORDS[at % 19]}_{step}.py:{at % 997}: {phrase}"
            for at, phrase in enumerate(draw.choices(PHRASES, k=CALL_LINES), draw.randrange(9_999))
        ]
        call = {"type": "tool_use", "id": f"t{step}", "name": "Grep", "input": {"n": step}}
        result = {"type": "tool_result", "tool_use_id": f"t{step}", "content": "\n".join(lines)}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return {"model": "gpt-5.1", "messages": messages}


def generate(path: Path, megabytes: float, number: int = 0) -> int:
    """Sessions from this number on until the file has this size; the number of the next."""
    with path.open("w") as file:
        while file.tell() < megabytes * 1e6:
            file.write(json.dumps(session(number)) + "\n")
            number += 1
    return number


def floor(source: str, out: str) -> dict[str, Any]:
    """Read, parse, count and write each line."""
    import trimtab

    records = tokens = 0
    with open(source, "rb") as lines, open(out, "wb") as written:
        for line in lines:
            tokens += trimtab.measure(line, counter="o200k").total
            written.write(line)
            records += 1
        written.flush()
        os.fsync(written.fileno())
    return {"records": records, "tokens": tokens}


def fitted(source: str, out: str, window: int) -> dict[str, Any]:
    """What ``trimtab batch --jobs 1`` does."""
    import trimtab
    from trimtab_lab import batch

    settings = trimtab.Settings(window=window, reserve=0, counter="o200k")
    told = batch.run(source, out, settings=settings, jobs=1).manifest
    distinct = told["distinct"]
    return {
        "records": told["records"]["read"], "tokens": distinct["tokens_before"],
        "after": distinct["tokens_after"], "changed": distinct["changed"],
        "failed": told["records"]["failed"],
    }  # fmt: skip


def one(what: str, source: str, window: int) -> None:
    """In a process of its own: one run, its figures as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        out = f"{folder}/out"
        found = floor(source, out) if what == "floor" else fitted(source, out, window)
        found["seconds"] = time.process_time() - began
    found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(found))


def measured(what: str, source: Path, window: int) -> dict[str, Any]:
    """``one``, somewhere else."""
    command = [sys.executable, __file__, "--one", what, "--source", str(source)]
    done = subprocess.run([*command, "--window", str(window)], stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def memory(source: Path, window: int) -> None:
    """Print the most resident memory of ``trimtab batch`` in each tenth of its time (Linux)."""
    command = [sys.executable, __file__, "--one", "batch", "--source", str(source)]
    samples = list[int]()
    with subprocess.Popen(
        [*command, "--window", str(window)], stdout=subprocess.PIPE, text=True
    ) as process:
        while process.poll() is None:
            pages = Path(f"/proc/{process.pid}/statm").read_text().split()
            samples.append(int(pages[1]) if len(pages) > 1 else 0)
            time.sleep(0.25)
        assert process.stdout is not None
        done = json.loads(process.stdout.read())
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}")
    print(f"{done['records']:,} records, {done['tokens']:,} tokens, {len(samples):,} samples")
    print("| tenth of the time | most resident memory |\n|---|---|")
    size = os.sysconf("SC_PAGE_SIZE")
    for tenth in range(10):
        own = samples[len(samples) * tenth // 10 : len(samples) * (tenth + 1) // 10]
        print(f"| {tenth + 1} | {max(own, default=0) * size / 2**20:,.0f} MB |")


class Watched:
    """``trimtab batch`` with two jobs, in a group of processes that can be killed."""

    def __init__(self, source: Path, out: Path, window: int) -> None:
        command = [sys.executable, "-m", "trimtab", "batch", str(source), str(out)]
        self._process = subprocess.Popen(
            [*command, "--window", str(window), "--jobs", "2"], start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(SRC)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self.seconds = self.cpu = 0.0
        self.megabytes = list[float]()

    def until(self, enough: Callable[[], bool]) -> int | None:
        """Look at it twice a second until it ends or there is enough, and then kill it."""
        began = time.monotonic()
        while (code := self._process.poll()) is None and not enough():
            self._look()
            time.sleep(0.5)
        if code is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self.seconds = time.monotonic() - began
        return code

    def _look(self) -> None:
        pages = ticks = 0
        for place in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                row = place.read_text("utf-8").rpartition(")")[2].split()
                if int(row[2]) == self._process.pid:
                    pages, ticks = pages + int(row[21]), ticks + int(row[11]) + int(row[12])
        self.megabytes.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
        self.cpu = max(self.cpu, ticks / os.sysconf("SC_CLK_TCK"))


def killed(folder: Path, megabytes: float, window: int) -> None:
    """Make a corpus, fit it with a SIGKILL half way, compare a file with a run of its own."""
    source, out = folder / "corpus", folder / "out"
    source.mkdir()
    firsts = [0]
    while sum(one.stat().st_size for one in source.iterdir()) < megabytes * 1e6:
        file = source / f"{len(firsts):05}.jsonl"
        firsts.append(generate(file, min(FILE_MB, megabytes), firsts[-1]))
    files = sorted(source.iterdir())
    size = sum(one.stat().st_size for one in files)

    def half() -> bool:
        return sum(one.stat().st_size for one in out.glob("part-*")) > 0.4 * size

    runs = [Watched(source, out, window)]
    assert runs[0].until(half) is None, "it ended before it was killed"
    finished = len(list(out.glob("unfinished/*.done.json")))
    runs.append(Watched(source, out, window))
    code = runs[1].until(bool)
    middle = len(files) // 2
    alone = Watched(files[middle], folder / "alone", window)
    alone.until(bool)
    wanted = list(_lines(folder / "alone"))
    same = list(islice(_lines(out), firsts[middle], firsts[middle] + len(wanted))) == wanted
    minutes, cpu = sum(one.seconds for one in runs) / 60, sum(one.cpu for one in runs)
    told = json.loads((out / "manifest.json").read_text("utf-8"))["records"]
    print(f"{size / 1e9:.2f} GB in {len(files)} files, window {window:,}, 2 jobs")
    print(f"killed after {runs[0].seconds:.0f} s with {finished} shards finished, ended with {code}"
          f" after {runs[1].seconds:.0f} s more: {told}")  # fmt: skip
    print(f"{size / 1e9 / minutes:.3f} GB a minute, {cpu:,.0f} s of processor time, "
          f"{size / 1e6 / cpu:.1f} MB a second of it")  # fmt: skip
    print(f"{files[middle].name} alone: {len(wanted):,} records, the same bytes: {same}")
    print("| quarter of the second run | most memory, all processes |\n|---|---|")
    samples = runs[1].megabytes
    for at in range(4):
        own = samples[len(samples) * at // 4 : len(samples) * (at + 1) // 4]
        print(f"| {at + 1} | {max(own, default=0.0):,.0f} MB |")


def _lines(out: Path) -> Iterator[bytes]:
    for part in sorted(out.glob("part-*")):
        with part.open("rb") as lines:
            yield from lines


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--megabytes", type=float, default=24)
    options.add_argument("--source", help="JSON lines")
    options.add_argument("--window", type=int, action="append")
    options.add_argument("--memory", action="store_true", help="its memory over time, no table")
    options.add_argument("--killed", action="store_true", help="two jobs, killed half way")
    options.add_argument("--one", choices=("floor", "batch"), help=argparse.SUPPRESS)
    args = options.parse_args()
    if args.one:
        one(args.one, args.source, args.window[0])
        return
    with tempfile.TemporaryDirectory() as folder:
        if args.killed:
            killed(Path(folder), args.megabytes, (args.window or [100_000])[0])
            return
        source = Path(args.source) if args.source else Path(folder) / "corpus.jsonl"
        if not args.source:
            generate(source, args.megabytes)
        size = source.stat().st_size
        if args.memory:
            print(f"{size / 1e6:,.0f} MB of input")
            for window in args.window or [100_000]:
                memory(source, window)
            return
        least = measured("floor", source, 1)
        print(f"{least['records']:,} records, {least['tokens']:,} tokens, {size / 1e6:,.0f} MB")
        print("| | changed | records/s | tokens/s | MB/s | × floor | peak memory |")
        print("|---|---|---|---|---|---|---|")
        _row("floor: read, count, write", least, least, size, "")
        for window in args.window or [32_000, 100_000, 200_000]:
            done = measured("batch", source, window)
            share = f"{done['changed'] / done['records']:.0%}"
            _row(f"window {window:,}", done, least, size, share)


def _row(name: str, done: dict[str, Any], least: dict[str, Any], size: int, share: str) -> None:
    seconds = done["seconds"]
    print(
        f"| {name} | {share} | {done['records'] / seconds:,.0f} "
        f"| {least['tokens'] / seconds:,.0f} | {size / seconds / 1e6:,.1f} "
        f"| {seconds / least['seconds']:.1f} | {done['peak_mb']:,.0f} MB |",
        flush=True,
    )


if __name__ == "__main__":
    main()
