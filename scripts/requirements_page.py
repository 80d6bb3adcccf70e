"""Writes docs/requirements.md: each row of the requirements and the tests that are named after it.

    python scripts/requirements_page.py            writes the page
    python scripts/requirements_page.py --check    says whether it is current (exit 1 if it is not)

Knows the rows by their numbers and a few words each, and how tests are named: ``test_B8_…``.
Does not know what a row asks for in detail, nor whether a test passes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "requirements.md"
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
"""Section → what each of its rows is about, in order."""

INTRO = """# Rows of the requirements, and their tests

Written by `scripts/requirements_page.py` from the names of the tests; change those, not this.

A test of a row is named after it: `test_B8_…`.  A row without one is not done, or is tested only
by the laws (`tests/test_laws*.py`), which bind everything at once.
"""

_NAME = re.compile(
    r"^\s*(?:async )?def test_([A-Z]\d{1,2}(?:_[A-Za-z]\d{1,2})*)_(\w+)\(", re.MULTILINE
)


def rows() -> Iterator[tuple[str, str, str]]:
    """(section, id, title) of every row, in order."""
    for section, titles in ROWS.items():
        for number, title in enumerate(titles, 1):
            yield section, f"{section[0]}{number}", title


def tests() -> dict[str, dict[str, list[str]]]:
    """Row → file → what its tests say, as written after the row's id."""
    found: dict[str, dict[str, list[str]]] = {}
    for file in sorted(TESTS.rglob("test_*.py")):
        name = file.relative_to(TESTS).as_posix()
        for match in _NAME.finditer(file.read_text(encoding="utf-8")):
            for row in match[1].upper().split("_"):
                found.setdefault(row, {}).setdefault(name, []).append(match[2])
    return found


def page() -> str:
    """The whole page."""
    found, lines, last = tests(), [INTRO], ""
    missing = [row for _, row, _ in rows() if row not in found]
    lines.append(f"Rows without a test of their own: {', '.join(missing) or 'none'}.\n")
    for section, row, title in rows():
        if section != last:
            lines += [f"## {section}\n", "| row | about | tests |", "|---|---|---|"]
        last = section
        told = "<br>".join(
            f"`{file}`: {'; '.join(name.replace('_', ' ') for name in names)}"
            for file, names in found.get(row, {}).items()
        )
        lines.append(f"| {row} | {title} | {told or '–'} |")
        if row == [r for s, r, _ in rows() if s == section][-1]:
            lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Write or check; returns the exit code."""
    fresh = page()
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == fresh else 1
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
