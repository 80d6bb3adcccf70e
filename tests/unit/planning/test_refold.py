"""When notes of earlier batches are taken back: what lies far back gets a new note of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from trimtab.planning.refold import FAR_SHARE, REACH, ReopenedGroups, _due, _newest
from trimtab.planning.runs import Run

CAPACITY, ROOM = 1_000, 500


def planner(*runs: tuple[int, int, int], group: int) -> Any:
    """Notes (first, last, tokens) over groups of so many tokens each."""
    notes = [SimpleNamespace(first=first, last=last, tokens=n) for first, last, n in runs]
    state = SimpleNamespace(runs=notes, size=lambda begin, end: group * (end - begin))
    return SimpleNamespace(state=state, eligibility=SimpleNamespace(capacity=CAPACITY, room=ROOM))


@pytest.mark.parametrize(("last", "due"), [(8, False), (9, False), (10, True), (11, True)])
def test_a_note_that_reaches_the_boundary_leaves_what_is_before_it_without_a_note_of_its_own(
    last: int, due: bool
) -> None:
    assert _due(planner((0, last, 10), group=REACH * CAPACITY // 10), past=10) is due


def test_it_is_due_once_as_much_has_no_note_of_its_own_as_two_windows() -> None:
    assert _due(planner((0, 12, 10), group=REACH * CAPACITY // 10), past=10)
    assert not _due(planner((0, 12, 10), group=REACH * CAPACITY // 10 - 1), past=10)


def test_it_is_due_where_far_notes_take_more_than_their_share_of_the_room() -> None:
    most = int(FAR_SHARE * ROOM)
    assert not _due(planner((0, 4, most), group=1), past=10)
    assert _due(planner((0, 4, most - 9), (5, 9, 10), group=1), past=10)
    assert not _due(planner((0, 4, most), (5, 10, 10), group=1), past=10)  # the other is not far


def test_a_run_is_parted_where_what_is_far_ends() -> None:
    runs = [Run(0, 3), Run(4, 9), Run(10, 12)]
    assert list(ReopenedGroups(past=6).parted(runs)) == [
        Run(0, 3), Run(4, 5), Run(6, 9), Run(10, 12),
    ]  # fmt: skip
    assert list(ReopenedGroups(past=4).parted(runs)) == runs
    assert list(ReopenedGroups(past=0).parted(runs)) == runs
    crossing = Run(4, 9, opening=7)
    assert list(ReopenedGroups(past=6).parted([crossing])) == [crossing]


def test_of_far_groups_only_those_are_read_of_which_a_note_left_lines() -> None:
    old = ReopenedGroups(far=[range(2, 5)], left={3: {}, 9: {}})
    assert list(old.read(Run(0, 6))) == [0, 1, 3, 5, 6]
    assert list(old.read(Run(4, 6))) == [5, 6]
    assert list(old.read(Run(0, 3))) == [0, 1, 3]


@pytest.mark.parametrize(("windows", "first"), [(0.0, 9), (0.1, 8), (0.2, 8), (0.21, 7), (9.0, 0)])
def test_the_newest_history_begins_with_the_group_that_reaches_so_many_windows(
    windows: float, first: int
) -> None:
    groups = [SimpleNamespace(first=2 * n, last=2 * n + 1) for n in range(9)]  # 200 tokens each
    transcript = SimpleNamespace(groups=groups, messages=range(18))
    usage, bounds = SimpleNamespace(message=lambda _: 100), SimpleNamespace(capacity=CAPACITY)
    found = SimpleNamespace(transcript=transcript, usage=usage, bounds=bounds)
    assert _newest(found, windows) == first  # type: ignore[arg-type]
