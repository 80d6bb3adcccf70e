"""Small corpora of conversations, and the words of a folder after a run.

Knows JSON lines.  Does not know the library under test.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from tool_calls import Step, conversation

FORMATS = ("openai-chat", "anthropic", "openai-responses")


def record(number: int, steps: int = 12, lines: int = 30) -> dict[str, Any]:
    """A conversation of tool calls that ends with the user; every number gives another one."""
    draw = random.Random(number)
    made = [
        Step("read", {"path": f"src/m{number}_{step}.py"},
             "\n".join(f"{step}.{line} value_{draw.randrange(10**6)} = {draw.random()}"
                       for line in range(lines)))
        for step in range(steps)
    ]  # fmt: skip
    return conversation(FORMATS[number % len(FORMATS)], *made)


def written(path: Path, records: list[Any]) -> Path:
    """A file of JSON lines; a text is a line as it is."""
    lines = [one if isinstance(one, str) else json.dumps(one) for one in records]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder and its bytes."""
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    return {one.relative_to(folder).as_posix(): one.read_bytes() for one in files}


def lines_of(folder: Path, pattern: str = "part-*.jsonl") -> list[Any]:
    """The values of all lines of the files of this name, in order."""
    found = sorted(folder.glob(pattern))
    return [json.loads(line) for one in found for line in one.read_text().splitlines()]
