"""Writers are killed at any moment; whatever left in a request is still there.

    python tests/soak/killed.py --times 100 [--store URL] [--writers 2]

Each time, writers grow conversations through one store and print every handle once it has left in
a request, with a digest of its original; each is sent SIGKILL at a moment drawn uniformly.  Then
the store is opened, read through as ``trimtab doctor`` does, and every handle is recalled.  Knows
the public API.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "support"), str(HERE.parents[1] / "src")]

from trimtab import stores  # noqa: E402

SECONDS = 1.2
"""The latest moment of a kill, after each writer has sent its first handles."""

WRITER = """
import hashlib, json, sys
from long_sessions import KEYWORDS, request
from settings_words import as_keywords
import trimtab
url, seed = sys.argv[1], int(sys.argv[2])
for round in range(10_000):
    session = trimtab.Session(store=url, recall=True, **as_keywords(**KEYWORDS))
    for number in range(4, 40, 2):
        done = session.fit(request(number, 1000 * round + seed))
        for edit in done.report.edits:
            if edit.new:
                text = done.recall(edit.handle).encode("utf-8", "surrogatepass")
                print(json.dumps([edit.handle, hashlib.sha256(text).hexdigest()]), flush=True)
        if number == 20 and not round:
            print("ready", flush=True)
"""


class Outcome(NamedTuple):
    """Kills, handles that had left by then, what was lost or changed, and faults of the store."""

    kills: int
    handles: int
    lost: list[str]
    faults: list[str]


def killed(url: str, times: int, writers: int, seed: int) -> Outcome:
    """Kill writers so often, and look for what they had sent."""
    rng, kills, left = random.Random(seed), 0, dict[str, str]()
    lost: list[str] = []
    faults: list[str] = []
    for time_ in range(times):
        running = [_writer(url, seed + 100 * time_ + n) for n in range(writers)]
        lines = [line for one in running for line in _until_ready(one)]
        for delay, one in sorted((rng.uniform(0, SECONDS), n) for n in range(writers)):
            time.sleep(delay / writers)
            running[one].send_signal(signal.SIGKILL)
            kills += 1
        for one in running:
            lines += one.communicate()[0].splitlines()
        # The last one may have been cut.
        new = dict(json.loads(line) for line in lines if line.rstrip().endswith("]"))
        left |= new
        kept = stores.open(url)
        lost += _lost(kept, new)
        faults += stores.faults(kept.store, lambda tenant, kept=kept: kept)  # type: ignore[misc]
        kept.store.close()
    kept = stores.open(url)
    return Outcome(kills, len(left), lost + _lost(kept, left), faults)


def _writer(url: str, seed: int) -> subprocess.Popen[str]:
    path = os.pathsep.join(
        map(str, (HERE.parent, HERE.parent / "support", HERE.parents[1] / "src"))
    )
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, url, str(seed)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip


def _until_ready(writer: subprocess.Popen[str]) -> list[str]:
    """What it says until it has sent something."""
    assert writer.stdout is not None
    said = list[str]()
    while (line := writer.stdout.readline()) != "ready\n":
        if not line:
            raise RuntimeError("a writer ended by itself")
        said.append(line)
    return said


def _lost(kept: stores.TenantStore, handles: dict[str, str]) -> list[str]:
    found = []
    for handle, digest in handles.items():
        original = kept.original(handle)
        if original is None:
            found.append(f"{handle} is gone")
            continue
        data = original.text.encode("utf-8", "surrogatepass")
        if hashlib.sha256(data).hexdigest() != digest:
            found.append(f"{handle} is another text")
    return found


def main() -> int:
    """Kill, look, print."""
    options = argparse.ArgumentParser()
    options.add_argument("--times", type=int, default=100)
    options.add_argument("--writers", type=int, default=2)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--store", default="")
    args = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = args.store or f"sqlite:///{folder}/store.db"
        done = killed(url, args.times, args.writers, args.seed)
    print(
        f"{done.kills} kills, {done.handles} handles had left: {len(done.lost)} lost, "
        f"{len(done.faults)} faults of the store"
    )
    for line in (*done.lost, *done.faults)[:20]:
        print(f"  {line}")
    return 1 if done.lost or done.faults or not done.handles else 0


if __name__ == "__main__":
    sys.exit(main())
