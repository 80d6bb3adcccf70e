"""Prints each row of the requirements and the tests that answer for it.

    python scripts/requirements.py           every row
    python scripts/requirements.py A5 X1     these rows

Knows the rows by their numbers and a few words each, and finds tests by their marker:
``@pytest.mark.row("A5")``.  Does not know what a row asks for in detail, nor whether a test passes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"

ROWS = {
    "A. Reaction to a refusal": (
        "recognise one provider's bare refusal", "log what was recognised",
        "recognise strict size limits elsewhere", "shorten only long tool results",
        "shorten JSON objects as JSON", "shorten plain text with a note",
        "results stay safe JSON and Unicode", "say whether and by how much",
        "retry once, and only when smaller", "log the retry", "its place among other retries",
        "streams as well", "leave the caller's objects alone", "measure what was done",
        "structure kept, in little time", "react to sizes the provider names",
        "largest result first, as last resort", "an error that says what is missing",
    ),
    "B. Pruning of repeats and failures": (
        "detect the format, or pass on", "descriptions of the five formats",
        "calls known with input and status", "errors told by flags", "errors told by known texts",
        "categories of errors", "strategies as plug-ins", "equal calls: the newest stays",
        "inputs of old failed calls go", "what stands for an input", "what stands for an output",
        "settings, validated and layered", "protected tools", "protected files", "protected turns",
        "state survives a restart", "savings counted once, per cause", "counts in the log",
        "results without ids", "leave running and internal calls", "overwritten reads and writes",
        "tools for the model itself", "summaries within summaries", "breakdown and statistics",
    ),
    "C. Articles in search results": (
        "nothing below the threshold", "count all that is sent", "find articles in results",
        "shorten each article", "stop at the target", "mark, and keep the rest",
        "best articles stay whole", "fits into agent middleware", "log lines of the pass",
        "a fixed margin instead", "cache shortened articles", "in parallel",
        "thresholds from the remaining budget", "earlier when growth is foreseen",
        "cost of models visible",
    ),
    "D. Cutting without orphans": (
        "dropping the oldest leaves no orphan", "cut at a user's message",
        "calls and results go together", "clean up afterwards", "strict providers and their words",
        "a note for what was dropped", "one oversized turn", "room for output and tools",
        "interrupted calls", "no endless loop",
    ),
    "E. Compress, then filter": (
        "only above the limit", "keep what is recent", "a target below the limit",
        "long outputs and old messages", "filtering comes last", "results need a pending call",
        "tool text within user text", "to Bedrock Converse", "from Bedrock Converse",
        "strict pairing", "atomic groups, middle left out", "originals by id",
        "changed copies remembered", "arguments that are no JSON", "cache breakpoints",
    ),
    "X. What all of them imply": (
        "always valid", "never bigger", "stable bytes", "reversible", "linear time",
        "reasoning whole or gone", "limits in bytes", "signed reasoning and edits",
        "overflow behind a 200", "size hidden in rate errors", "state on the server",
        "clients' own requests", "below the client's own compactor",
    ),
}  # fmt: skip
"""Section → the titles of its rows, in order."""


def rows() -> Iterator[tuple[str, str, str]]:
    """(section, id, title) of every row, in order."""
    for section, titles in ROWS.items():
        for number, title in enumerate(titles, 1):
            yield section, f"{section[0]}{number}", title


def tests() -> dict[str, dict[str, list[str]]]:
    """Row → file below tests/ → the names of the tests with its marker."""
    found: dict[str, dict[str, list[str]]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        name = file.relative_to(TESTS).as_posix()
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for row in _rows_of(node):
                    found.setdefault(row, {}).setdefault(name, []).append(node.name)
    return found


def _rows_of(test: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.row":
            yield from (ast.literal_eval(row) for row in mark.args)


def main() -> int:
    """Print the requested rows; return 1 if one of them has no test."""
    found, wanted, missing = tests(), sys.argv[1:], False
    for _, row, title in rows():
        if wanted and row not in wanted:
            continue
        print(f"{row}  {title}")
        missing |= row not in found
        for file, names in found.get(row, {}).items():
            print(f"    {file}")
            for name in names:
                print(f"        {name.removeprefix('test_').replace('_', ' ')}")
    return int(missing)


if __name__ == "__main__":
    sys.exit(main())
