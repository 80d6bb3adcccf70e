"""When notes of earlier batches are taken back: what lies far back gets a new note of its own."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from file_reads import FILLER, request, step

import trimtab
from trimtab.planning.fold_candidates import FAR_SHARE, REACH, ReopenedGroups, _due, _newest
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
    sizes, bounds = SimpleNamespace(message=lambda _: 100), SimpleNamespace(capacity=CAPACITY)
    found = SimpleNamespace(transcript=transcript, sizes=sizes, bounds=bounds)
    assert _newest(found, windows) == first  # type: ignore[arg-type]


# --- a session ---


def name(number: int) -> str:
    return f"load_config_{number:03d}"


@pytest.fixture(scope="module")
def cuts() -> list[tuple[int, list[str]]]:
    """(steps so far, notes) after each cut of a session of 100 steps, 13 times its window."""
    settings = trimtab.Settings(counter="o200k", target=0.7)
    session, body = trimtab.Session(window=6_000, reserve=0, settings=settings), request(0)
    found: list[tuple[int, list[str]]] = [(0, [])]
    for number in range(100):
        rows = [f"{FILLER} {number} x{n}" for n in range(30)]
        rows[15] = f"the parser calls {name(number)} before it starts"
        body["messages"] += step(number, "\n".join(rows))
        texts = [
            part["content"]
            for message in session.fit(body).request["messages"]
            for part in message["content"]
            if part["type"] == "tool_result"
        ]
        notes = [text for text in texts if "of which this record is left" in text]
        if notes != found[-1][1]:
            found.append((number + 1, notes))
    return found[1:]


def test_a_cut_leaves_the_notes_of_earlier_ones_byte_for_byte_while_there_is_room(
    cuts: list[tuple[int, list[str]]],
) -> None:
    (_, first), (_, second), *_ = cuts
    assert len(first) == 1
    assert len(second) == 2
    assert second[0] == first[0]
    stay = sum(later[: len(before)] == before for (_, before), (_, later) in pairwise(cuts))
    assert stay > len(cuts) / 4


def test_without_room_for_another_note_all_steps_get_one_anew(
    cuts: list[tuple[int, list[str]]],
) -> None:
    (_, first), _, (steps, third), *_ = cuts
    (note,) = third
    assert note not in first
    assert note.startswith(f"[{steps - 1} earlier steps")


def test_far_history_keeps_its_note_unchanged_while_newer_ones_are_redone(
    cuts: list[tuple[int, list[str]]],
) -> None:
    redone = [
        (before, later)
        for (_, before), (_, later) in pairwise(cuts)
        if len(later) > 1 and later[0] == before[0] and later[1:] != before[1 : len(later)]
        and before[1:] and not later[1].startswith(before[1].partition(" ")[0])
    ]  # fmt: skip
    assert len(redone) > 3


def test_what_notes_kept_of_steps_far_back_is_kept_by_those_that_replace_them(
    cuts: list[tuple[int, list[str]]],
) -> None:
    for steps, notes in cuts:
        told = "\n".join(notes)
        assert [n for n in range(steps - 1) if name(n) not in told] == []
