"""The soak that joins everything, in small: sessions, proxies, servers of its own that are killed.

``python tests/soak/together.py --seconds 1200`` is the long form.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from soak import together

pytestmark = pytest.mark.world


def test_replicas_sessions_and_stores_survive_what_is_done_to_them_all_at_once(
    tmp_path: Path,
) -> None:
    found = together.soak(4.0, 1, tmp_path, print)
    assert found.faults == []
    assert found.counts["turns"] > 0
    assert found.counts["library turns"] > 0
    assert found.counts["handles_recalled"] > 0
