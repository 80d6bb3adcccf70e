"""Dropped groups as rows of neighbours, the same answers as a set of their numbers; their words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trimtab.planning.dropped_ranges import (
    IntervalSet,
    left_note,
    messages_text,
    steps_text,
    words_note,
)
from trimtab.transcript.notes import LINES

SPANS = st.tuples(st.integers(0, 30), st.integers(0, 6)).map(lambda s: (s[0], s[0] + s[1]))
MOVES = st.lists(st.tuples(st.booleans(), SPANS), max_size=12)
"""Whether numbers come in or go out, and which."""
Move = tuple[bool, tuple[int, int]]


@given(MOVES)
def test_rows_of_neighbours_tell_the_same_as_a_set(
    moves: list[Move],
) -> None:
    gone, numbers = IntervalSet(), set[int]()
    for adds, (first, last) in moves:
        if adds:
            gone.add(first, last)
            numbers.update(range(first, last + 1))
        else:
            gone.remove(first, last)
            numbers.difference_update(range(first, last + 1))
        for number in range(40):
            assert (number in gone) == (number in numbers)
            begin = number
            while begin - 1 in numbers:
                begin -= 1
            assert gone.begin(number) == begin


@pytest.mark.parametrize(
    ("count", "text"), [(1, "1 earlier {}"), (2, "2 earlier {}s"), (1_400, "1,400 earlier {}s")]
)
def test_a_note_says_how_many_are_gone_with_the_right_ending(count: int, text: str) -> None:
    assert (steps_text(count), messages_text(count)) == (
        text.format("step"),
        text.format("message"),
    )


@pytest.mark.parametrize(("handle", "fetch"), [("", ""), ("r7", '; recall("r7") has them')])
def test_a_note_names_its_handle_only_where_the_model_may_recall(handle: str, fetch: str) -> None:
    left = left_note("2 earlier steps", "these words are", "a\nb", handle)
    assert left == f"[2 earlier steps, of which these words are left{fetch}]\na\nb"
    assert words_note("in part", "Yes.", handle).endswith(f", in part{fetch}]\nYes.")


@pytest.mark.parametrize(
    ("handle", "fetch"), [("", ""), ("r7", '; recall("r7", steps="3") has step 3 whole')]
)
def test_a_record_says_as_of_when_it_is_true_and_how_one_step_is_had(
    handle: str, fetch: str
) -> None:
    title, _, rest = left_note("2 earlier steps", LINES, "a\nb", handle).partition("\n")
    assert rest == "a\nb"
    assert title == (
        f"[2 earlier steps, of which this record is left, true after the last of them{fetch}]"
    )
