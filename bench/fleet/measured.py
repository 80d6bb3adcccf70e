"""Two replicas that serve made-up conversations of recorded shapes through one store, counted."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "bench")]

from speed import WORDS  # noqa: E402

import trimtab  # noqa: E402
from fleet.model import MAX_A_TURN, WINDOW  # noqa: E402
from trimtab import stores  # noqa: E402
from trimtab.errors import StoreError  # noqa: E402
from trimtab.sessions import conversation_store  # noqa: E402

READS = ("read", "fact", "facts", "original", "handles")
TOKENS_A_LINE = 16


class Counting:
    """A store whose calls and bytes are counted, and which is down when it is told to be."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.down, self.counts = inner, False, Counter[str]()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if name not in (*READS, "write"):
            return found

        def call(*args: Any, **keywords: Any) -> Any:
            if self.down:
                raise StoreError("down")
            done = found(*args, **keywords)
            if name == "write":
                batch = args[1]
                kind = "writes" if batch.conversation else "writes of facts"
                rows = (*batch.entries, *batch.originals)
                self.counts["bytes"] += sum(len(data) for _, data in rows)
                self.counts["batches"] += bool(batch.conversation)
            else:
                kind = "reads"
            self.counts[kind] += 1
            return done

        return call


def step(number: int, tokens: int, seed: int) -> list[dict[str, Any]]:
    """A call and its result, of about so many tokens."""
    rng = random.Random(f"{seed} {number}")
    lines = [
        f"src/{rng.choice(WORDS)}_{rng.randrange(999)}.py:{rng.randrange(999)}: "
        + " ".join(rng.choices(WORDS, k=7))
        for _ in range(max(1, tokens // TOKENS_A_LINE))
    ]
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "grep", "input": {"n": number}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "\n".join(lines)}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def measure(
    url: str, shapes: list[list[int]], seed: int, *, replicas: int = 2, outage: bool = False
) -> dict[str, Any]:
    """Play each shape once; a random replica serves each turn.  ``outage``: in the middle third of
    each conversation the store is down."""
    conversation_store.AGAIN_SECONDS = 0.0  # turns stand for time
    rng = random.Random(seed)
    tenant = f"fleet-{uuid4().hex}"
    backs = [Counting(stores.open_store(url)) for _ in range(replicas)]
    sessions = [
        trimtab.Session(window=WINDOW, store=back, tenant=tenant,
                        settings=trimtab.Settings(counter="o200k"))
        for back in backs
    ]  # fmt: skip
    total = Counter[str]()
    cpu, walls, served = 0.0, list[float](), list[list[int]]()
    rows = list[Counter[str]]()
    for number, shape in enumerate(shapes):
        picks = [rng.randrange(replicas) for _ in shape]
        served.append(picks)
        third = range(len(shape) // 3, 2 * len(shape) // 3) if outage else range(0)
        messages: list[Any] = [{"role": "user", "content": f"Fleet {seed}, number {number}: go."}]
        before: list[Any] = []
        started = sum((back.counts for back in backs), Counter[str]())
        for turn, growth in enumerate(shape):
            messages += step(turn, min(growth, MAX_A_TURN), 1_000 * seed + number)
            for back in backs:
                back.down = turn in third
            session = sessions[picks[turn]]
            began, wall = time.process_time(), time.perf_counter()
            done = session.fit({"model": "claude-sonnet-4-5", "max_tokens": 500,
                                "messages": list(messages)})  # fmt: skip
            cpu += time.process_time() - began
            walls.append(time.perf_counter() - wall)
            sent = [json.dumps(message) for message in done.request["messages"]]
            total["breaks"] += bool(turn) and sent[: len(before)] != before
            total["turns"] += 1
            total["arrived"] += done.report.tokens_before
            total["edited"] += bool(done.report.edits)
            before = sent
            if third and turn == third.stop - 1:
                for back, one in zip(backs, sessions, strict=True):
                    back.down = False
                    _flushed(one)
            _idle(session)
        rows.append(sum((back.counts for back in backs), Counter[str]()) - started)
    for one in sessions:
        _flushed(one)
    for back in backs:
        total.update(back.counts)
    walls.sort()
    return {
        **total, "cpu_seconds": cpu, "median_ms": 1000 * walls[len(walls) // 2],
        "p99_ms": 1000 * walls[int(0.99 * len(walls))], "served": served, "rows": rows,
    }  # fmt: skip


def _flushed(session: Any) -> None:
    session._conversations.writer.flush()


def _idle(session: Any) -> None:
    """Until what it does in the background is done: in a fleet other turns come between."""
    queue = session._conversations.writer._queue
    while queue.jobs:
        if any(job.error for job in queue.jobs):
            return
        time.sleep(0.0002)
