"""The soaks of sessions in small: rewinds, forks, cut heads, killed writers.

More of the same: ``python tests/soak/sessions.py`` and ``python tests/soak/killed.py``.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
import store_urls
from soak.killed import killed
from soak.restarts import restarts
from soak.sessions import trial
from soak.story import FORMATS, INTERACTIONS

from trimtab.journal import journal
from trimtab.transcript.model import Edit

COUNT = int(os.environ.get("SOAK_SESSIONS") or 24)


def test_no_edit_of_the_future_stands_and_nothing_comes_out_invalid() -> None:
    done = [trial(seed) for seed in range(1, COUNT + 1)]
    assert [(one.seed, fault) for one in done for fault in one.faults] == []
    counts = sum((one.counts for one in done), Counter[str]())
    assert {one.format for one in done} == set(FORMATS)
    assert (
        min(counts[move] for move in ("rewind", "fork", "behead", "edit", "regenerate"))
        >= COUNT // 4
    )
    assert counts["edits that stood"] > 5 * COUNT


def test_no_edit_of_the_future_stands_in_interactions() -> None:
    done = [trial(seed, INTERACTIONS) for seed in range(1, 4)]
    assert [(one.seed, fault) for one in done for fault in one.faults] == []
    assert sum(one.counts["edits that stood"] for one in done) > 3


def test_a_session_restarted_at_any_turn_sends_what_the_one_that_went_on_sends() -> None:
    # 33: an edit equal to an older one.  318: a fold taken back, for which nothing new stands.
    done = [restarts(seed) for seed in (*range(1, COUNT + 1), 318, 8_001_993)]
    assert [(one.seed, fault) for one in done for fault in one.faults] == []
    counts = sum((one.counts for one in done), Counter[str]())
    assert min(counts[move] for move in ("rewind", "fork", "edit", "back")) >= COUNT // 4


def test_the_soak_notices_edits_of_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    def standing(edit: Edit, refs: object) -> bool:
        return all(ref in refs for ref in edit.targets)  # type: ignore[operator]

    monkeypatch.setattr(journal, "applies", standing)
    faults = (fault for seed in range(1, 300) for fault in trial(seed).faults)
    assert any("from the future" in fault for fault in faults)


def test_what_left_in_a_request_outlives_writers_that_are_killed(tmp_path: Path) -> None:
    done = killed(f"sqlite:///{tmp_path / 'store.db'}", times=2, writers=2, seed=7)
    assert (done.kills, done.lost, done.faults) == (4, [], [])
    assert done.handles > 0


@pytest.mark.world
@pytest.mark.parametrize("kind", store_urls.FAR)
def test_what_left_outlives_killed_writers_on_servers(kind: str, tmp_path: Path) -> None:
    with store_urls.store_url(kind, tmp_path) as url:
        done = killed(url, times=3, writers=4, seed=7)
    assert (done.kills, done.lost, done.faults) == (12, [], [])
    assert done.handles > 0
