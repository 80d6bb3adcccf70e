"""Sessions of many windows: nothing depends on what is remembered, and what lies far back stays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from soak.lasting import Lasting
from soak.story import FORMATS

from trimtab.planning import fold, fold_candidates
from trimtab.planning.fold_candidates import ReopenedGroups
from trimtab.planning.planner import Planner
from trimtab.planning.runs import Run

TURNS, SEED = 100, 3


@pytest.mark.parametrize("format", FORMATS)
def test_in_a_session_of_many_windows_every_turn_is_what_it_would_be_by_itself(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, reopen = Counter[str](), fold.reopen

    def counted(planner: Planner) -> ReopenedGroups:
        past = fold_candidates._newest(planner, fold_candidates.PAST)
        stood = any(run.last < past for run in planner.state.runs)
        found = reopen(planner)
        seen.update(far=bool(found.far), due=found.past > 0, stood=stood and not found.past)
        return found

    monkeypatch.setattr(fold, "reopen", counted)
    session = Lasting(SEED, format)
    for _ in range(TURNS):
        session.turn()
    assert session.faults == []
    rare = {"far": 30, "stood": 25, "due": 3}
    assert not [name for name, times in rare.items() if seen[name] <= times], seen


def test_a_row_that_ends_within_what_a_note_left_reads_its_own_groups_alone() -> None:
    left: dict[int, Mapping[Any, Any]] = {number: {} for number in (1, 4, 6, 7, 14)}
    reopened = ReopenedGroups([range(0, 9), range(11, 15)], left, past=6)
    rows = list(reopened.parted([Run(0, 17)]))
    assert rows == [Run(0, 5), Run(6, 17)]
    assert [list(reopened.read(row)) for row in rows] == [[1, 4], [6, 7, 9, 10, 14, 15, 16, 17]]
    assert list(reopened.read(Run(12, 13))) == []
