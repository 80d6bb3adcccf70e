"""Hands the recorded transcripts to the tests; skips where there are none, but never in CI.

Knows nothing about them (see records.py), nor about the library.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from records import FORMATS, Record, folder, records
from world_needs import absent


@pytest.fixture(scope="session")
def data() -> list[tuple[str, Record]]:
    """Every openai-chat and anthropic record, with the name of its file."""
    if folder() is None:
        absent("no transcripts: set TRIMTAB_DATA to the folder that holds them")
    return list(records(*FORMATS))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test of this folder belongs to the data tier."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.data)
