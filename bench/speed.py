"""Prints what ``fit`` costs: nothing to do, a batch of edits, growth, import.

    python bench/speed.py

Medians of CPU time on a made-up coding session (varied lines, no two results alike).  Growth is a
paired ratio: 100 turns and 400 turns in turn, so that a noisy machine troubles both alike.
"""

from __future__ import annotations

import cProfile
import json
import pstats
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SRC = Path(__file__).resolve().parents[1] / "src"
sys.path.insert(0, str(SRC))

import trimtab  # noqa: E402

RUNS = 9
WORDS = [
    "request",
    "cache",
    "window",
    "token",
    "parser",
    "result",
    "session",
    "error",
    "index",
    "value",
    "return",
    "import",
    "class",
    "journal",
    "module",
    "branch",
    "commit",
    "header",
    "stream",
    "buffer",
    "socket",
    "worker",
    "thread",
    "client",
    "server",
]


def conversation(turns: int, tokens_a_turn: int = 500) -> dict[str, Any]:
    """An Anthropic request of so many calls, each with one result."""
    random_ = random.Random(turns)
    task = f"Find the lost token in {turns} steps."  # so that two of them are two conversations
    messages: list[dict[str, Any]] = [{"role": "user", "content": task}]
    for number in range(turns):
        lines = [
            f"src/{random_.choice(WORDS)}_{number}.py:{random_.randrange(999)}: "
            + " ".join(random_.choice(WORDS) for _ in range(9))
            for _ in range(tokens_a_turn // 20)
        ]
        call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"n": number}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "\n".join(lines)}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return {"model": "claude-sonnet-4-5", "messages": messages}


def cpu_ms(call: Callable[[], object]) -> float:
    """Milliseconds of CPU time of one call."""
    start = time.process_time()
    call()
    return 1000 * (time.process_time() - start)


def median(call: Callable[[], object]) -> float:
    """Median milliseconds of several calls, after one that is not counted."""
    call()
    return statistics.median(cpu_ms(call) for _ in range(RUNS))


def function_calls(call: Callable[[], object]) -> int:
    """How many functions one call calls: no noise, and no caches of the processor."""
    profile = cProfile.Profile()
    profile.runcall(call)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def main() -> None:
    """Print the table."""
    request = conversation(400)
    body = json.dumps(request).encode()
    size = trimtab.fit(
        request, window=10**7, settings=trimtab.Settings(counter="o200k")
    ).report.tokens_before
    print(f"conversation: 400 turns, {size:,} tokens, {len(body):,} bytes")

    def fit(what: Any, window: int) -> Callable[[], object]:
        return lambda: trimtab.fit(what, window=window, settings=trimtab.Settings(counter="o200k"))

    rows = [
        ("nothing to do, dict", fit(request, 10**7)),
        ("nothing to do, bytes", fit(body, 10**7)),
        ("a batch of edits, dict (window 128k)", fit(request, 128_000)),
        ("a batch of edits, bytes (window 128k)", fit(body, 128_000)),
        ("a deep batch, dict (window 32k)", fit(request, 32_000)),
    ]
    for name, call in rows:
        print(f"  {name:40} {median(call):8.2f} ms")
    fresh = [json.loads(body) for _ in range(3)]
    first = [cpu_ms(fit(request_, 128_000)) for request_ in fresh]
    print(f"  {'at first sight, batch (not counted before)':40} {statistics.median(first):8.2f} ms")

    short, long = conversation(100), conversation(400)
    for name, window in (("nothing to do", 10**7), ("a batch", 20_000)):
        ratios = []
        for _ in range(RUNS):
            a, b = cpu_ms(fit(short, window)), cpu_ms(fit(long, window))
            ratios.append(b / a)
        print(f"  growth, 100 → 400 turns, {name:15} ×{statistics.median(ratios):.2f}")
        fit(short, window)(), fit(long, window)()
        steps = function_calls(fit(long, window)) / function_calls(fit(short, window))
        print(f"  {'the same in function calls':40} ×{steps:.2f}")

    for name, use in (
        ("import trimtab", ""),
        ("and its first name, with what it needs", "trimtab.fit"),
    ):
        code = f"import time; a=time.process_time(); import trimtab; {use}"
        command = [sys.executable, "-c", f"{code}\nprint(time.process_time()-a)"]
        times = [
            float(subprocess.check_output(command, env={"PYTHONPATH": str(SRC)}))
            for _ in range(RUNS)
        ]
        print(f"  {name:40} {1000 * statistics.median(times):8.2f} ms")


if __name__ == "__main__":
    main()
