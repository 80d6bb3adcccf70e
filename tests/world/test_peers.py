"""Other libraries under the conformance suite, in environments that pip makes; the world tier.

TRIMTAB_PEERS_CASES=30 runs as many cases as the page on them has.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import world_needs

pytestmark = pytest.mark.world
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))

import reproduce  # noqa: E402
import run  # noqa: E402

CASES = os.environ.get("TRIMTAB_PEERS_CASES", "8")


@pytest.mark.parametrize("peer", run.PEERS, ids=lambda peer: peer.name)
def test_a_peer_runs_through_the_suite(peer: run.Peer) -> None:
    if failed := run.install(peer):
        world_needs.absent(f"{peer.name}: {failed}")
    board = run.run(peer, "16k", CASES)
    assert "error" not in board, board
    judged = {row["name"]: row["judged"] for row in board["properties"]}
    assert judged["fits"] > 0
    if peer.environment == "trimtab":
        assert board["passed"], board


def test_each_reproduction_prints_what_the_page_says() -> None:
    """Where this fails a library was repaired: the page has to say so."""
    assert reproduce.main() == 0
