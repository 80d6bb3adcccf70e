"""Prints how often the prompt cache breaks where dead weight goes at once, and what that saves.

    python bench/immediate_pruning.py [turns]

A made-up coding session in Anthropic's format: files are read, read again, edited; every sixth call
fails.  Each turn is fitted in a window that it never fills.  A turn breaks the cache where what was
sent before is not the beginning of what is sent now.  The bill is input at the prices of the table
"claude-5m", as shares of a session that is sent whole.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import trimtab
from trimtab.pricing.prices import TABLES

WAYS = {
    "sent whole": {"trigger": 1.0},
    "early=1_000": {"trigger": 1.0, "early": 1_000},
    "early=1": {"trigger": 1.0, "early": 1},
    'early=1, prices="none"': {"trigger": 1.0, "early": 1, "prices": "none"},
}


def steps(turns: int) -> list[dict[str, Any]]:
    """The messages of a session of so many calls."""
    random_ = random.Random(3)
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Mend the parser."}]
    for turn in range(turns):
        name, failed = f"src/f{random_.randrange(25)}.py", turn % 6 == 5
        lines = [f"value_{turn}_{n} = {random_.randrange(10**6)}" for n in range(60)]
        given: dict[str, Any] = {"file_path": name}
        tool, result = "Read", "\n".join(lines)
        if failed or turn % 4 == 3:
            tool = "Edit"
            given |= {"old_string": "\n".join(lines[:20]), "new_string": "\n".join(lines[20:40])}
            result = "String to replace not found in file." if failed else "Done."
        call = {"type": "tool_use", "id": f"t{turn}", "name": tool, "input": given}
        answer = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": result}
        messages.append({"role": "assistant", "content": [call]})
        messages.append(
            {"role": "user", "content": [answer | ({"is_error": True} if failed else {})]}
        )
    return messages


def played(messages: list[dict[str, Any]], **settings: Any) -> tuple[int, int, float]:
    """(turns that break the cache, tokens of the last request, cost of all input in tokens)."""
    prices = TABLES["claude-5m"]
    session = trimtab.Session(settings=trimtab.Settings(counter="o200k", **settings))
    before, breaks, cost, size = "", 0, 0.0, 0
    for end in range(1, len(messages) + 1, 2):
        body = {"model": "claude-sonnet-4-5", "messages": messages[:end]}
        fitted = session.fit(body, window=10**6, reserve=0)
        now, size = json.dumps(fitted.request["messages"])[:-1], fitted.report.tokens_after
        same = len(before)
        if not now.startswith(before):
            breaks += 1
            same = next(n for n, (a, b) in enumerate(zip(now, before, strict=False)) if a != b)
        cached = size * same / len(now)
        cost += cached * prices.read + (size - cached) * prices.write
        before = now
    return breaks, size, cost


def main() -> None:
    """Print a line for each way."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 120
    messages, whole = steps(turns), 0.0
    print(f"{turns} turns{'':25} breaks  last request   cost")
    for name, settings in WAYS.items():
        breaks, size, cost = played(messages, **settings)
        whole = whole or cost
        print(f"{name:34} {breaks:6} {size:13,} {cost / whole:6.2f}")


if __name__ == "__main__":
    main()
