"""Runs inside another library's environment: a line of messages in, a line of messages out.

Started as ``python peer_worker.py NAME WINDOW`` with a name of bench/peers/worker.py.  Each line is
a conversation of its own: no state is carried on.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))

from worker import SHRINKERS


def answer(name: str, window: int, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """What the library makes of one conversation."""
    try:
        return SHRINKERS[name](window)(messages)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:200]}


def main() -> None:
    """Answer line by line; output that libraries print goes to standard error."""
    os.environ.update(HF_HUB_OFFLINE="1")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    name, window = sys.argv[1], int(sys.argv[2])
    for line in sys.stdin:
        answers.write(json.dumps(answer(name, window, json.loads(line)), default=str) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
