"""Prints seconds and memory of one cut of long histories of reads, and how they grow with length.

    python bench/reads.py [messages]

Each history reads files of made-up code: one file again and again, a different file each time,
ranges of one file, files that are also edited and written, stubs ("unchanged"), searches, a
mixture.  A request of ``messages`` messages (10,000) and one of a quarter of them are each cut
once, in a process of its own.  Exits 1 when the longer cut takes more than 2.5 s of CPU or grows by
more than 1.3 times the growth of the messages.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SRC = Path(__file__).resolve().parents[1] / "src"
MAX_SECONDS, MAX_GROWTH = 2.5, 1.3
RESULT_LINES = 16
WORDS = ["request", "cache", "window", "token", "parser", "session", "index", "value", "stream"]

Step = tuple[str, dict[str, Any], str]
"""(tool, input, result)"""


def lines(random_: random.Random, tag: str, count: int = RESULT_LINES) -> str:
    """Numbered lines of code that no other tag has."""
    return "\n".join(
        f"{n:6}\t{random_.choice(WORDS)}_{tag} = {random_.choice(WORDS)}({random_.randrange(9999)})"
        for n in range(1, count + 1)
    )


def same_file(random_: random.Random, number: int) -> Step:
    """One file, changed in between by something else."""
    return "Read", {"file_path": "src/app.py"}, lines(random_, str(number))


def other_file(random_: random.Random, number: int) -> Step:
    """Another file each time."""
    return "Read", {"file_path": f"src/f{number}.py"}, lines(random_, str(number))


def ranges(random_: random.Random, number: int) -> Step:
    """A range of one large file."""
    first = random_.randrange(1, 5_000)
    given = {"file_path": "src/big.py", "offset": first, "limit": RESULT_LINES}
    return "Read", given, lines(random_, str(first))


def equal(random_: random.Random, number: int) -> Step:
    """One of fifty files, never changed."""
    name = str(number % 50)
    return "Read", {"file_path": f"src/f{name}.py"}, lines(random.Random(name), name)


def unchanged(random_: random.Random, number: int) -> Step:
    """One file, answered by a stub but for every tenth time."""
    if number % 10:
        return "Read", {"file_path": "src/app.py"}, "File unchanged since last read."
    return same_file(random_, number)


def edited(random_: random.Random, number: int) -> Step:
    """One of twenty files: read, edited, written in turn."""
    name, text = f"src/e{number % 20}.py", lines(random_, str(number))
    kind = number // 20 % 3
    if kind == 0:
        return "Read", {"file_path": name}, text
    if kind == 1:
        old = text[:400]
        return "Edit", {"file_path": name, "old_string": old, "new_string": text[400:800]}, "ok"
    return "Write", {"file_path": name, "content": text}, "ok"


def searched(random_: random.Random, number: int) -> Step:
    """A search of the same words."""
    return "Grep", {"pattern": "token", "path": "src"}, lines(random_, str(number))


KINDS: dict[str, Callable[[random.Random, int], Step]] = {
    step.__name__: step
    for step in (same_file, other_file, ranges, equal, unchanged, edited, searched)
}


def mixture(random_: random.Random, number: int) -> Step:
    """Any of the others."""
    return random_.choice(list(KINDS.values()))(random_, number)


HISTORIES = {**KINDS, "mixture": mixture}


def request(kind: str, messages: int) -> dict[str, Any]:
    """An Anthropic request of so many messages, a call and its result in turn."""
    random_, talk = random.Random(7), [{"role": "user", "content": f"Go through it, {kind}."}]
    for number in range(messages // 2):
        tool, given, result = HISTORIES[kind](random_, number)
        call = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": given}
        answer = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": result}
        talk.append({"role": "assistant", "content": [call]})  # type: ignore[dict-item]
        talk.append({"role": "user", "content": [answer]})  # type: ignore[dict-item]
    return {"model": "claude-sonnet-4-5", "messages": talk}


def cut(kind: str, messages: int) -> dict[str, float]:
    """Seconds of CPU, megabytes and tokens of one cut, in this process."""
    import trimtab

    trimtab.fit(request(kind, 40), window=100_000)  # loads the modules and the vocabulary
    history = request(kind, messages)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    fitted = trimtab.fit(history, window=100_000)
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sizes = {"before": fitted.report.tokens_before, "after": fitted.report.tokens_after}
    return {"seconds": seconds, "megabytes": (after - before) / 1e3, **sizes}


def measured(kind: str, messages: int) -> dict[str, float]:
    """``cut`` in a process of its own."""
    command = [sys.executable, __file__, "--one", kind, str(messages)]
    output = subprocess.check_output(command, env={"PYTHONPATH": str(SRC)}, text=True)
    return {name: float(value) for name, value in json.loads(output).items()}


def main() -> int:
    """Print the table, or one measurement as JSON."""
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(cut(sys.argv[2], int(sys.argv[3]))))
        return 0
    messages, slow = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, False
    print(
        f"{'history':12} {'tokens':>10} {'after':>7} {messages // 4:>8} {messages:>8}  growth   MB"
    )
    for kind in HISTORIES:
        short, long = measured(kind, messages // 4), measured(kind, messages)
        growth = long["seconds"] / short["seconds"] / 4
        slow |= long["seconds"] > MAX_SECONDS or growth > MAX_GROWTH
        print(
            f"{kind:12} {long['before']:10,.0f} {long['after']:7,.0f} {short['seconds']:6.2f} s "
            f"{long['seconds']:6.2f} s {growth:6.2f} {long['megabytes']:5.0f}"
        )
    return int(slow)


if __name__ == "__main__":
    sys.exit(main())
