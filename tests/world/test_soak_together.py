"""The soak that joins everything, in small: every door, servers of its own that are killed.

``python tests/soak/together.py --seconds 1800`` is the long form.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import world_needs

pytestmark = pytest.mark.world
DOORS = (
    "turns by proxy", "turns by wrap", "turns by wrap, async", "requests of a gateway",
    "requests by LangChain", "library turns", "lasting turns", "handles_recalled", "hidden_rounds",
)  # fmt: skip


def test_all_doors_and_stores_survive_what_is_done_to_them_all_at_once(tmp_path: Path) -> None:
    for name, extra in (("langchain", "langchain"), ("mcp", "mcp"), ("boto3", "sdks")):
        world_needs.module(name, extra)
    from soak import together

    found = together.soak(8.0, 1, tmp_path, print)
    assert found.faults == []
    counts = {door: sum(number for name, number in found.counts.items() if name.startswith(door))
              for door in DOORS}  # fmt: skip
    assert [door for door, number in counts.items() if not number] == []
