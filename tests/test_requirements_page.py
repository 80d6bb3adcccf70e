"""docs/requirements.md is current, and each test named after a row names one that exists."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "scripts"))

import requirements_page  # noqa: E402

IDS = {row for _, row, _ in requirements_page.rows()}


def test_the_page_is_what_the_tests_names_say() -> None:
    told = requirements_page.PAGE.read_text(encoding="utf-8")
    assert told == requirements_page.page(), "run: python scripts/requirements_page.py"


def test_every_row_has_a_title_of_at_most_eight_words() -> None:
    sections = {"A": 18, "B": 24, "C": 15, "D": 10, "E": 15, "X": 13}
    assert {f"{name}{n}" for name, last in sections.items() for n in range(1, last + 1)} == IDS
    assert all(0 < len(title.split()) <= 8 for _, _, title in requirements_page.rows())


def test_no_test_is_named_after_a_row_that_does_not_exist() -> None:
    assert set(requirements_page.tests()) <= IDS
