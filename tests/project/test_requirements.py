"""Every row of the requirements has a test with its marker, and every marker names a row."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "scripts"))

import requirements  # noqa: E402

IDS = {row for _, row, _ in requirements.rows()}


def test_every_row_has_a_test_and_every_marker_names_a_row() -> None:
    assert set(requirements.tests()) == IDS


def test_every_row_has_a_title_of_at_most_eight_words() -> None:
    sections = {"A": 18, "B": 24, "C": 15, "D": 10, "E": 15, "X": 13}
    assert {f"{name}{n}" for name, last in sections.items() for n in range(1, last + 1)} == IDS
    assert all(0 < len(title.split()) <= 8 for _, _, title in requirements.rows())
