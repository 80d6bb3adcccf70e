"""Prints what lists of records take as tables: a made search result and recorded outputs.

    python bench/tables.py

Tokens are o200k.  Shares are of the result as the tool gave it and of the same JSON without any
white space.  ``values`` are the string and number values alone, a line each, with no keys and no
JSON: no table that shows each of them whole can be smaller than about that.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "support")]

import search_result  # noqa: E402
from table_reader import decoded, spelled  # noqa: E402

from trimtab.reducers.tables import as_tables  # noqa: E402
from trimtab.transcript.tokens import counter_for  # noqa: E402

COUNT = counter_for("o200k", model=None, format="")


def leaves(tree: Any) -> Iterator[str]:
    """Every string, number and constant of a tree."""
    if isinstance(tree, (dict, list)):
        for value in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(value)
    else:
        yield tree if isinstance(tree, str) else json.dumps(tree)


def cases() -> Iterator[tuple[str, str]]:
    """(name, the JSON as a tool would give it)."""
    for many in (90, 200):
        rows = search_result.rows(many)
        yield f"search, {many} rows, json.dumps", json.dumps(rows)
        yield f"search, {many} rows, indent=2", json.dumps(rows, indent=2)
    for file in sorted((ROOT / "tests" / "support" / "data_files" / "json_results").glob("*.json")):
        yield file.stem, file.read_text(encoding="utf-8")


def main() -> None:
    """One line a case."""
    print(f"{'':32}{'tokens':>8}{'compact':>9}{'values':>8}{'table':>8}  share of each")
    for name, text in cases():
        tree = json.loads(text)
        compact = json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
        table = as_tables(text)
        assert table is not None
        assert decoded(table) == spelled(text), "every value comes back"
        whole, less, size = COUNT(text), COUNT(compact), COUNT(table)
        values = COUNT("\n".join(leaves(tree)))
        shares = f"{size / whole:7.1%}{size / less:8.1%}{size / values:8.1%}"
        print(f"{name:32}{whole:8,}{less:9,}{values:8,}{size:8,}{shares}")


if __name__ == "__main__":
    main()
