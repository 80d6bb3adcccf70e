"""Prints seconds and memory of the command line on a 50 MB body with 10,000 tool results.

    python bench/large.py [results] [megabytes]

Makes the body itself (varied log lines, no two results alike), in both formats, and runs each
command in a process of its own.  Exits 1 when one takes 20 s or 1 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SECONDS, MEGABYTES = 20.0, 1_000.0
SRC = Path(__file__).resolve().parents[1] / "src"
COMMANDS = (
    ["fit", "--window", "200k", "-o", os.devnull],
    ["fit", "--window", "1m", "--reserve", "0", "-o", os.devnull],
    ["check"],
    ["explain", "--window", "200k"],
)


def output(number: int, chars: int) -> str:
    """The output of one command: lines that differ in time, host, path and status."""
    lines, length, seed = [], 0, number * 7919 + 1
    while length < chars:
        seed = (seed * 1_664_525 + 1_013_904_223) % 2**32
        line = (
            f"2024-03-01T{seed % 24:02d}:{seed // 24 % 60:02d} host-{seed // 1440 % 97} "
            f"GET /v1/orders/{seed >> 5} {200 + seed % 5} {seed % 9000} bytes"
        )
        lines.append(line)
        length += len(line) + 1
    return "\n".join(lines)


def anthropic(results: int, chars: int) -> dict[str, Any]:
    """One call and its result a turn, as Anthropic has it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all the logs."}]
    for number in range(results):
        key, given = f"toolu_{number:05d}", {"command": f"cat logs/{number}.log"}
        call = {"type": "tool_use", "id": key, "name": "bash", "input": given}
        result = {"type": "tool_result", "tool_use_id": key, "content": output(number, chars)}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return {"model": "claude-sonnet-4-5", "max_tokens": 4096, "messages": messages}


def openai(results: int, chars: int) -> dict[str, Any]:
    """The same as OpenAI's Chat Completions has it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read all the logs."}]
    for number in range(results):
        key, given = f"call_{number:05d}", json.dumps({"command": f"cat logs/{number}.log"})
        call = {"id": key, "type": "function", "function": {"name": "bash", "arguments": given}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": key, "content": output(number, chars)},
        ]
    return {"model": "gpt-4.1", "messages": messages}


def measure(argv: list[str], file: Path) -> tuple[int, float, float]:
    """(exit code, seconds, most megabytes of memory) of one command."""
    command = [sys.executable, "-m", "trimtab", argv[0], str(file), *argv[1:]]
    environment = {**os.environ, "PYTHONPATH": str(SRC)}
    start = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    ) as child:
        said = child.stderr.read().decode() if child.stderr else ""
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        print(said.strip()[:300])
    # ru_maxrss is in kilobytes on Linux, in bytes on macOS (getrusage(2) of each)
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return child.returncode, time.perf_counter() - start, usage.ru_maxrss / unit


def main() -> int:
    """Make the bodies, run the commands, print a line each."""
    results = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    chars = int(float(sys.argv[2] if len(sys.argv) > 2 else 50) * 1e6 / results)
    slow = 0
    with tempfile.TemporaryDirectory() as folder:
        for make in (anthropic, openai):
            file = Path(folder) / f"{make.__name__}.json"
            file.write_text(json.dumps(make(results, chars)))
            size = file.stat().st_size / 1e6
            print(f"{make.__name__}: {size:.1f} MB, {results:,} results")
            for argv in COMMANDS:
                code, seconds, megabytes = measure(argv, file)
                fine = code == 0 and seconds < SECONDS and megabytes < MEGABYTES
                slow += not fine
                verdict = "" if fine else "   too much"
                shown = " ".join(argv)
                print(f"  {shown:<44} exit {code} {seconds:6.1f} s {megabytes:6.0f} MB{verdict}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
