"""Measures two replicas, fits the model to one run, checks it on another, simulates a fleet.

    python -m fleet measure        (in bench/; starts a Redis and a PostgreSQL of its own)
    python -m fleet simulate [--conversations 1000000] [--replicas 100]

    python -m fleet figures        (the tables of docs/scale.md, from what those two wrote)

The first two write bench/results/fleet-*.json and print it.  Made-up conversations of the shapes in
bench/results/shapes.json, window 32k.  Seeds are fixed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("src", "bench", "tests/support")]

from fleet import shapes  # noqa: E402
from fleet.measured import measure  # noqa: E402
from fleet.model import Constants, balanced, play  # noqa: E402

MEASURED = ROOT / "bench" / "results" / "fleet-measured.json"
SIMULATED = ROOT / "bench" / "results" / "fleet-simulated.json"
TURNS = 80
"""Of a measured conversation, at most."""
KEY_SHARE = "share of reads at a tenant's own key"
DRAWS = 20
"""Plays of each shape in the simulation."""
COMPARED = ("reads", "writes", "batches", "breaks", "bytes")


def drawn(seed: int, count: int) -> list[list[int]]:
    """Shapes to measure: half of those that outgrow the window."""
    rng, all_shapes = random.Random(seed), shapes.load()
    long = [shape for shape in all_shapes if sum(shape[:TURNS]) > 40_000]
    picked = rng.sample(long, count // 2) + rng.sample(all_shapes, count - count // 2)
    return [shape[:TURNS] for shape in picked]


def modelled(
    picked: list[list[int]], served: list[list[int]], constants: Constants
) -> list[Counter[str]]:
    """The model's counts of the same conversations, served by the same replicas."""
    return [play(shape, who, constants) for shape, who in zip(picked, served, strict=True)]


def fitted(picked: list[list[int]], found: dict[str, Any]) -> Constants:
    """Where batches begin and end, then what they keep, as one run had it."""
    best, least = Constants(), 10.0**12
    for trigger in (0.92, 0.94, 0.96, 0.98, 1.0):
        for target in (0.66, 0.69, 0.72, 0.75, 0.78, 0.81):
            tried = Constants(trigger, target)
            rows = modelled(picked, found["served"], tried)
            apart = [a["batches"] - b["batches"] for a, b in zip(rows, found["rows"], strict=True)]
            error = abs(sum(apart)) + 0.1 * sum(map(abs, apart))
            best, least = (tried, error) if error < least else (best, least)
    rows = modelled(picked, found["served"], best)
    xx = xy = yy = xz = yz = 0.0  # least squares of bytes over batches and tokens cut
    for row, real in zip(rows, found["rows"], strict=True):
        x, y, z = row["batches"], row["cut"], real["bytes"]
        xx, xy, yy, xz, yz = xx + x * x, xy + x * y, yy + y * y, xz + x * z, yz + y * z
    split = xx * yy - xy * xy
    a, b = ((xz * yy - yz * xy) / split, (yz * xx - xz * xy) / split) if split else (0.0, xz / xy)
    return Constants(best.trigger, best.target, a, b)


def cpu_of(group: int) -> float:
    """CPU seconds of a group of processes so far."""
    total = 0
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            row = place.read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if group in (int(row[1]), int(row[2])):  # PostgreSQL's children have groups of their own
            total += sum(map(int, row[11:15]))  # its own, and those of children that ended
    return total / os.sysconf("SC_CLK_TCK")


def measured(count: int) -> dict[str, Any]:
    """Two replicas on each server: one run to fit to, one to check on, one with an outage."""
    from own_servers import own_postgresql, own_redis

    result: dict[str, Any] = {"conversations": count}
    with tempfile.TemporaryDirectory() as folder, own_redis(Path(folder)) as redis:
        first = drawn(1, count)
        before = cpu_of(redis.process.pid)
        found = measure(redis.url, first, 1)
        constants = fitted(first, found)
        result["constants"] = asdict(constants)
        result["redis"] = served_by(found, cpu_of(redis.process.pid) - before)
        result["redis"]["memory_a_byte"] = _redis_memory(redis.url) / found["bytes"]
        picked = drawn(2, count)
        real = measure(redis.url, picked, 2)
        model = sum(modelled(picked, real["served"], constants), Counter[str]())
        result["check"] = {
            key: {"measured": real[key], "model": model[key],
                  "apart": round(model[key] / max(real[key], 1) - 1, 3)}
            for key in COMPARED
        }  # fmt: skip
        down = measure(redis.url, picked, 2, outage=True)
        result["store down"] = {
            "breaks": down["breaks"], "breaks otherwise": real["breaks"], "turns": down["turns"],
        }  # fmt: skip
    with own_postgresql() as postgresql:
        before = cpu_of(postgresql.process.pid)
        found = measure(postgresql.url, first, 1)
        time.sleep(1)
        result["postgresql"] = served_by(found, cpu_of(postgresql.process.pid) - before)
        result["postgresql"]["disk_a_byte"] = _postgresql_disk(postgresql.url) / found["bytes"]
    return result


def served_by(found: dict[str, Any], server_cpu: float) -> dict[str, float]:
    """What a turn came to."""
    turns = found["turns"]
    return {
        "turns": turns, "batches_a_turn": found["batches"] / turns,
        "reads_a_turn": found["reads"] / turns, "writes_a_turn": found["writes"] / turns,
        "bytes_a_batch": found["bytes"] / found["batches"],
        "replica_cpu_ms_a_turn": 1000 * found["cpu_seconds"] / turns,
        "server_cpu_ms_a_turn": 1000 * server_cpu / turns,
        "median_ms": found["median_ms"], "p99_ms": found["p99_ms"],
    }  # fmt: skip


def _redis_memory(url: str) -> float:
    import redis

    client = redis.Redis.from_url(url)
    return float(sum(client.memory_usage(key) or 0 for key in client.scan_iter(count=1_000)))


def _postgresql_disk(url: str) -> float:
    import psycopg

    with psycopg.connect(url) as db:
        row = db.execute(
            "SELECT SUM(pg_total_relation_size(c.oid)) FROM pg_class c "
            "WHERE relname IN ('trimtab_entries', 'trimtab_originals')"
        ).fetchone()
    assert row is not None
    return float(row[0])


def simulated(conversations: int, replicas: int) -> dict[str, Any]:
    """Conversations of a fleet, spread at random or kept to one replica each; of one in ten the
    replica dies half way.  Each shape is played ``DRAWS`` times, and all are drawn from those."""
    kept = json.loads(MEASURED.read_text("utf-8"))["constants"]
    constants, all_shapes = Constants(**kept), shapes.load()
    result: dict[str, Any] = {"conversations": conversations, "replicas": replicas}
    sizes = Counter[int]()
    for name, sticky in (("random", False), ("sticky", True)):
        rng, total, dead = random.Random(7), Counter[str](), 0
        plays = list[Counter[str]]()
        for shape in all_shapes:
            for number in range(DRAWS):
                who = balanced(rng, len(shape), replicas, sticky)
                if number % 10 == 0:
                    at = len(shape) // 2
                    who[at:] = balanced(rng, len(shape) - at, replicas, sticky)
                plays.append(play(shape, who, constants, kept=sticky))
        drawn_plays = Counter(rng.choices(range(len(plays)), k=conversations))
        for index, many in drawn_plays.items():
            total.update({key: many * value for key, value in plays[index].items()})
            dead += many * (index % 10 == 0)
            if sticky:
                sizes[plays[index]["bytes"]] += many
        result[name] = {
            "turns": total["turns"], "reads a turn": round(total["reads"] / total["turns"], 3),
            "writes a turn": round(total["writes"] / total["turns"], 4),
            "batches": total["batches"], "replica died": dead,
            "breaks by failover": total["breaks"] - total["batches"],
        }  # fmt: skip
    result["bytes kept"] = {
        "all": sum(size * many for size, many in sizes.items()),
        "mean": round(sum(size * many for size, many in sizes.items()) / conversations),
        **{f"p{share}": _percentile(sizes, share / 100) for share in (50, 90, 99)},
    }
    turns = result["sticky"]["turns"]
    result[KEY_SHARE] = round(1 / result["sticky"]["reads a turn"], 3)
    result["turns a conversation"] = round(turns / conversations, 1)
    return result


def _percentile(sizes: Counter[int], share: float) -> int:
    left = share * sizes.total()
    for size in sorted(sizes):
        left -= sizes[size]
        if left <= 0:
            return size
    return max(sizes)


def figures() -> str:
    """The tables of docs/scale.md."""
    real = json.loads(MEASURED.read_text("utf-8"))
    fleet = json.loads(SIMULATED.read_text("utf-8"))
    both = [real["redis"], real["postgresql"]]
    rows = [
        ("| measured, a turn | Redis | PostgreSQL |", "{}"), ("|---|---|---|", "{}"),
        ("reads of the store", "{reads_a_turn:.2f}"), ("writes", "{writes_a_turn:.2f}"),
        ("cuts", "{batches_a_turn:.2f}"),
        ("bytes kept by a batch", "{bytes_a_batch:,.0f}"),
        ("CPU of the replica, ms", "{replica_cpu_ms_a_turn:.1f}"),
        ("CPU of the server, ms", "{server_cpu_ms_a_turn:.2f}"),
    ]  # fmt: skip
    lines = [name if name.startswith("|") else
             f"| {name} | " + " | ".join(form.format(**one) for one in both) + " |"
             for name, form in rows]  # fmt: skip
    a_core = [1000 / one["replica_cpu_ms_a_turn"] for one in both]
    a_server = [1000 / one["server_cpu_ms_a_turn"] for one in both]
    lines += [
        f"| *arithmetic*: turns a second, one core of replicas | {a_core[0]:,.0f} "
        f"| {a_core[1]:,.0f} |",
        f"| *arithmetic*: turns a second, one core of the server | {a_server[0]:,.0f} "
        f"| {a_server[1]:,.0f} |",
        "| memory or disk for a byte that is kept "
        f"| {real['redis']['memory_a_byte']:.2f} | {real['postgresql']['disk_a_byte']:.2f} |",
        "", "| two replicas, other conversations | measured | model | apart |", "|---|---|---|---|",
    ]  # fmt: skip
    lines += [
        f"| {key} | {one['measured']:,} | {one['model']:,} | {100 * one['apart']:+.1f} % |"
        for key, one in real["check"].items()
    ]
    down = real["store down"]
    lines += [
        "", f"The same {down['turns']:,} turns with the store down in a third of each: "
        f"{down['breaks']:,} changes of the beginning instead of {down['breaks otherwise']:,}.",
        "", f"| simulated, {fleet['conversations']:,} conversations | any of {fleet['replicas']} "
        "replicas serves a turn | one replica a conversation |", "|---|---|---|",
    ]  # fmt: skip
    ways = [fleet["random"], fleet["sticky"]]
    for key in ways[0]:
        lines.append(f"| {key} | " + " | ".join(f"{way[key]:,}" for way in ways) + " |")
    kept = fleet["bytes kept"]
    lines += [
        "", "| bytes kept a conversation | mean | p50 | p90 | p99 |", "|---|---|---|---|---|",
        f"| | {kept['mean']:,} | {kept['p50']:,} | {kept['p90']:,} | {kept['p99']:,} |",
        "", f"All of them: {kept['all'] / 1e9:,.0f} GB. Of the reads of a tenant "
        f"{100 * fleet[KEY_SHARE]:.0f} % go to its own key (how the provider counts).",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(prog="python -m fleet")
    options.add_argument("what", choices=("measure", "simulate", "figures"))
    options.add_argument("--measured", type=int, default=16, metavar="CONVERSATIONS")
    options.add_argument("--conversations", type=int, default=1_000_000)
    options.add_argument("--replicas", type=int, default=100)
    asked = options.parse_args()
    began = time.time()
    if asked.what == "figures":
        print(figures())
        return
    if asked.what == "measure":
        found, file = measured(asked.measured), MEASURED
    else:
        found, file = simulated(asked.conversations, asked.replicas), SIMULATED
    file.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    print(file.read_text("utf-8") + f"{time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
