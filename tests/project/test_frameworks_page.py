"""The page of frameworks has the table that its command prints."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/world/frameworks"))
table = importlib.import_module("table")

TEXT = table.PAGE.read_text(encoding="utf-8")
ROWS = [line.split(" | ") for line in TEXT.splitlines() if re.match(r"\| \S.* \| \d", line)]


def test_the_table_has_a_row_for_each_framework_with_the_line_that_is_run():
    said = [(row[0].removeprefix("| "), row[2]) for row in ROWS]
    assert said == [(one.title, one.line) for one in table.FRAMEWORKS.values()]


def test_all_of_at_least_fourteen_frameworks_work_and_hide_at_most_one_refusal():
    assert len(ROWS) >= 14
    for _, _, _, plain, stream, hidden in ROWS:
        assert plain == "yes"
        assert stream in ("yes", "–")
        assert set(re.findall(r"\d", hidden)) <= {"0", "1"}


def test_the_page_says_when_it_was_run():
    assert re.search(r"^Run on \d{4}-\d\d-\d\d\. ", TEXT, re.M)
