"""docs/costs.md, docs/recall.md, docs/howto/mcp.md: their examples print what is below them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = re.compile(r"^```python\n((?:(?!```).*\n)+)```\n\n```text\n((?:(?!```).*\n)+)```$", re.M)


def blocks(page: str) -> list[tuple[str, str]]:
    return FENCE.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", ["costs.md", "recall.md"])
def test_the_first_example_prints_what_stands_below_it(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    code, below = EXAMPLE.findall(text)[0]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode() == below


def test_the_configurations_of_clients_can_be_read_and_start_the_same_command() -> None:
    import json

    found = blocks("howto/mcp.md")
    trees = [json.loads(text) for language, text in found if language == "json"]
    trees += [tomllib.loads(text) for language, text in found if language == "toml"]
    assert len(trees) == 4
    command = ["trimtab", "mcp", "--store", "sqlite:////home/me/agent.db"]
    for tree in trees:
        (servers,) = tree.values()
        server = servers["trimtab"]
        given = server["command"]
        assert (given if isinstance(given, list) else [given, *server["args"]]) == command
